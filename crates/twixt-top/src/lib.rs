//! What a terminal shows of the segments of a collector, of their flows, or of one point.
//!
//! [`TopState`] is made of answers ([`News`]) and keys ([`TopKey`]), and says what to ask for
//! ([`Wanted`]); [`draw`] shows it. Neither knows where answers come from, what reads the keys, or
//! what time it is: callers say so.

mod columns;
mod course;
mod draw;
mod figure;
mod known;
mod news;
mod plain;
mod state;

pub use course::Courses;
pub use draw::{Palette, draw};
pub use known::{CellName, TopDelay, TopEstimate};
pub use news::{HeatColumn, HeatMap, KindLine, News, PointLine, PointSeen};
pub use plain::plain;
pub use state::{TopKey, TopState, Wanted};
