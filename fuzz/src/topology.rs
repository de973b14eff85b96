//! Topologies from other programs.

use twixt_network::{HOPS_MAX, ShortestPaths, Strategy, UpgradePlan, import};

use crate::FuzzResult;

/// Larger networks take long, and show nothing that smaller ones do not.
const ROUTERS_PLANNED_MAX: usize = 32;

/// Imports the bytes as a topology, and plans upgrades of it. Upgrades never add hops, and those of
/// all routers leave the links.
pub fn topology(bytes: &[u8]) -> FuzzResult {
    let topology = match import(bytes) {
        Ok(topology) => topology,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return FuzzResult::Refused;
        }
    };
    assert!(topology.routers() > 0);
    assert!(topology.adjacent_pairs() <= topology.directed_links());
    if topology.routers() > ROUTERS_PLANNED_MAX {
        return FuzzResult::Accepted;
    }
    let Ok(paths) = ShortestPaths::of(&topology) else { return FuzzResult::Accepted };
    for strategy in [Strategy::Greedy, Strategy::Random { seed: 1 }] {
        let plan = UpgradePlan::new(&paths, strategy, topology.routers());
        let hops: Vec<u64> = plan.steps().iter().map(|step| step.segments.hops).collect();
        assert!(hops.is_sorted_by(|before, after| before >= after), "{hops:?}");
        assert!(hops[0] <= HOPS_MAX);
        assert_eq!(hops.last(), Some(&plan.least_hops()));
    }
    FuzzResult::Accepted
}
