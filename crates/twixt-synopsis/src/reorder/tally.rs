//! What is known of prefixes: counts, in a table of bounded size.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;

use twixt_model::{Prefix, ReorderEstimate, ReorderExtent};

use super::judge::Verdict;
use crate::codec::{DecodeError, Reader, Writer};

/// Version of the bytes of all algorithms for reordering: 2 has undecided packets and duplicates.
pub(super) const VERSION: u8 = 2;

/// Packets of one prefix, or of one flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Tally {
    pub(super) packets: u64,
    pub(super) out_of_order: u64,
    pub(super) retransmitted: u64,
    pub(super) undecided: u64,
    /// Not among the packets.
    pub(super) duplicates: u64,
    /// Sum and maximum of how far packets were overtaken; only the referee knows.
    pub(super) extent_sum: u64,
    pub(super) extent_max: u32,
}

impl Tally {
    /// Encoded, with its prefix; of version 1, the shortest.
    const BYTES_MIN: usize = 1 + 16 + 1 + 4 * 8 + 4;

    #[inline]
    pub(super) fn count(&mut self, verdict: Verdict) {
        let count = match verdict {
            Verdict::Ignored => return,
            Verdict::Duplicate => {
                self.duplicates = self.duplicates.saturating_add(1);
                return;
            }
            Verdict::InOrder => None,
            Verdict::OutOfOrder => Some(&mut self.out_of_order),
            Verdict::Retransmitted => Some(&mut self.retransmitted),
            Verdict::Undecided => Some(&mut self.undecided),
        };
        if let Some(count) = count {
            *count = count.saturating_add(1);
        }
        self.packets = self.packets.saturating_add(1);
    }

    pub(super) fn add(&mut self, other: &Self) {
        self.packets = self.packets.saturating_add(other.packets);
        self.out_of_order = self.out_of_order.saturating_add(other.out_of_order);
        self.retransmitted = self.retransmitted.saturating_add(other.retransmitted);
        self.undecided = self.undecided.saturating_add(other.undecided);
        self.duplicates = self.duplicates.saturating_add(other.duplicates);
        self.extent_sum = self.extent_sum.saturating_add(other.extent_sum);
        self.extent_max = self.extent_max.max(other.extent_max);
    }

    fn conclude(&self, prefix: Prefix, with_extent: bool) -> ReorderEstimate {
        let extent = (with_extent && self.out_of_order > 0).then(|| ReorderExtent {
            mean: self.extent_sum as f64 / self.out_of_order as f64,
            largest: self.extent_max,
        });
        let Self { packets, out_of_order, retransmitted, undecided, duplicates, .. } = *self;
        ReorderEstimate {
            prefix,
            packets,
            out_of_order,
            retransmitted,
            undecided,
            duplicates,
            extent,
        }
    }
}

/// Tallies by prefix, of so many prefixes at most. When they are too many, the half with the
/// least reordering is forgotten; their packets are counted as such.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Tallies {
    most: usize,
    prefixes: HashMap<Prefix, Tally>,
    /// Of prefixes that were forgotten.
    forgotten: Tally,
}

impl Tallies {
    pub(super) fn new(most: usize) -> Self {
        Self { most, prefixes: HashMap::with_capacity(most), forgotten: Tally::default() }
    }

    /// Of as many prefixes as there are.
    pub(super) fn unbounded() -> Self {
        Self { most: usize::MAX, prefixes: HashMap::new(), forgotten: Tally::default() }
    }

    pub(super) const fn bytes_for(prefixes: usize) -> u64 {
        (prefixes * size_of::<(Prefix, Tally)>()) as u64
    }

    pub(super) fn state_bytes(&self) -> u64 {
        Self::bytes_for(self.prefixes.len().max(if self.most == usize::MAX {
            0
        } else {
            self.most
        }))
    }

    /// Adds what was seen of a prefix.
    pub(super) fn add(&mut self, prefix: Prefix, tally: &Tally) {
        if tally.packets == 0 && tally.duplicates == 0 {
            return;
        }
        if self.prefixes.len() >= self.most && !self.prefixes.contains_key(&prefix) {
            self.forget_half();
        }
        self.prefixes.entry(prefix).or_default().add(tally);
    }

    pub(super) fn merge(&mut self, other: &Self) {
        self.forgotten.add(&other.forgotten);
        for (prefix, tally) in other.ordered() {
            self.add(prefix, tally);
        }
    }

    fn forget_half(&mut self) {
        let mut ranked: Vec<(Prefix, Tally)> = self.prefixes.drain().collect();
        ranked.sort_unstable_by_key(|(prefix, tally)| {
            let late = tally.out_of_order.saturating_add(tally.undecided);
            (std::cmp::Reverse((late, tally.packets)), *prefix)
        });
        for (_, tally) in ranked.split_off(self.most / 2) {
            self.forgotten.add(&tally);
        }
        self.prefixes.extend(ranked);
    }

    fn ordered(&self) -> BTreeMap<Prefix, &Tally> {
        self.prefixes.iter().map(|(prefix, tally)| (*prefix, tally)).collect()
    }

    /// The reports on prefixes, worst first.
    pub(super) fn conclude(&self, with_extent: bool) -> Vec<ReorderEstimate> {
        let tallies = self.prefixes.iter();
        let mut prefixes: Vec<ReorderEstimate> =
            tallies.map(|(prefix, tally)| tally.conclude(*prefix, with_extent)).collect();
        prefixes.sort_by(|one, other| {
            let worse = other.fraction().unwrap_or(0.0).total_cmp(&one.fraction().unwrap_or(0.0));
            worse.then(other.packets.cmp(&one.packets)).then(one.prefix.cmp(&other.prefix))
        });
        prefixes
    }

    pub(super) fn encode(&self, out: &mut Writer) {
        write_tally(out, &self.forgotten);
        out.u64(self.prefixes.len() as u64);
        for (prefix, tally) in self.ordered() {
            write_prefix(out, prefix);
            write_tally(out, tally);
        }
    }

    /// Reads bytes of any version up to [`VERSION`].
    pub(super) fn decode(
        most: usize,
        input: &mut Reader<'_>,
        version: u8,
    ) -> Result<Self, DecodeError> {
        let forgotten = read_tally(input, version)?;
        let count = input.count("prefixes", Tally::BYTES_MIN)?;
        if count > most {
            return Err(DecodeError::invalid("prefixes", format!("{count}, at most {most}")));
        }
        let mut prefixes = HashMap::with_capacity(count);
        for _ in 0..count {
            let prefix = read_prefix(input)?;
            prefixes.insert(prefix, read_tally(input, version)?);
        }
        Ok(Self { most, prefixes, forgotten })
    }
}

fn write_tally(out: &mut Writer, tally: &Tally) {
    out.u64(tally.packets);
    out.u64(tally.out_of_order);
    out.u64(tally.retransmitted);
    out.u64(tally.extent_sum);
    out.u32(tally.extent_max);
    out.u64(tally.undecided);
    out.u64(tally.duplicates);
}

fn read_tally(input: &mut Reader<'_>, version: u8) -> Result<Tally, DecodeError> {
    let tally = Tally {
        packets: input.u64("packets")?,
        out_of_order: input.u64("packets out of order")?,
        retransmitted: input.u64("retransmitted packets")?,
        extent_sum: input.u64("sum of extents")?,
        extent_max: input.u32("largest extent")?,
        ..Tally::default()
    };
    // Before, every late packet was either out of order or retransmitted.
    if version < 2 {
        return Ok(tally);
    }
    let undecided = input.u64("undecided packets")?;
    Ok(Tally { undecided, duplicates: input.u64("duplicates")?, ..tally })
}

fn write_prefix(out: &mut Writer, prefix: Prefix) {
    let (version, mapped) = match prefix.address() {
        IpAddr::V4(address) => (4, address.to_ipv6_mapped()),
        IpAddr::V6(address) => (6, address),
    };
    out.u8(version);
    out.raw(&mapped.octets());
    out.u8(prefix.length());
}

fn read_prefix(input: &mut Reader<'_>) -> Result<Prefix, DecodeError> {
    let version = input.u8("address family")?;
    let octets: [u8; 16] = input.raw("prefix", 16)?.try_into().expect("raw() gave 16 bytes");
    let address = match (version, IpAddr::from(octets)) {
        (4, mapped) => mapped.to_canonical(),
        (6, address) => address,
        _ => {
            let problem = format!("{version} is not 4 or 6");
            return Err(DecodeError::invalid("address family", problem));
        }
    };
    Ok(Prefix::of(address, input.u8("prefix length")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_without_reordering_are_forgotten_first() {
        let mut tallies = Tallies::new(4);
        let prefix = |number: u8| Prefix::of(IpAddr::from([10, 0, number, 0]), 24);
        for number in 0..40 {
            let out_of_order = u64::from(number % 20 == 3);
            tallies.add(prefix(number), &Tally { packets: 10, out_of_order, ..Tally::default() });
        }
        let estimates = tallies.conclude(false);
        assert!(estimates.len() <= 4);
        assert_eq!([estimates[0].prefix, estimates[1].prefix], [prefix(3), prefix(23)]);
        let kept: u64 = estimates.iter().map(|estimate| estimate.packets).sum();
        assert_eq!(kept + tallies.forgotten.packets, 400);
    }
}
