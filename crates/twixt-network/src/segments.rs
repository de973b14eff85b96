//! What has to be measured between upgraded routers.
//!
//! Cutting every shortest path at every upgraded router inside it leaves a set of segments. Every
//! part of a shortest path is a shortest path itself, and all ordered pairs of routers are paths
//! to begin with. So the segments are the shortest paths *without an upgraded router inside*:
//! a path that is cut leaves the set, and both of its parts were, or are, in it on their own
//! account. What an upgrade saves is the hops of the paths that it cuts. Both can be counted in
//! the graphs of shortest paths without listing a path.

use crate::shortest::{PathGraph, ShortestPaths};

/// The segments that packets have to be sent along.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Segments {
    /// How many there are.
    pub count: u64,
    /// Their hops together: how far packets travel if one is sent along each.
    pub hops: u64,
    /// Hops of the longest.
    pub longest_hops: u64,
}

impl Segments {
    /// Mean hops of a segment: how finely a fault is located. None if there is no segment.
    #[must_use]
    pub fn mean_hops(&self) -> Option<f64> {
        (self.count > 0).then(|| self.hops as f64 / self.count as f64)
    }

    /// Hops of the shortest segment; None if there is none.
    #[must_use]
    pub fn shortest_hops(&self) -> Option<u64> {
        // The first hop of any path is a segment too: it has nothing inside.
        (self.count > 0).then_some(1)
    }
}

/// What there is to measure, and what each further upgrade would save of it.
#[derive(Clone, Debug)]
pub(crate) struct Survey {
    pub(crate) segments: Segments,
    /// Hops by router. Nothing for those that are upgraded.
    pub(crate) savings: Vec<u64>,
}

impl Survey {
    /// `upgraded` is by router. Sums cannot overflow: [`ShortestPaths`] has seen to it that all
    /// hops of all paths together stay below its bound, and this counts a part of them.
    pub(crate) fn of(paths: &ShortestPaths, upgraded: &[bool]) -> Self {
        let savings = vec![0; upgraded.len()];
        let mut survey = Self { segments: Segments::default(), savings };
        for graph in paths.graphs() {
            survey.add_source(graph, upgraded);
        }
        survey
    }

    fn add_source(&mut self, graph: &PathGraph, upgraded: &[bool]) {
        // Paths begin at the source, so it is never inside one.
        let cuts: Vec<bool> = graph.order().iter().map(|router| upgraded[router.index()]).collect();
        let reaching = reaching(graph, &cuts);
        let onward = onward(graph, &cuts);
        for (place, router) in graph.order().iter().enumerate().skip(1) {
            let (to, on) = (&reaching[place], &onward[place]);
            self.segments.count += to.count;
            self.segments.hops += to.hops;
            self.segments.longest_hops = self.segments.longest_hops.max(to.longest_hops);
            if !cuts[place] {
                self.savings[router.index()] += to.hops * on.count + to.count * on.hops;
            }
        }
    }
}

/// By place: the segments from the source to it.
fn reaching(graph: &PathGraph, cuts: &[bool]) -> Vec<Segments> {
    let mut reaching = vec![Segments::default(); cuts.len()];
    reaching[0].count = 1;
    for place in 0..cuts.len() {
        let here = reaching[place];
        if here.count == 0 || (cuts[place] && place > 0) {
            continue;
        }
        for next in graph.successors_of(place) {
            let there = &mut reaching[next];
            there.count += here.count;
            there.hops += here.hops + here.count;
            there.longest_hops = there.longest_hops.max(here.longest_hops + 1);
        }
    }
    reaching
}

/// Ways on from a place, and their hops.
#[derive(Clone, Copy, Default)]
struct Onward {
    count: u64,
    hops: u64,
}

/// By place: the shortest paths from the source, from that place on, that no upgraded router cuts.
fn onward(graph: &PathGraph, cuts: &[bool]) -> Vec<Onward> {
    let mut onward = vec![Onward::default(); cuts.len()];
    for place in (0..cuts.len()).rev() {
        let mut here = Onward::default();
        for next in graph.successors_of(place) {
            let beyond = if cuts[next] { Onward::default() } else { onward[next] };
            // One way ends there; all others go through there, one hop longer from here.
            here.count += 1 + beyond.count;
            here.hops += 1 + beyond.count + beyond.hops;
        }
        onward[place] = here;
    }
    onward
}
