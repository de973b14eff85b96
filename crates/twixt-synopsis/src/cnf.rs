//! Consistent NetFlow: delays out of flow records.
//!
//! A meter of flows keeps two times of every flow, those of its first and its last packet. If two
//! points select the same packets, by a hash of what no router changes, then these are the times
//! of the same two packets, and their differences are delays. Two delays say little of a long
//! flow; but packets that pass at about the same time wait in the same queue, so the delays of
//! all flows tell of each.
//!
//! Lee, Duffield, Kompella: "Opportunistic Flow-level Latency Estimation using Consistent
//! NetFlow". What is kept here are the selected packets themselves, from which records are made
//! when the question comes: so a packet can be moved to another epoch, and merging is exact.
//! Memory grows with selected packets, and flow keys are kept by design. A meter that must not
//! grow is [`FlowCache`], whose records [`Association`] and [`conclude`] take just as well.

mod association;
mod cache;
mod config;
mod endpoints;
mod estimate;
mod judge;
mod merge;
mod pairing;
mod places;
mod recent;
pub mod rivals;

use std::collections::BTreeMap;

use twixt_model::{Detail, Estimate, FlowHash, FlowKey, FlowRecord, Observation};

use crate::codec::{DecodeError, Reader, Writer};
use crate::exact::{PACKET_BYTES, kept, read_packet, write_packet};
use crate::flow_key::{KEY_BYTES, read_key, write_key};
use crate::question::Question;
use crate::synopsis::{ConfigOption, DetailsOf, Needs, OptionKind, Pair, Synopsis, TwoPoint};
use crate::totals::Totals;
use places::Places;

pub use association::{
    Associated, Association, AssociationCounts, Rule, TimingBounds, TimingVerdict, associate,
    judge_by_timing,
};
pub use cache::{FlowCache, FlowCacheConfig, FlowCacheCounts};
pub use config::{CnfConfig, Select};
pub use endpoints::{Endpoints, Sums};
pub use estimate::{FlowQuestion, PairedRecords, RecordEstimator, by_flow, conclude, unjudged};
pub use merge::{Merge, in_order};
pub use pairing::{PairingBounds, RecordPairing, RecordPairingConfig, RecordPairingCounts};

/// The packets that a meter with consistent selection took.
#[derive(Clone, Debug)]
pub struct Cnf {
    config: CnfConfig,
    totals: Totals,
    /// In no particular order: equality and bytes sort first.
    selected: Vec<Selected>,
    keys: BTreeMap<FlowHash, FlowKey>,
    /// Where packets lie in `selected`; made when the first is taken out.
    places: Option<Places>,
}

/// A packet, and its flags of TCP where they were seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Selected {
    packet: Observation,
    tcp_flags: u8,
}

impl Cnf {
    /// Packets that were selected.
    #[must_use]
    pub fn selected(&self) -> u64 {
        self.selected.len() as u64
    }

    /// The records that a meter makes of these packets.
    #[must_use]
    pub fn records(&self) -> Vec<FlowRecord> {
        let mut cache = FlowCache::new(self.config.cache());
        let mut records = Vec::new();
        for Selected { packet, tcp_flags } in self.sorted() {
            let detail = Detail {
                key: self.keys.get(&packet.flow).copied().unwrap_or_else(|| stand_in(packet.flow)),
                tcp: Some(twixt_model::TcpFields { flags: tcp_flags, ..Default::default() }),
                ..Detail::default()
            };
            cache.observe(&packet, &detail);
            records.extend(std::iter::from_fn(|| cache.poll()));
        }
        cache.finish();
        records.extend(std::iter::from_fn(|| cache.poll()));
        records
    }

    /// The records of this point, upstream, with those of the other that belong to them.
    #[must_use]
    pub fn associated_with(&self, downstream: &Self) -> Vec<Associated> {
        associate(self.config.rule(), &self.records(), &downstream.records())
    }

    fn sorted(&self) -> Vec<Selected> {
        let mut selected = self.selected.clone();
        selected.sort_unstable();
        selected
    }

    /// Keeps a selected packet. Apart from those that are not, which should cost next to nothing.
    #[inline(never)]
    fn keep(&mut self, observation: &Observation, detail: Option<&Detail>) {
        if let Some(places) = &mut self.places {
            places.add(observation.digest, self.selected.len());
        }
        let tcp_flags = detail.and_then(|detail| detail.tcp).map_or(0, |tcp| tcp.flags);
        self.selected.push(Selected { packet: kept(observation), tcp_flags });
        if let Some(detail) = detail {
            self.keys.entry(observation.flow).or_insert(detail.key);
        }
    }
}

/// A packet that came without details, so that its flow key is unknown: both points still
/// tell it from others.
fn stand_in(hash: FlowHash) -> FlowKey {
    let [a, b, c, d, e, f, g, h] = hash.0.to_be_bytes();
    FlowKey { source: [a, b, c, d].into(), destination: [e, f, g, h].into(), ..FlowKey::default() }
}

impl PartialEq for Cnf {
    fn eq(&self, other: &Self) -> bool {
        self.config == other.config
            && self.totals == other.totals
            && self.keys == other.keys
            && self.sorted() == other.sorted()
    }
}

impl Synopsis for Cnf {
    const NAME: &'static str = "cnf";
    const TAG: u16 = 6;
    const SUMMARY: &'static str =
        "delays from flow records of consistently sampled packets; memory grows with their number";
    const NEEDS: Needs =
        Needs { digest: true, flow: true, detail: true, group: false, exchange: false };
    const OPTIONS: &'static [ConfigOption] = &[
        option("sampling", OptionKind::Number, "share of packets or flows that are metered"),
        option("select", OptionKind::Choice(Select::NAMES), "what is sampled: packets or flows"),
        option("active_timeout", OptionKind::Duration, "close a record after this time"),
        option(
            "inactive_timeout",
            OptionKind::Duration,
            "close a record after this time without a packet",
        ),
        option(
            "associate",
            OptionKind::Choice(config::ASSOCIATE_NAMES),
            "how records are matched: by packet labels, or by their times alone",
        ),
        option("propagation_min", OptionKind::Duration, "timing: smallest propagation delay"),
        option("propagation_max", OptionKind::Duration, "timing: largest propagation delay"),
        option("processing", OptionKind::Duration, "timing: largest time in queues"),
        option("clock_bound", OptionKind::Duration, "timing: largest clock difference"),
        option("outliers", OptionKind::Number, "share of the largest delays to leave out"),
    ];
    type Config = CnfConfig;

    fn sized(_memory_bytes: u64) -> Option<CnfConfig> {
        None
    }

    fn new(config: &CnfConfig) -> Self {
        let (totals, selected) = (Totals::default(), Vec::new());
        Self { config: config.clone(), totals, selected, keys: BTreeMap::new(), places: None }
    }

    fn config(&self) -> &CnfConfig {
        &self.config
    }

    fn details_of(&self) -> DetailsOf {
        self.config.details_of()
    }

    fn update(&mut self, observation: &Observation) {
        self.totals.add(observation.length);
        if self.config.selects(observation) {
            self.keep(observation, None);
        }
    }

    #[inline]
    fn update_detailed(&mut self, observation: &Observation, detail: &Detail) {
        self.totals.add(observation.length);
        if self.config.selects(observation) {
            self.keep(observation, Some(detail));
        }
    }

    fn merge(&mut self, other: &Self) {
        self.totals.merge(other.totals);
        self.selected.extend_from_slice(&other.selected);
        self.places = None;
        self.keys.extend(&other.keys);
    }

    fn totals(&self) -> Totals {
        self.totals
    }

    fn state_bytes(&self) -> u64 {
        let selected = self.selected.len() * size_of::<Selected>();
        let keys = self.keys.len() * size_of::<(FlowHash, FlowKey)>();
        (size_of::<Totals>() + selected + keys) as u64
    }

    fn encode(&self, out: &mut Writer) {
        self.config.encode(out);
        self.totals.encode(out);
        out.u64(self.selected.len() as u64);
        for Selected { packet, tcp_flags } in self.sorted() {
            write_packet(out, &packet);
            out.u8(tcp_flags);
        }
        out.u64(self.keys.len() as u64);
        for (hash, key) in &self.keys {
            write_key(out, *hash, key);
        }
    }

    fn decode(input: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let config = CnfConfig::decode(input)?;
        let totals = Totals::decode(input)?;
        let selected = input.count("selected packets", PACKET_BYTES + 1)?;
        let selected = (0..selected).map(|_| read_selected(input)).collect::<Result<_, _>>()?;
        let keys = input.count("flow keys", KEY_BYTES)?;
        let keys = (0..keys).map(|_| read_key(input)).collect::<Result<_, _>>()?;
        Ok(Self { config, totals, selected, keys, places: None })
    }
}

impl TwoPoint for Cnf {
    const ESTIMATORS: &'static [&'static str] = &RecordEstimator::NAMES;
    const PER_FLOW: bool = true;

    fn remove(&mut self, observation: &Observation) {
        if !self.config.selects(observation) {
            self.totals.subtract(observation.length);
            return;
        }
        let packet = kept(observation);
        let places = self.places.get_or_insert_with(|| Places::of(&self.selected));
        let of_digest = places.of_digest(packet.digest);
        let found = of_digest.iter().rev().find(|&&place| self.selected[place].packet == packet);
        // A packet that is not there was invented by the sender of the epoch: nothing to undo.
        if let Some(&place) = found {
            places.swap_remove(&mut self.selected, place);
            self.totals.subtract(observation.length);
        }
    }

    fn estimate(pair: Pair<'_, Self>, question: &Question<'_>) -> Vec<Estimate> {
        estimate::of_pair(pair, question)
    }
}

const fn option(name: &'static str, kind: OptionKind, help: &'static str) -> ConfigOption {
    ConfigOption { name, kind, help }
}

fn read_selected(input: &mut Reader<'_>) -> Result<Selected, DecodeError> {
    Ok(Selected { packet: read_packet(input)?, tcp_flags: input.u8("flags")? })
}
