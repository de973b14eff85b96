//! Large flows at one point, from a fixed number of counters.
//!
//! All tables count the packets of flows that have a counter exactly. They differ in what happens
//! when a packet's flow has none and no counter is free: who loses its counter, how often, and
//! what the new flow starts from. A counter that was taken over starts from its previous count,
//! because the new flow may have sent packets while it had none. How much of a counter was taken
//! over is kept: the rest is certain.
//!
//! The tables know nothing of each other's names, nor of time.

mod admission;
pub(crate) mod chance;
mod config;
mod entry;
mod exact;
mod hashpipe;
mod index;
mod rap;
mod slots;
mod space_saving;
mod summary;
mod table;
#[cfg(test)]
mod tests;

pub use admission::{PrecisionTable, RapWayTable};
pub use config::{EntriesConfig, WaysConfig};
pub use exact::ExactTable;
pub use hashpipe::HashPipeTable;
pub use rap::RapTable;
pub use space_saving::SpaceSavingTable;
pub use table::{FlowTable, Heavy};
