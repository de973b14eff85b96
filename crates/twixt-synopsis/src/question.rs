//! What is asked of an algorithm.

use twixt_model::{
    ClassId, Delay, EpochRule, FlowHash, FlowKey, GroupId, Prefix, Scope, Span, Unobserved,
};

use crate::heartbeats::{Excluded, Heartbeats};

/// How estimates are split up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum By {
    /// One estimate for everything.
    #[default]
    All,
    /// One per directed flow.
    Flow,
    /// One per pair of source and destination prefix.
    Prefix {
        /// Bits of an IPv4 address that count.
        v4: u8,
        /// Bits of an IPv6 address that count.
        v6: u8,
    },
    /// One per protocol and service: the lower of the two ports is that of the service, as a rule.
    Port,
}

impl By {
    /// One per pair of addresses.
    pub const HOST: Self = Self::Prefix { v4: 32, v6: 128 };

    /// The scope that a flow's packets count for.
    #[must_use]
    pub fn scope_of(self, key: &FlowKey) -> Scope {
        match self {
            Self::All => Scope::All,
            Self::Flow => Scope::Flow(*key),
            Self::Prefix { v4, v6 } => {
                let length = if key.source.is_ipv4() { v4 } else { v6 };
                Scope::PrefixPair {
                    source: Prefix::of(key.source, length),
                    destination: Prefix::of(key.destination, length),
                }
            }
            Self::Port => Scope::Port {
                protocol: key.protocol,
                port: key.source_port.min(key.destination_port),
            },
        }
    }
}

/// What is asked of an algorithm about one pair of synopses.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    /// How estimates are split up.
    pub by: By,
    /// One of the algorithm's estimators; its first when `None`.
    pub estimator: Option<&'a str>,
    /// Flows to answer for, from algorithms that keep no flow keys of their own.
    pub flows: &'a [KnownFlow],
    /// Where these flows come from.
    pub listing: Listing,
    /// The interval of upstream time that the pair covers.
    pub span: Span,
    /// How estimates are cut by when packets left, which algorithms that match packets know: each
    /// scope has an estimate of the whole first, and then one of each epoch.
    pub cut: EpochRule,
    /// A rough idea of the delay, clock offset included. Time sums wrap around, and with clocks
    /// years apart a sum of delays would too: differences are taken relative to this one.
    pub reference: Delay,
    /// Most packets that points did not observe: what upstream missed looks like a stray.
    pub unobserved: Unobserved,
    /// Identical packets that take another time than others, of those that are known.
    pub heartbeats: &'a [Heartbeats],
    /// Whether every packet is to be in the estimate, from algorithms that keep every packet.
    pub packets: bool,
    /// Whether estimates of round trips are to have their distribution.
    pub distributions: bool,
}

impl Question<'_> {
    /// One estimate for everything, by the default estimator.
    #[must_use]
    pub const fn about(span: Span) -> Self {
        Self {
            by: By::All,
            estimator: None,
            flows: &[],
            listing: Listing::Named,
            span,
            cut: EpochRule::WHOLE,
            reference: Delay::ZERO,
            unobserved: Unobserved { upstream: 0, downstream: 0 },
            heartbeats: &[],
            packets: false,
            distributions: false,
        }
    }

    /// Heartbeats that are not the same ones at both points.
    pub(crate) fn incomplete(&self) -> impl Iterator<Item = &Heartbeats> {
        self.heartbeats.iter().filter(|alike| !alike.are_complete)
    }

    /// Those of a flow.
    pub(crate) fn incomplete_of(&self, flow: FlowHash) -> Excluded {
        Excluded::of(self.incomplete().filter(|alike| alike.flow == flow))
    }
}

/// Where a list of flows comes from, and so what it says of traffic that it does not name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Listing {
    /// A list of names: other flows may have sent packets too, and some of these may have sent none.
    #[default]
    Named,
    /// Flows that upstream saw, but not all of them.
    Seen,
    /// Every flow that upstream saw in the epoch.
    Passing,
}

/// A flow to answer for: from a list of the user's, from flow records, or from a table kept beside the
/// synopsis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KnownFlow {
    /// Stands for it in observations.
    pub hash: FlowHash,
    /// Its name.
    pub key: FlowKey,
    /// Stands for its prefixes in observations; 0 where no algorithm asks for it.
    pub group: GroupId,
    /// Packets that it sent within the epoch, where that is known.
    pub packets: Option<u64>,
    /// Its class, for algorithms that weigh classes differently.
    pub class: ClassId,
}
