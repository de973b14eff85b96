//! A simulation that looks for ways to lose an epoch.
//!
//! Agents, a network, disks, clocks and a collector run in one thread, stepped by one scheduler that a
//! seed decides, without real time. The code that runs is the product's: [`SteppedAgent`] and
//! [`SteppedCollector`] on a [`SimulatedDisk`]. One seed is one story: what goes wrong, when, and in
//! which order things happen. After the last fault everything must heal.
//!
//! | module | the question it answers |
//! |---|---|
//! | `plan` | What goes wrong in this story? |
//! | `world` | What happens next? |
//! | `traffic` | Which packets pass which point, and when? |
//! | `agent_machine`, `collector_machine` | What does a process do when its machine lives, dies and starts? |
//! | `network` | What becomes of a request and of its response? |
//! | `ledger` | What was sealed, what was acknowledged, and is it stored? |
//! | `estimates` | Is every pair of stored halves estimated, once and right? |
//! | `seeds` | Which stories of many fail? |
//!
//! [`SteppedAgent`]: twixt_agent::stepped::SteppedAgent
//! [`SteppedCollector`]: twixt_collector::stepped::SteppedCollector
//! [`SimulatedDisk`]: twixt_store::SimulatedDisk

mod agent_machine;
mod clock;
mod collector_machine;
mod estimates;
mod ledger;
mod network;
mod plan;
mod random;
pub mod seeds;
mod trace;
mod traffic;
mod world;

pub use world::{Failure, Outcome, run};
