//! The live agent: threads that join interfaces to the packet path, a spool for what is sealed, and
//! a sender.
//!
//! Packets have threads of their own, which wait only for the kernel. What they seal goes to
//! another thread, which puts parts together, encodes, and writes to the spool; a third sends from
//! there. An epoch leaves the spool when the collector has confirmed that it is stored.
//!
//! What is measured is decided elsewhere: an agent gets its settings as values, and knows algorithms
//! by the registry only.

mod agent;
mod clock;
mod config;
mod delivery;
mod frames;
mod losses;
mod metrics;
pub mod rehearsal;
mod sealing;
mod sender;
mod spool;
pub mod stepped;
mod steps;
mod watch;

pub use agent::{Agent, AgentError, PARTS_MAX};
pub use config::{AgentConfig, POINTS_MAX, PointConfig, SpoolConfig};
pub use delivery::{BATCH_BYTES_MAX, BATCH_EPOCHS_MAX};
pub use sender::{DeliveryConfig, SenderError};
pub use spool::{Now, SPOOL_BYTES_MIN, Spool, SpoolCounts, SpoolError, Spooled, Spools};
