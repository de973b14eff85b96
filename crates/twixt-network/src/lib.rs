//! Networks of routers: topologies, equal-cost shortest paths, and which routers to upgrade first.
//!
//! A network in which only some routers can measure still has to be measured between them. Every
//! part of a shortest path without a measuring router inside it needs packets of its own
//! sent along it. This crate says how many hops those packets travel altogether, how finely a
//! fault can be located, and which routers to upgrade so that both become small soonest: the
//! partial deployment of mPlane (Kompella, Levchenko, Snoeren and Varghese, *Router support for
//! fine-grained latency measurements*, ToN 2012, section VI).
//!
//! ```
//! use twixt_network::{Planner, ShortestPaths, Strategy, import};
//!
//! let topology = import(b"a b 1\nb a 1\nb c 1\nc b 1\n")?;
//! let paths = ShortestPaths::of(&topology)?;
//! let steps: Vec<_> = Planner::new(&paths, Strategy::Greedy).take(2).collect();
//! assert_eq!(steps[0].segments.hops, 8);
//! assert_eq!(steps[1].segments.hops, 4);
//! assert_eq!(steps[1].router.map(|router| topology.name(router)), Some("b"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! No file is read here: topologies come as hostile bytes, and every bound on them has a
//! name. Live topologies, synopses and estimates are not known here.

mod import;
mod segments;
mod shortest;
mod topology;
mod upgrade;
mod weight;

pub use import::{FILE_BYTES_MAX, Format, ImportError, ProblemPlace, import};
pub use segments::Segments;
pub use shortest::{DAG_LINKS_MAX, HOPS_MAX, PathsError, ShortestPaths};
pub use topology::{
    LINKS_MAX, NAME_BYTES_MAX, ROUTERS_MAX, Remarks, RouterId, Topology, TopologyBuilder,
    TopologyError,
};
pub use upgrade::{Planner, Strategy, UpgradePlan, UpgradeStep};
pub use weight::{WEIGHT_MAX, Weight};
