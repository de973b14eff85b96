//! Packets that only one of two points saw, and what made them.
//!
//! A packet that is changed on the way is missing at one point and a stray at the other: it looks
//! lost, and was not. What strays are like tells what made them, and which of the missing packets they
//! may be.

mod bounds;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;

use twixt_model::{COPIED_WITHIN, FlowHash, LossRange, Prehashed};

use crate::question::Question;

pub(crate) use bounds::{
    Bounds, CellDifference, MORE_DOWNSTREAM, Scattered, counted_strays, poisson_high, poisson_low,
};

/// A packet that only one point saw.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OneSided {
    /// Stands for its flow.
    pub flow: FlowHash,
    /// Length of the IP packet in bytes.
    pub length: u32,
    /// It is a fragment of a packet, other than the first.
    pub is_fragment: bool,
    /// Downstream saw an identical packet so many nanoseconds before, which upstream saw too.
    pub twin_ns: Option<i64>,
}

/// What the two points did not see alike.
#[derive(Clone, Debug, Default)]
pub struct Unmatched {
    /// Seen upstream only.
    pub missing: Vec<OneSided>,
    /// Seen downstream only.
    pub strays: Vec<OneSided>,
    /// Packets that both saw, by flow.
    pub matched: HashMap<FlowHash, u64, Prehashed>,
    /// Length of the longest packet that upstream saw, and downstream.
    pub longest: [u32; 2],
}

/// What made packets that only downstream saw.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StrayCause {
    /// The capture has frames twice.
    DoubledFrames,
    /// The network duplicates packets.
    Duplicates,
    /// A router between the points fragments packets.
    Fragmentation,
    /// Upstream saw packets before an adapter cut them into segments.
    OffloadUpstream,
    /// Downstream saw packets after an adapter merged segments.
    OffloadDownstream,
    /// Addresses or ports are translated between the points.
    Translation,
    /// Other fields are rewritten between the points.
    Rewriting,
    /// They come from elsewhere.
    OtherTraffic,
    /// Nothing tells.
    Unknown,
}

/// Identical frames so close to each other were not sent twice.
const DOUBLED_NS: i64 = COPIED_WITHIN.as_nanos();
/// Strays are explained by a cause if this share of them is of its kind.
const SHARE_MIN: f64 = 0.5;
/// The same of fragments and of merged segments: others are first fragments, and shorter segments.
const PART_MIN: f64 = 0.25;
/// Strays may explain this share of loss before it is a range.
const EXPLAINED_MAX: f64 = 0.1;
/// A cause is looked for if strays are at least this share of packets.
const MANY_MIN: f64 = 0.01;

impl Unmatched {
    /// Bounds on loss: what is missing, without what may have become a stray.
    ///
    /// Where few of the missing packets may have, all of them count as lost.
    #[must_use]
    pub fn loss(&self) -> LossRange {
        let (missing, changed) = (self.missing.len() as u64, self.changed());
        match changed as f64 <= EXPLAINED_MAX * missing as f64 {
            true => LossRange::exactly(missing),
            false => LossRange { min: missing - changed, max: missing },
        }
    }

    /// How many of the missing packets may be strays, changed on the way: as many as there are of
    /// both in a flow; where all of a flow is missing, as many as flows that appear downstream only
    /// have of the same length; and any packet may have become fragments.
    fn changed(&self) -> u64 {
        let (missing, strays) = (by_flow(&self.missing), by_flow(self.foreign()));
        let alike = |flow: &FlowHash| strays.get(flow).copied().unwrap_or(0);
        let own: u64 = missing.iter().map(|(flow, count)| alike(flow).min(*count)).sum();
        let is_known = |packet: &&OneSided| self.matched.contains_key(&packet.flow);
        let whole = lengths(self.missing.iter().filter(|packet| !is_known(packet)), |_| None);
        let is_elsewhere =
            |stray: &&OneSided| !is_known(stray) && !missing.contains_key(&stray.flow);
        let elsewhere = lengths(self.foreign().filter(is_elsewhere), |_| None);
        let renamed: u64 = whole
            .iter()
            .map(|(place, count)| elsewhere.get(place).map_or(0, |n| *n.min(count)))
            .sum();
        let fragments = self.strays.iter().filter(|stray| stray.is_fragment).count() as u64;
        (own + renamed + fragments).min(self.missing.len() as u64)
    }

    /// Strays that are no second copy of a packet.
    fn foreign(&self) -> impl Iterator<Item = &OneSided> {
        self.strays.iter().filter(|stray| stray.twin_ns.is_none())
    }

    /// What made the strays, if they are many or may explain loss.
    #[must_use]
    pub fn cause(&self) -> Option<StrayCause> {
        let strays = self.strays.len() as f64;
        let packets = self.missing.len() as u64 + self.matched.values().sum::<u64>();
        let is_many = strays > 0.0 && strays >= MANY_MIN * packets as f64;
        (is_many || self.loss().exact().is_none()).then(|| self.likely())
    }

    fn likely(&self) -> StrayCause {
        let share = |is_such: &dyn Fn(&&OneSided) -> bool| {
            self.strays.iter().filter(is_such).count() as f64 / self.strays.len().max(1) as f64
        };
        let [up_longest, down_longest] = self.longest;
        if share(&|stray| stray.twin_ns.is_some()) > SHARE_MIN {
            let is_doubled = |stray: &&OneSided| stray.twin_ns.is_some_and(|ns| ns <= DOUBLED_NS);
            return match share(&is_doubled) > SHARE_MIN {
                true => StrayCause::DoubledFrames,
                false => StrayCause::Duplicates,
            };
        }
        if share(&|stray| stray.is_fragment) >= PART_MIN {
            return StrayCause::Fragmentation;
        }
        let too_long = self.missing.iter().filter(|packet| packet.length > down_longest).count();
        if too_long as f64 > SHARE_MIN * self.missing.len() as f64 {
            return StrayCause::OffloadUpstream;
        }
        if share(&|stray| stray.length > up_longest) >= PART_MIN {
            return StrayCause::OffloadDownstream;
        }
        self.likely_by_flow()
    }

    /// By the flows of strays, and by packets of the same length that are missing.
    fn likely_by_flow(&self) -> StrayCause {
        let own: BTreeSet<FlowHash> = self
            .missing
            .iter()
            .map(|packet| packet.flow)
            .chain(self.matched.keys().copied())
            .collect();
        let missing = lengths(&self.missing, |packet| own_place(packet.flow, &self.matched));
        let strays = lengths(self.foreign(), |stray| match own.contains(&stray.flow) {
            true => own_place(stray.flow, &self.matched),
            false => None,
        });
        let alike = |is_own: bool| -> u64 {
            let places = strays.iter().filter(|((place, _), _)| place.is_some() == is_own);
            places
                .map(|(place, count)| missing.get(place).map_or(0, |other| *count.min(other)))
                .sum()
        };
        let foreign = self.foreign().count() as f64;
        let elsewhere = self.foreign().filter(|stray| !own.contains(&stray.flow)).count() as f64;
        match () {
            () if alike(true) as f64 > SHARE_MIN * foreign => StrayCause::Rewriting,
            () if alike(false) as f64 > SHARE_MIN * foreign => StrayCause::Translation,
            () if elsewhere > SHARE_MIN * foreign => StrayCause::OtherTraffic,
            () => StrayCause::Unknown,
        }
    }
}

/// Where a missing packet would be looked for among strays: in its flow, or, if all of the flow is
/// missing, in any other.
fn own_place(flow: FlowHash, matched: &HashMap<FlowHash, u64, Prehashed>) -> Option<FlowHash> {
    matched.contains_key(&flow).then_some(flow)
}

fn by_flow<'a>(packets: impl IntoIterator<Item = &'a OneSided>) -> BTreeMap<FlowHash, u64> {
    let mut flows = BTreeMap::new();
    for packet in packets {
        *flows.entry(packet.flow).or_default() += 1;
    }
    flows
}

/// How many packets there are of each place and length.
fn lengths<'a>(
    packets: impl IntoIterator<Item = &'a OneSided>,
    place: impl Fn(&OneSided) -> Option<FlowHash>,
) -> BTreeMap<(Option<FlowHash>, u32), u64> {
    let mut lengths = BTreeMap::new();
    for packet in packets {
        *lengths.entry((place(packet), packet.length)).or_default() += 1;
    }
    lengths
}

impl fmt::Display for StrayCause {
    /// The cause as the rest of a sentence, and what can be done about it.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::DoubledFrames => {
                "probably because the capture has frames twice: mirror one port or one direction \
                 only, or remove duplicates"
            }
            Self::Duplicates => "probably because the network duplicates packets",
            Self::Fragmentation => {
                "probably because packets are fragmented between the points: lower the MTU or MSS \
                 of senders, or capture on one side of the router that fragments"
            }
            Self::OffloadUpstream => {
                "probably because upstream saw packets before an adapter cut them into segments: \
                 capture with offloads off (ethtool -K IFACE tso off gso off)"
            }
            Self::OffloadDownstream => {
                "probably because downstream saw merged segments: capture with offloads off \
                 (ethtool -K IFACE gro off lro off)"
            }
            Self::Translation => {
                "probably because addresses or ports are translated between the points: use \
                 --digest nat"
            }
            Self::Rewriting => {
                "probably because fields are rewritten between the points: try --digest headers"
            }
            Self::OtherTraffic => {
                "probably because other traffic passes downstream: select that of the segment with \
                 --toward or a filter"
            }
            Self::Unknown => "cause unknown: --by flow shows which flows they are in",
        })
    }
}

/// Why loss is a range, or what strays are due to; `None` if there is nothing to say. Strays that
/// upstream may have failed to observe need no other reason.
pub(crate) fn stray_reason(
    question: &Question<'_>,
    lost: LossRange,
    strays: LossRange,
    cause: Option<StrayCause>,
) -> Option<String> {
    let is_explained = strays.min <= question.unobserved.upstream;
    if is_explained || (lost.exact().is_some() && cause.is_none()) {
        return None;
    }
    let count = match strays.exact() {
        Some(count) => count.to_string(),
        None => format!("at least {}", strays.min),
    };
    let cause = cause.map_or_else(String::new, |cause| format!(", {cause}"));
    let loss = match lost.exact() {
        Some(_) => String::new(),
        None => format!("; loss is between {} and {}", lost.min, lost.max),
    };
    Some(format!("{count} packets were seen downstream only{cause}{loss}"))
}

#[cfg(test)]
mod tests;
