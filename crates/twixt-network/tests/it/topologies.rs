//! The planner on networks that exist, against what was published of them.

use std::fs;
use std::path::Path;

use twixt_network::{ShortestPaths, Strategy, Topology, UpgradePlan, UpgradeStep, import};
use twixt_testing::require;

/// A topology of the shared data.
fn topology(shared: &Path, file: &str) -> Topology {
    let bytes = fs::read(shared.join(file)).expect("the file is there");
    import(&bytes).expect("it is a topology")
}

/// Routers, and pairs of them with a link between.
#[track_caller]
fn check_size(shared: &Path, file: &str, routers: usize, pairs: usize) {
    let topology = topology(shared, file);
    assert_eq!((topology.routers(), topology.adjacent_pairs()), (routers, pairs), "{file}");
}

#[test]
fn sizes_are_those_of_the_sources() {
    let shared = require!(shared "topologies");
    check_size(&shared, "rocketfuel/1239/weights.intra", 315, 972);
    check_size(&shared, "rocketfuel/1239/latencies.intra", 315, 972);
    check_size(&shared, "rocketfuel/1221/weights.intra", 108, 153);
    check_size(&shared, "rocketfuel/3257/weights.intra", 161, 328);
    check_size(&shared, "zoo/Abilene.gml", 11, 14);
    check_size(&shared, "zoo/Geant2012.gml", 40, 61);
    check_size(&shared, "zoo/AttMpls.gml", 25, 56);
    check_size(&shared, "zoo/Cogentco.gml", 197, 243);
}

#[test]
fn a_topology_in_parts_has_unreachable_pairs() {
    let shared = require!(shared "topologies");
    let telstra = topology(&shared, "rocketfuel/1221/weights.intra");
    let paths = ShortestPaths::of(&telstra).unwrap();
    assert!(paths.unreachable_pairs() >= 2 * 104 * 4, "{}", paths.unreachable_pairs());
}

fn mean(step: &UpgradeStep) -> f64 {
    step.segments.mean_hops().expect("there are segments")
}

/// Section VI-A of the mPlane paper: a million hops before, 10 000 with 45 of 315 routers; a
/// granularity of 4 before, of 1.5 with 50.
#[test]
fn sprint_as_published() {
    let shared = require!(shared "topologies");
    let sprint = topology(&shared, "rocketfuel/1239/weights.intra");
    let plan = UpgradePlan::new(&ShortestPaths::of(&sprint).unwrap(), Strategy::Greedy, 60);
    let steps = plan.steps();
    assert_eq!(steps.len(), 61);
    // An independent program, in which weights are floating-point, counts the same.
    assert_eq!((steps[0].segments.count, steps[0].segments.hops), (207_138, 965_384));
    assert_eq!((steps[45].segments.count, steps[45].segments.hops), (3_620, 5_704));
    assert!(mean(&steps[0]) > 4.0, "{}", mean(&steps[0]));
    assert!((mean(&steps[50]) - 1.5).abs() < 0.05, "{}", mean(&steps[50]));
}

#[test]
fn random_upgrades_of_sprint_gain_little() {
    let shared = require!(shared "topologies");
    let sprint = topology(&shared, "rocketfuel/1239/weights.intra");
    let paths = ShortestPaths::of(&sprint).unwrap();
    let greedy = UpgradePlan::new(&paths, Strategy::Greedy, 45).steps()[45];
    for seed in 1..=5 {
        let random = UpgradePlan::new(&paths, Strategy::Random { seed }, 45).steps()[45];
        let times = random.segments.hops as f64 / greedy.segments.hops as f64;
        println!("seed {seed}: {} hops, {:.2} on average", random.segments.hops, mean(&random));
        assert!(times > 10.0, "seed {seed}: only {times} times as many hops");
    }
}
