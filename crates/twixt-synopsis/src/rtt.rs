//! Round-trip times at one point: how long until what passes one way is answered the other way.
//!
//! All algorithms share one definition of what is a request and what is its response (`listener`),
//! one way to count and to conclude (`tally`), and differ in where requests wait meanwhile
//! ([`Store`]): everywhere there is room (`exact`), in a plain table (`simple`), or in tables that
//! know what they lose (`fridge`, `fridges`).

mod config;
mod connection;
mod entry;
mod event;
mod exact;
mod fridge;
mod fridges;
mod grouping;
mod kinds;
mod listener;
mod plan;
mod scopes;
mod sequence;
mod simple;
mod spin;
mod table;
mod tally;
mod times;
mod turn;
mod watcher;
mod weights;

pub use config::Watch;
pub use entry::{Answer, Asked, Entry, Request};
pub use event::Variant;
pub use exact::{EveryRequest, ExactRoundTrips, ExactRoundTripsConfig};
pub use fridge::{Fridge, FridgeConfig, FridgeStore};
pub use fridges::{Fridges, FridgesConfig, FridgesStore};
pub use grouping::Grouping;
pub use kinds::KindSet;
pub use plan::{FridgeNeed, FridgePlan};
pub use simple::{NewestRequests, SimpleConfig, SimpleRoundTrips};
pub use tally::GROUPS_MAX;
pub use watcher::{Pace, RoundTrips, Store, Watcher};
pub use weights::{Compartment, fridge_weight, fridges_weight, halvings_for, horizon_lifetimes};

#[cfg(test)]
mod tests;
