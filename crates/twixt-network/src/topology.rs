//! Routers, and the links between them.
//!
//! Knows nothing of file formats: [`crate::import`] reads those, and builds what is here.

use std::collections::HashMap;

use crate::weight::Weight;

/// The largest number of routers in a topology.
pub const ROUTERS_MAX: usize = 16_384;
/// The largest number of links in a topology; a link that goes both ways counts twice.
pub const LINKS_MAX: usize = 500_000;
/// The longest name or identifier of a router.
pub const NAME_BYTES_MAX: usize = 200;

/// A router of one topology.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RouterId(u32);

impl RouterId {
    /// Its place among the routers, from 0.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    pub(crate) fn of(index: usize) -> Self {
        Self(u32::try_from(index).expect("indices stay below ROUTERS_MAX"))
    }
}

/// What was left out of a topology, or put into it, when it was built.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Remarks {
    /// Links from a router to itself, which were left out.
    pub self_links: usize,
    /// Links beside another one of the same direction. Only the cheapest is kept: a path is the
    /// routers that it passes.
    pub parallel_links: usize,
    /// Links that came without a weight, and got 1.
    pub unweighted_links: usize,
}

/// Routers and directed links, at most one between two routers in each direction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topology {
    names: Vec<String>,
    /// Where the links of a router begin in `links`, and after the last one, their number.
    first: Vec<usize>,
    links: Vec<(RouterId, Weight)>,
    remarks: Remarks,
}

impl Topology {
    /// How many routers there are.
    #[must_use]
    pub const fn routers(&self) -> usize {
        self.names.len()
    }

    /// How many links there are; one that goes both ways counts twice.
    #[must_use]
    pub const fn directed_links(&self) -> usize {
        self.links.len()
    }

    /// How many pairs of routers have a link between them, in whichever direction.
    #[must_use]
    pub fn adjacent_pairs(&self) -> usize {
        let routers = (0..self.routers()).map(RouterId::of);
        let back = |from: RouterId, to: RouterId| {
            self.links_of(to).binary_search_by_key(&from, |&(to, _)| to).is_ok()
        };
        routers
            .map(|from| {
                let links = self.links_of(from).iter();
                links.filter(|&&(to, _)| from < to || !back(from, to)).count()
            })
            .sum()
    }

    /// What a router is called.
    ///
    /// # Panics
    ///
    /// If the router is of a larger topology.
    #[must_use]
    pub fn name(&self, router: RouterId) -> &str {
        &self.names[router.index()]
    }

    /// What was left out or put in.
    #[must_use]
    pub const fn remarks(&self) -> Remarks {
        self.remarks
    }

    /// Where links lead from a router, in the order of the routers, and what they cost.
    pub(crate) fn links_of(&self, from: RouterId) -> &[(RouterId, Weight)] {
        &self.links[self.first[from.index()]..self.first[from.index() + 1]]
    }
}

/// Why something cannot be part of a topology.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TopologyError {
    /// There are more routers than [`ROUTERS_MAX`]. Plan one area or domain at a time.
    #[error("more than {ROUTERS_MAX} routers; plan one area at a time")]
    TooManyRouters,
    /// There are more links than [`LINKS_MAX`]. Plan one area or domain at a time.
    #[error("more than {LINKS_MAX} directed links; plan one area at a time")]
    TooManyLinks,
    /// A name or identifier is longer than [`NAME_BYTES_MAX`]. Shorten it; or is the file of
    /// another format?
    #[error("a router's name of {bytes} bytes; shorten it to {NAME_BYTES_MAX}")]
    LongName {
        /// How long it is.
        bytes: usize,
    },
    /// Two routers have the same identifier. Rename one.
    #[error("duplicate router {router:?}; rename one of the two")]
    DuplicateRouter {
        /// The identifier.
        router: String,
    },
    /// A link names a router that is not there. Add the router, or correct the link.
    #[error("a link of unknown router {router:?}; add the router or correct the link")]
    UnknownRouter {
        /// The identifier.
        router: String,
    },
    /// There is no router at all. Was it the right file?
    #[error("no routers; is this the right file?")]
    Empty,
}

/// Collects routers and links, in the order of a file.
#[derive(Clone, Debug, Default)]
pub struct TopologyBuilder {
    names: Vec<String>,
    by_identifier: HashMap<String, RouterId>,
    /// How often each name was asked for.
    name_uses: HashMap<String, usize>,
    links: Vec<(RouterId, RouterId, Weight)>,
    remarks: Remarks,
}

impl TopologyBuilder {
    /// Adds a router. Links know it by its identifier, people by its name; of routers with one
    /// name, the later ones have their identifier added to it.
    ///
    /// # Errors
    ///
    /// If it is there already, is one too many, or has too long a name.
    pub fn router(&mut self, identifier: &str, name: &str) -> Result<RouterId, TopologyError> {
        for text in [identifier, name] {
            if text.len() > NAME_BYTES_MAX {
                return Err(TopologyError::LongName { bytes: text.len() });
            }
        }
        if self.by_identifier.contains_key(identifier) {
            return Err(TopologyError::DuplicateRouter { router: printable(identifier) });
        }
        if self.names.len() == ROUTERS_MAX {
            return Err(TopologyError::TooManyRouters);
        }
        let router = RouterId::of(self.names.len());
        let uses = self.name_uses.entry(name.to_owned()).or_default();
        *uses += 1;
        let shown = if *uses == 1 { name.to_owned() } else { format!("{name}#{identifier}") };
        self.names.push(printable(&shown));
        self.by_identifier.insert(identifier.to_owned(), router);
        Ok(router)
    }

    /// The router of an identifier, which is added if it is new.
    ///
    /// # Errors
    ///
    /// If it is one too many, or has too long a name.
    pub fn router_or_new(&mut self, identifier: &str) -> Result<RouterId, TopologyError> {
        match self.by_identifier.get(identifier) {
            Some(&router) => Ok(router),
            None => self.router(identifier, identifier),
        }
    }

    /// The router of an identifier.
    ///
    /// # Errors
    ///
    /// If there is none.
    pub fn known_router(&self, identifier: &str) -> Result<RouterId, TopologyError> {
        self.by_identifier.get(identifier).copied().ok_or_else(|| {
            let end = identifier.floor_char_boundary(NAME_BYTES_MAX);
            TopologyError::UnknownRouter { router: printable(&identifier[..end]) }
        })
    }

    /// Adds a link of one direction, of weight 1 if none is given.
    ///
    /// # Errors
    ///
    /// If it is one too many.
    pub fn link(
        &mut self,
        from: RouterId,
        to: RouterId,
        weight: Option<Weight>,
    ) -> Result<(), TopologyError> {
        self.remarks.unweighted_links += usize::from(weight.is_none());
        if from == to {
            self.remarks.self_links += 1;
            return Ok(());
        }
        if self.links.len() == LINKS_MAX {
            return Err(TopologyError::TooManyLinks);
        }
        self.links.push((from, to, weight.unwrap_or(Weight::ONE)));
        Ok(())
    }

    /// The topology.
    ///
    /// # Errors
    ///
    /// If it has no router.
    pub fn build(mut self) -> Result<Topology, TopologyError> {
        if self.names.is_empty() {
            return Err(TopologyError::Empty);
        }
        self.links.sort_unstable();
        let all_links = self.links.len();
        // Sorted by weight last, so the cheapest of parallel links is the one that stays.
        self.links.dedup_by_key(|&mut (from, to, _)| (from, to));
        self.remarks.parallel_links = all_links - self.links.len();
        let first = (0..=self.names.len())
            .map(|router| self.links.partition_point(|(from, ..)| from.index() < router))
            .collect();
        let links = self.links.iter().map(|&(_, to, weight)| (to, weight)).collect();
        Ok(Topology { names: self.names, first, links, remarks: self.remarks })
    }
}

/// Names come from outside and go to terminals: nothing in them moves the cursor.
fn printable(text: &str) -> String {
    text.replace(char::is_control, "\u{fffd}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn built(links: &[(&str, &str, f64)]) -> Topology {
        let mut builder = TopologyBuilder::default();
        for &(from, to, weight) in links {
            let [from, to] = [from, to].map(|name| builder.router_or_new(name).unwrap());
            builder.link(from, to, Weight::new(weight)).unwrap();
        }
        builder.build().unwrap()
    }

    #[test]
    fn the_cheapest_of_parallel_links_is_kept() {
        let topology = built(&[("a", "b", 3.0), ("a", "b", 2.0), ("b", "a", 5.0), ("a", "a", 1.0)]);
        let [a, b] = [0, 1].map(RouterId::of);
        assert_eq!(topology.links_of(a), [(b, Weight::new(2.0).unwrap())]);
        assert_eq!(topology.links_of(b), [(a, Weight::new(5.0).unwrap())]);
        assert_eq!((topology.directed_links(), topology.adjacent_pairs()), (2, 1));
        let remarks = Remarks { self_links: 1, parallel_links: 1, unweighted_links: 0 };
        assert_eq!(topology.remarks(), remarks);
    }

    #[test]
    fn one_way_links_are_adjacent_pairs_too() {
        let topology = built(&[("a", "b", 1.0), ("c", "a", 1.0), ("b", "c", 1.0), ("c", "b", 1.0)]);
        assert_eq!((topology.directed_links(), topology.adjacent_pairs()), (4, 3));
    }

    #[test]
    fn names_are_told_apart_and_harmless() {
        let mut builder = TopologyBuilder::default();
        for identifier in ["1", "2"] {
            builder.router(identifier, "Paris\u{1b}[2J").unwrap();
        }
        let topology = builder.build().unwrap();
        assert_eq!(topology.name(RouterId::of(0)), "Paris\u{fffd}[2J");
        assert_eq!(topology.name(RouterId::of(1)), "Paris\u{fffd}[2J#2");
    }

    #[test]
    fn bounds_are_kept() {
        let mut builder = TopologyBuilder::default();
        let long = "x".repeat(NAME_BYTES_MAX + 1);
        assert_eq!(builder.router_or_new(&long), Err(TopologyError::LongName { bytes: 201 }));
        for router in 0..ROUTERS_MAX {
            builder.router_or_new(&router.to_string()).unwrap();
        }
        assert_eq!(builder.router_or_new("more"), Err(TopologyError::TooManyRouters));
        let [from, to] = [0, 1].map(RouterId::of);
        for _ in 0..LINKS_MAX {
            builder.link(from, to, None).unwrap();
        }
        assert_eq!(builder.link(from, to, None), Err(TopologyError::TooManyLinks));
        assert_eq!(TopologyBuilder::default().build(), Err(TopologyError::Empty));
    }
}
