//! A topology under way: links may come before the routers that they join.

use super::{ImportError, ProblemPlace};
use crate::topology::{LINKS_MAX, Topology, TopologyBuilder, TopologyError};
use crate::weight::Weight;

/// Routers and links in the order of the file.
#[derive(Default)]
pub(super) struct Draft {
    builder: TopologyBuilder,
    links: Vec<DraftLink>,
    /// Whether links go one way, unless they say so themselves.
    pub(super) directed: bool,
    /// Whether routers are those that links name, and there is no list of them.
    pub(super) routers_by_links: bool,
}

/// A link as a file has it: by identifiers.
pub(super) struct DraftLink {
    pub(super) place: ProblemPlace,
    pub(super) from: String,
    pub(super) to: String,
    pub(super) weight: Option<Weight>,
    /// Whether it goes one way; None if it does not say so itself.
    pub(super) directed: Option<bool>,
}

impl Draft {
    pub(super) fn router(
        &mut self,
        place: ProblemPlace,
        identifier: &str,
        name: &str,
    ) -> Result<(), ImportError> {
        self.builder.router(identifier, name).map(drop).map_err(ImportError::at(place))
    }

    pub(super) fn link(&mut self, link: DraftLink) -> Result<(), ImportError> {
        if self.links.len() == LINKS_MAX {
            return Err(ImportError::at(link.place)(TopologyError::TooManyLinks));
        }
        self.links.push(link);
        Ok(())
    }

    pub(super) fn finish(mut self) -> Result<Topology, ImportError> {
        for link in self.links {
            let at = |error| ImportError::at(link.place)(error);
            let mut router = |identifier: &str| match self.routers_by_links {
                true => self.builder.router_or_new(identifier),
                false => self.builder.known_router(identifier),
            };
            let (from, to) = (router(&link.from).map_err(at)?, router(&link.to).map_err(at)?);
            self.builder.link(from, to, link.weight).map_err(at)?;
            if !link.directed.unwrap_or(self.directed) {
                self.builder.link(to, from, link.weight).map_err(at)?;
            }
        }
        self.builder.build().map_err(ImportError::at(ProblemPlace::File))
    }
}
