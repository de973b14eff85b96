//! All shortest paths of equal cost between all ordered pairs of routers.
//!
//! There may be very many of them, so they are not listed. For each source there is the graph of
//! the links that lie on some shortest path from it; its walks from the source are the shortest
//! paths, and they can be counted without being written down.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::topology::{RouterId, Topology};

/// The largest number of links in the graphs of all sources together: 4 bytes each.
pub const DAG_LINKS_MAX: usize = 50_000_000;
/// The largest number of hops of all paths together. Beyond it JSON readers would round counts.
pub const HOPS_MAX: u64 = 1 << 53;

/// Why shortest paths cannot be counted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PathsError {
    /// The graphs of all sources would take more than [`DAG_LINKS_MAX`] links. Plan one area or
    /// domain at a time.
    #[error(
        "the topology is too large: its graphs of shortest paths have more than {DAG_LINKS_MAX} \
         links, after only {sources} of its routers as sources; plan one area at a time"
    )]
    TooLarge {
        /// How many sources fitted.
        sources: usize,
    },
    /// There are so many paths of equal cost that their hops exceed [`HOPS_MAX`]. Tell links of
    /// equal weight apart, or plan one area at a time.
    #[error(
        "too many shortest paths of equal cost: more than {HOPS_MAX} hops in all, after only \
         {sources} of the routers as sources; give the links different weights, or plan one area \
         at a time"
    )]
    TooManyPaths {
        /// How many sources were counted before the one that was too much.
        sources: usize,
    },
}

/// The shortest paths between all ordered pairs of routers, as one graph per source.
#[derive(Clone, Debug)]
pub struct ShortestPaths {
    graphs: Vec<PathGraph>,
}

impl ShortestPaths {
    /// Finds them.
    ///
    /// # Errors
    ///
    /// If there are too many for the bounds on memory and on counts.
    pub fn of(topology: &Topology) -> Result<Self, PathsError> {
        let mut graphs = Vec::new();
        let (mut links, mut hops) = (0, 0);
        for source in (0..topology.routers()).map(RouterId::of) {
            let graph = PathGraph::from(topology, source);
            links += graph.successors.len();
            if links > DAG_LINKS_MAX {
                return Err(PathsError::TooLarge { sources: graphs.len() });
            }
            let sources = graphs.len();
            let more = graph.hops().ok_or(PathsError::TooManyPaths { sources })?;
            hops += more;
            if hops > HOPS_MAX {
                return Err(PathsError::TooManyPaths { sources });
            }
            graphs.push(graph);
        }
        Ok(Self { graphs })
    }

    /// How many routers there are.
    #[must_use]
    pub const fn routers(&self) -> usize {
        self.graphs.len()
    }

    /// Ordered pairs of routers without a path from the first to the second.
    #[must_use]
    pub fn unreachable_pairs(&self) -> usize {
        self.graphs.iter().map(|graph| self.graphs.len() - graph.order.len()).sum()
    }

    /// Directed links that are a shortest path themselves. It is what remains to be measured when
    /// every router measures.
    #[must_use]
    pub fn links_used(&self) -> u64 {
        self.graphs.iter().map(|graph| graph.successors_of(0).len() as u64).sum()
    }

    /// One graph per source, in the order of the routers.
    pub(crate) fn graphs(&self) -> &[PathGraph] {
        &self.graphs
    }
}

/// The links that lie on a shortest path from one source.
///
/// Routers are known by their *place*: how many others are nearer to the source. Weights are above
/// zero, so links lead from lower places to higher ones only.
#[derive(Clone, Debug)]
pub(crate) struct PathGraph {
    /// The routers that can be reached, nearest first; the source is at place 0.
    order: Vec<RouterId>,
    /// Where the successors of a place begin, and after the last one, their number.
    first: Vec<u32>,
    /// Places.
    successors: Vec<u32>,
}

impl PathGraph {
    fn from(topology: &Topology, source: RouterId) -> Self {
        let Distances { order, distances } = Distances::from(topology, source);
        let mut places = vec![0; topology.routers()];
        for (place, router) in (0..).zip(&order) {
            places[router.index()] = place;
        }
        let (mut first, mut successors) = (vec![0], Vec::new());
        for &from in &order {
            for &(to, weight) in topology.links_of(from) {
                if distances[from.index()] + weight.millionths() == distances[to.index()] {
                    successors.push(places[to.index()]);
                }
            }
            first.push(u32::try_from(successors.len()).expect("at most LINKS_MAX"));
        }
        Self { order, first, successors }
    }

    /// The routers by place.
    pub(crate) fn order(&self) -> &[RouterId] {
        &self.order
    }

    /// Where shortest paths go on from a place.
    pub(crate) fn successors_of(&self, place: usize) -> impl ExactSizeIterator<Item = usize> {
        let range = self.first[place] as usize..self.first[place + 1] as usize;
        self.successors[range].iter().map(|&place| place as usize)
    }

    /// The hops of all paths from the source; None above [`HOPS_MAX`].
    fn hops(&self) -> Option<u64> {
        let mut paths = vec![0_u64; self.order.len()];
        let mut hops = vec![0_u64; self.order.len()];
        paths[0] = 1;
        let mut total = 0;
        for place in 0..self.order.len() {
            total += hops[place];
            if total > HOPS_MAX {
                return None;
            }
            for next in self.successors_of(place) {
                paths[next] += paths[place];
                hops[next] += hops[place] + paths[place];
                // A path has at least as many hops as it counts paths: both sums stay small.
                if hops[next] > HOPS_MAX {
                    return None;
                }
            }
        }
        Some(total)
    }
}

/// What Dijkstra's algorithm finds from one source.
struct Distances {
    order: Vec<RouterId>,
    /// By router, in millionths; `u64::MAX` where there is no path.
    distances: Vec<u64>,
}

impl Distances {
    fn from(topology: &Topology, source: RouterId) -> Self {
        let mut distances = vec![u64::MAX; topology.routers()];
        let mut order = Vec::new();
        let mut waiting = BinaryHeap::from([Reverse((0, source))]);
        distances[source.index()] = 0;
        while let Some(Reverse((distance, router))) = waiting.pop() {
            if distance > distances[router.index()] {
                continue; // A shorter way was found since.
            }
            order.push(router);
            for &(to, weight) in topology.links_of(router) {
                let through = distance + weight.millionths();
                if through < distances[to.index()] {
                    distances[to.index()] = through;
                    waiting.push(Reverse((through, to)));
                }
            }
        }
        Self { order, distances }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{TopologyBuilder, Weight};

    /// Links of both directions.
    fn paths(links: &[(usize, usize, f64)]) -> Result<ShortestPaths, PathsError> {
        let mut builder = TopologyBuilder::default();
        let routers =
            links.iter().map(|&(from, to, _)| from.max(to)).max().map_or(0, |max| max + 1);
        for router in 0..routers {
            builder.router_or_new(&router.to_string()).unwrap();
        }
        for &(from, to, weight) in links {
            let [from, to] = [from, to].map(RouterId::of);
            builder.link(from, to, Weight::new(weight)).unwrap();
            builder.link(to, from, Weight::new(weight)).unwrap();
        }
        ShortestPaths::of(&builder.build().unwrap())
    }

    /// Hops of all paths from router 0, and routers in order of distance.
    #[track_caller]
    fn check(links: &[(usize, usize, f64)], hops: u64, order: &[usize]) {
        let paths = paths(links).unwrap();
        let graph = &paths.graphs()[0];
        assert_eq!(graph.hops(), Some(hops));
        assert_eq!(graph.order.iter().map(|router| router.index()).collect::<Vec<_>>(), order);
    }

    #[test]
    fn paths_of_equal_cost_all_count() {
        check(&[(0, 1, 1.0), (0, 2, 1.0), (1, 3, 1.0), (2, 3, 1.0)], 1 + 1 + 2 + 2, &[0, 1, 2, 3]);
        check(&[(0, 1, 1.0), (0, 2, 1.5), (1, 3, 1.0), (2, 3, 1.0)], 1 + 1 + 2, &[0, 1, 2, 3]);
    }

    #[test]
    fn equal_costs_of_decimal_weights_are_equal() {
        // As binary fractions, 0.1 + 0.2 is more than 0.3.
        check(&[(0, 1, 0.1), (1, 2, 0.2), (0, 2, 0.3)], 1 + 1 + 2, &[0, 1, 2]);
    }

    #[test]
    fn a_link_that_nothing_uses_is_not_counted() {
        let paths = paths(&[(0, 1, 1.0), (1, 2, 1.0), (0, 2, 3.0)]).unwrap();
        assert_eq!(paths.links_used(), 4);
        assert_eq!(paths.unreachable_pairs(), 0);
    }

    #[test]
    fn islands_have_unreachable_pairs() {
        assert_eq!(paths(&[(0, 1, 1.0), (2, 3, 1.0)]).unwrap().unreachable_pairs(), 8);
    }

    #[test]
    fn a_chain_of_diamonds_has_too_many_paths() {
        // 2^k paths through k diamonds.
        let chain = |diamonds: usize| -> Vec<_> {
            let links = (0..diamonds).flat_map(|diamond| {
                let at = 3 * diamond;
                [(at, at + 1), (at, at + 2), (at + 1, at + 3), (at + 2, at + 3)]
            });
            links.map(|(from, to)| (from, to, 1.0)).collect()
        };
        assert!(paths(&chain(40)).is_ok());
        assert_eq!(paths(&chain(60)).unwrap_err(), PathsError::TooManyPaths { sources: 0 });
    }
}
