//! The live agent: joins sources of frames to meters, and sends what is sealed.

mod meters;
mod taking;

pub use meters::{Meters, Setting};
pub use taking::{Taking, is_timeless, marker_in};
