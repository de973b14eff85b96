use std::collections::BTreeSet;

use proptest::prelude::Strategy as _;
use proptest::{prop_assert, prop_assert_eq, proptest};

use super::*;
use crate::topology::{Topology, TopologyBuilder};
use crate::weight::Weight;

/// Links of both directions; routers are numbers.
fn network(routers: usize, links: &[(usize, usize, u32)]) -> Topology {
    let mut builder = TopologyBuilder::default();
    for router in 0..routers {
        builder.router_or_new(&router.to_string()).unwrap();
    }
    for &(from, to, weight) in links {
        let [from, to] = [from, to].map(RouterId::of);
        for (from, to) in [(from, to), (to, from)] {
            builder.link(from, to, Weight::new(weight.into())).unwrap();
        }
    }
    builder.build().unwrap()
}

fn line(routers: usize) -> Topology {
    let links: Vec<_> = (1..routers).map(|router| (router - 1, router, 1)).collect();
    network(routers, &links)
}

/// Four routers in a square: two paths between opposite corners.
fn diamond() -> Topology {
    network(4, &[(0, 1, 1), (0, 2, 1), (1, 3, 1), (2, 3, 1)])
}

fn plan(topology: &Topology, strategy: Strategy) -> UpgradePlan {
    UpgradePlan::new(&ShortestPaths::of(topology).unwrap(), strategy, usize::MAX)
}

/// Hops before any greedy upgrade and after each; the routers.
#[track_caller]
fn check(topology: &Topology, hops: &[u64], routers: &[usize]) {
    let plan = plan(topology, Strategy::Greedy);
    let found: Vec<u64> = plan.steps().iter().map(|step| step.segments.hops).collect();
    assert_eq!(found, hops);
    let upgraded = plan.steps().iter().filter_map(|step| step.router);
    assert_eq!(upgraded.map(RouterId::index).collect::<Vec<_>>(), routers);
}

#[test]
fn a_line_of_five_routers() {
    check(&line(5), &[40, 16, 12, 8, 8, 8], &[2, 1, 3, 0, 4]);
}

#[test]
fn a_diamond() {
    // 8 links, and two paths of two hops between opposite corners, each way: 8 + 2 × 2 × 2 × 2.
    // An upgraded router cuts one path of two hops each way: its own opposite corner sees nothing.
    check(&diamond(), &[24, 20, 16, 12, 8], &[0, 1, 2, 3]);
}

#[test]
fn a_star() {
    let star = network(5, &[(4, 0, 1), (4, 1, 1), (4, 2, 1), (4, 3, 1)]);
    check(&star, &[8 + 12 * 2, 8, 8, 8, 8, 8], &[4, 0, 1, 2, 3]);
}

#[test]
fn islands_and_single_routers() {
    check(&network(4, &[(0, 1, 1), (2, 3, 1)]), &[4; 5], &[0, 1, 2, 3]);
    check(&network(1, &[]), &[0, 0], &[0]);
    let step = plan(&network(1, &[]), Strategy::Greedy).steps()[0];
    assert_eq!((step.segments.mean_hops(), step.segments.shortest_hops()), (None, None));
}

#[test]
fn granularity_of_a_line() {
    let plan = plan(&line(5), Strategy::Greedy);
    let [before, after, ..] = plan.steps() else { panic!("two steps") };
    assert_eq!(before.segments, Segments { count: 20, hops: 40, longest_hops: 4 });
    assert_eq!(after.segments, Segments { count: 12, hops: 16, longest_hops: 2 });
    assert_eq!(before.segments.mean_hops(), Some(2.0));
    assert_eq!((before.saved_hops, after.saved_hops), (None, Some(24)));
}

#[test]
fn where_the_gain_flattens() {
    let plan = plan(&line(5), Strategy::Greedy);
    assert_eq!(plan.least_hops(), 8);
    // Of 32 hops, 24 are saved by one, 28 by two.
    assert_eq!([0.0, 0.75, 0.76, 1.0].map(|share| plan.reaches(share)), [0, 1, 2, 3].map(Some));
    // Savings are 24, 4, 4, 0, 0 of 40.
    assert_eq!([0.2, 0.1, 0.01].map(|share| plan.flat_after(share)), [1, 3, 3].map(Some));
    assert_eq!(plan.flat_after(0.0), None);
}

#[test]
fn random_upgrades_follow_from_the_seed() {
    let order = |seed| -> Vec<_> {
        let plan = plan(&line(30), Strategy::Random { seed });
        plan.steps().iter().filter_map(|step| step.router).collect()
    };
    assert_eq!(order(1), order(1));
    assert_ne!(order(1), order(2));
    assert_eq!(order(1).into_iter().collect::<BTreeSet<_>>().len(), 30);
}

/// Algorithm 1 as it is meant, with a set of segments that are written down: cuts each path at
/// the upgraded routers, one after the other.
fn cut_one_by_one(paths: &ShortestPaths, upgraded: &[RouterId]) -> BTreeSet<Vec<RouterId>> {
    let mut segments = all_paths(paths);
    for router in upgraded {
        let inside = |path: &[RouterId]| {
            path.iter().position(|at| at == router).filter(|&at| at > 0 && at + 1 < path.len())
        };
        segments = segments
            .into_iter()
            .flat_map(|path| match inside(&path) {
                Some(at) => vec![path[..=at].to_vec(), path[at..].to_vec()],
                None => vec![path],
            })
            .collect();
    }
    segments
}

fn all_paths(paths: &ShortestPaths) -> BTreeSet<Vec<RouterId>> {
    let mut all = BTreeSet::new();
    for graph in paths.graphs() {
        let mut waiting = vec![vec![0]];
        while let Some(path) = waiting.pop() {
            let last = *path.last().expect("it begins at the source");
            waiting
                .extend(graph.successors_of(last).map(|next| [path.as_slice(), &[next]].concat()));
            if path.len() > 1 {
                all.insert(path.iter().map(|&place| graph.order()[place]).collect());
            }
        }
    }
    all
}

/// Networks of 2 to 9 routers with few different weights, so that many paths cost the same.
fn networks() -> impl proptest::strategy::Strategy<Value = Topology> {
    (2_usize..10).prop_flat_map(|routers| {
        let link = (0..routers, 0..routers, 1_u32..3);
        proptest::collection::vec(link, 1..20).prop_map(move |links| network(routers, &links))
    })
}

proptest! {
    #![proptest_config(twixt_testing::cases(256))]

    #[test]
    fn counting_equals_cutting(topology in networks(), seed in 0_u64..1000) {
        let paths = ShortestPaths::of(&topology).unwrap();
        for strategy in [Strategy::Greedy, Strategy::Random { seed }] {
            let mut upgraded = Vec::new();
            for step in Planner::new(&paths, strategy) {
                upgraded.extend(step.router);
                let segments = cut_one_by_one(&paths, &upgraded);
                let hops = |segment: &Vec<RouterId>| segment.len() as u64 - 1;
                prop_assert_eq!(step.segments, Segments {
                    count: segments.len() as u64,
                    hops: segments.iter().map(hops).sum(),
                    longest_hops: segments.iter().map(hops).max().unwrap_or(0),
                });
                prop_assert_eq!(step.segments.shortest_hops(), segments.iter().map(hops).min());
            }
        }
    }

    #[test]
    fn savings_are_what_the_next_step_saves(topology in networks()) {
        let paths = ShortestPaths::of(&topology).unwrap();
        let none = vec![false; paths.routers()];
        let survey = Survey::of(&paths, &none);
        for router in 0..paths.routers() {
            let mut one = none.clone();
            one[router] = true;
            let after = Survey::of(&paths, &one).segments.hops;
            prop_assert_eq!(survey.segments.hops - after, survey.savings[router]);
        }
    }

    #[test]
    fn greedy_gains_never_rise_and_end_at_the_links(topology in networks()) {
        let plan = plan(&topology, Strategy::Greedy);
        prop_assert_eq!(plan.steps().len(), topology.routers() + 1);
        let saved: Vec<u64> = plan.steps().iter().filter_map(|step| step.saved_hops).collect();
        prop_assert!(saved.is_sorted_by(|before, after| before >= after), "{:?}", saved);
        prop_assert_eq!(plan.steps().last().unwrap().segments.hops, plan.least_hops());
        prop_assert_eq!(plan.reaches(1.0).is_some(), true);
    }
}
