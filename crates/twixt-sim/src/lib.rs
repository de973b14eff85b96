//! Simulated segments with known truth.
//!
//! Makes the packets that two observation points would see, and says what really happened to
//! each: traffic, delay, loss, reordering and clock error, all from one seed. Algorithms are
//! judged by what this crate knows and they do not.
//!
//! ```
//! use twixt_sim::{Config, Side, Simulation};
//!
//! let config = Config { flows: 50, delay: "constant:1ms".parse()?, ..Config::default() };
//! let simulation = Simulation::run(&config)?;
//! let truth = simulation.truth();
//! assert_eq!(truth.all.delay.map(|delay| delay.mean().as_nanos()), Some(1_000_000));
//! assert_eq!(simulation.observations(Side::Upstream).count(), simulation.packets().len());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # The same bytes everywhere
//!
//! Each purpose (flow sizes, delays, losses, …) draws from a ChaCha8 stream of its own, so that
//! a change of one model leaves the others as they were. Logarithms, exponentials and powers come
//! from the `libm` crate rather than from the platform, whose results differ in the last bit from
//! one system to the next; everything is drawn by this crate's own code, so that no upgrade of
//! a distribution library changes a trace.
//!
//! A [`Network`] is several such segments after each other, with traffic that never ends.
//!
//! No file is written here and no clock is read: frames and rows are handed to the caller.

mod arrivals;
mod clock;
mod config;
mod crossing;
mod delay;
mod flows;
mod frame;
mod loss;
mod network;
mod packet;
mod random;
mod reorder;
mod simulation;
mod size;
mod spec;
mod trace;
mod truth;

pub use arrivals::{Arrival, Burst};
pub use clock::Clock;
pub use config::{Config, FLOWS_MAX, PACKETS_MAX, Reverse, SimulationConfigError};
pub use delay::{DelayModel, QUEUE_MAX, Red};
pub use frame::{HEADERS_BYTES, SimulatedFrame};
pub use loss::Loss;
pub use network::{
    LinkConfig, LinkCrossing, LinkStep, LossSpell, Network, NetworkConfig, NetworkError,
    NetworkPacket, QueueConfig, TrafficConfig,
};
pub use packet::{Direction, PointPacket, SimulatedPacket};
pub use reorder::Reorder;
pub use simulation::Simulation;
pub use size::{FlowSize, PacketSize};
pub use spec::{RangeError, SpecError};
pub use truth::Truth;
pub use twixt_model::Side;
