//! The referee: every packet is kept, and matched with itself.
//!
//! State grows with packets (32 bytes each) and flows: this is what the bounded algorithms are
//! judged by. Packets beyond a bound lie in files, if there is a place for them ([`Pile`]). It keeps flow
//! keys by design, so that its estimates can name flows.

mod alignment;
mod epochs;
mod estimate;
pub(crate) mod matching;
mod noted;
mod range;
mod records;
mod summary;
mod usual;
mod variation;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use twixt_model::{
    ClassId, Detail, Estimate, FlowHash, FlowKey, GroupId, Observation, PacketDigest, Timestamp,
};

use crate::codec::{DecodeError, Reader, Writer};
use crate::flow_key::{KEY_BYTES, read_key, write_key};
use crate::pile::Pile;
use crate::question::Question;
use crate::spill::SpillPlace;
use crate::synopsis::{ConfigOption, Needs, OptionKind, Pair, Synopsis, TwoPoint};
use crate::totals::Totals;
use noted::NotedFlows;
use records::ByDigest;

/// The referee. Unbounded, and says so.
#[derive(Clone, Debug)]
pub struct Exact {
    config: ExactConfig,
    totals: Totals,
    /// Those in memory are in order of time, unless they came far out of it or were merged: equality and
    /// bytes sort first.
    packets: Pile<ByDigest>,
    keys: BTreeMap<FlowHash, FlowKey>,
    noted: NotedFlows,
}

/// How far the referee looks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ExactConfig {
    /// Two sightings of equal packets are one packet only if their difference in time is within
    /// this many nanoseconds of the usual one.
    pub window: u64,
}

impl Default for ExactConfig {
    fn default() -> Self {
        Self { window: 60_000_000_000 }
    }
}

/// Bytes of an encoded observation.
pub(crate) const PACKET_BYTES: usize = 30;
/// A packet goes to its place among so many before it when it is kept, and else when all are sorted.
const STEPS_BACK_MAX: usize = 8;

impl Exact {
    /// By time.
    fn sorted(&self) -> Cow<'_, [ByDigest]> {
        let packets = self.packets.as_slice().filter(|packets| packets.is_sorted_by_key(|it| it.0));
        if let Some(packets) = packets {
            return Cow::Borrowed(packets);
        }
        let mut packets = std::mem::take(self.packets.clone().in_memory());
        // Runs in order are the most of it, which the stable sort makes use of.
        packets.sort_by_key(|packet| packet.0);
        Cow::Owned(packets)
    }

    /// At the end, or a few places before, where packets of the same moment belong.
    fn push(&mut self, packet: Observation) {
        self.packets.push(ByDigest(packet));
        let packets = self.packets.recent();
        let Some(last) = packets.len().checked_sub(1) else { return };
        for place in (last.saturating_sub(STEPS_BACK_MAX)..last).rev() {
            if packets[place].0 <= packet {
                break;
            }
            packets.swap(place, place + 1);
        }
    }
}

impl PartialEq for Exact {
    fn eq(&self, other: &Self) -> bool {
        self.config == other.config
            && self.totals == other.totals
            && self.keys == other.keys
            && self.sorted() == other.sorted()
    }
}

impl Synopsis for Exact {
    const NAME: &'static str = "exact";
    const TAG: u16 = 1;
    const SUMMARY: &'static str = "every packet matched individually; memory grows with packets";
    const NEEDS: Needs =
        Needs { digest: true, flow: true, detail: true, group: false, exchange: false };
    const OPTIONS: &'static [ConfigOption] = &[ConfigOption {
        name: "window",
        kind: OptionKind::Duration,
        help: "largest difference from the median delay for a packet to be matched",
    }];
    type Config = ExactConfig;

    fn sized(_memory_bytes: u64) -> Option<ExactConfig> {
        None
    }

    fn new(config: &ExactConfig) -> Self {
        Self {
            config: config.clone(),
            totals: Totals::default(),
            packets: Pile::new(None),
            keys: BTreeMap::new(),
            noted: NotedFlows::default(),
        }
    }

    fn emptied(&self) -> Self {
        Self { packets: Pile::new(self.packets.place()), ..Self::new(&self.config) }
    }

    fn config(&self) -> &ExactConfig {
        &self.config
    }

    fn spill_to(&mut self, place: &Arc<dyn SpillPlace>) {
        let mut packets = Pile::new(Some(place));
        packets.extend(&self.packets);
        self.packets = packets;
    }

    fn reads_headers(&self) -> bool {
        false
    }

    fn update(&mut self, observation: &Observation) {
        self.totals.add(observation.length);
        self.push(kept(observation));
    }

    fn update_detailed(&mut self, observation: &Observation, detail: &Detail) {
        if self.noted.is_new(observation.flow) {
            self.keys.entry(observation.flow).or_insert(detail.key);
        }
        self.update(observation);
    }

    fn merge(&mut self, other: &Self) {
        self.totals.merge(other.totals);
        self.packets.extend(&other.packets);
        self.keys.extend(&other.keys);
    }

    fn totals(&self) -> Totals {
        self.totals
    }

    fn state_bytes(&self) -> u64 {
        let packets = self.packets.len() * size_of::<Observation>();
        let keys = self.keys.len() * size_of::<(FlowHash, FlowKey)>();
        (size_of::<Totals>() + packets + keys) as u64
    }

    fn encode(&self, out: &mut Writer) {
        out.u64(self.config.window);
        self.totals.encode(out);
        out.u64(self.packets.len() as u64);
        out.reserve(self.packets.len() * PACKET_BYTES + self.keys.len() * KEY_BYTES);
        for ByDigest(packet) in self.sorted().iter() {
            write_packet(out, packet);
        }
        out.u64(self.keys.len() as u64);
        for (hash, key) in &self.keys {
            write_key(out, *hash, key);
        }
    }

    fn decode(input: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let config = ExactConfig { window: input.u64("window")? };
        let totals = Totals::decode(input)?;
        let packets = input.count("packets", PACKET_BYTES)?;
        let packet = |_| Ok(ByDigest(read_packet(input)?));
        let packets = Pile::of((0..packets).map(packet).collect::<Result<_, _>>()?);
        let keys = input.count("flow keys", KEY_BYTES)?;
        let keys = (0..keys).map(|_| read_key(input)).collect::<Result<_, _>>()?;
        Ok(Self { config, totals, packets, keys, noted: NotedFlows::default() })
    }
}

impl TwoPoint for Exact {
    const ESTIMATORS: &'static [&'static str] = &[];
    const PER_FLOW: bool = true;
    const MATCHES_PACKETS: bool = true;

    /// Packets that are taken out lie near an epoch's boundary, so near one end of the list:
    /// the search goes from both ends inward.
    fn remove(&mut self, observation: &Observation) {
        let packets = self.packets.in_memory();
        let count = packets.len();
        let inward = (0..count.div_ceil(2)).flat_map(|index| [index, count - 1 - index]);
        let wanted = ByDigest(kept(observation));
        let found = inward.into_iter().find(|&index| packets[index] == wanted);
        // A packet that is not there was invented by the sender of the epoch: nothing to undo.
        if let Some(index) = found {
            packets.swap_remove(index);
            self.totals.subtract(observation.length);
        }
    }

    fn estimate(pair: Pair<'_, Self>, question: &Question<'_>) -> Vec<Estimate> {
        estimate::estimate(pair, question)
    }
}

/// Without what the referee does not ask for, and does not write.
pub(crate) fn kept(observation: &Observation) -> Observation {
    Observation { group: GroupId::default(), ..*observation }
}

pub(crate) fn write_packet(out: &mut Writer, packet: &Observation) {
    out.i64(packet.time.as_nanos());
    out.u64(packet.digest.0);
    out.u64(packet.flow.0);
    out.u32(packet.length);
    out.u16(packet.class.0);
}

pub(crate) fn read_packet(input: &mut Reader<'_>) -> Result<Observation, DecodeError> {
    Ok(Observation {
        time: Timestamp::from_nanos(input.i64("packet time")?),
        digest: PacketDigest(input.u64("packet digest")?),
        flow: FlowHash(input.u64("packet flow")?),
        length: input.u32("packet length")?,
        class: ClassId(input.u16("packet class")?),
        group: GroupId::default(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bytes of a referee that was shown packets of these times, in nanoseconds.
    fn bytes(times: &[i64]) -> Vec<u8> {
        let mut exact = Exact::new(&ExactConfig::default());
        for &time in times {
            let digest = PacketDigest(time as u64);
            exact.update(&Observation {
                time: Timestamp::from_nanos(time),
                digest,
                ..Observation::default()
            });
        }
        let mut out = Writer::new();
        exact.encode(&mut out);
        out.into_bytes()
    }

    #[test]
    fn bytes_do_not_tell_in_which_order_packets_came() {
        let in_order: Vec<i64> = (0..100).collect();
        let neighbours: Vec<i64> = (0..100).map(|time| time ^ 1).collect();
        let far: Vec<i64> = (50..100).chain(0..50).collect();
        for other in [neighbours, far, in_order.iter().rev().copied().collect()] {
            assert_eq!(bytes(&in_order), bytes(&other));
        }
    }
}
