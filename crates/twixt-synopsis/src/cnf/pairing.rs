//! From the records of two points to the delays of flows, as the records come.
//!
//! [`conclude`](super::conclude) wants all records at once. Here they come one by one, about in the
//! order in which they were closed, and none is kept for longer than the window: what is kept of
//! the stream besides is one line for each scope of the answer.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use twixt_model::{ClassId, Estimate, FlowKey, FlowRecord, Scope, Side, Span, Timestamp};

use super::association::{Associated, Association, AssociationCounts, Rule};
use super::config::CnfConfig;
use super::endpoints::Sums;
use super::estimate::{FlowQuestion, Group, RecordEstimator};
use super::recent::RecentDelays;
use crate::question::By;

/// What is asked of the records of two points, before the first comes.
#[derive(Clone, Copy, Debug)]
pub struct RecordPairingConfig {
    /// How records are recognised.
    pub rule: Rule,
    /// How long a record may wait for its partner: as long as meters take to close records.
    pub window_ns: u64,
    /// The longest that a record lasts.
    pub active_timeout_ns: u64,
    /// How estimates are split up.
    pub by: By,
    /// How delays are concluded.
    pub estimator: RecordEstimator,
    /// The share of the largest delays that is left out.
    pub outliers: f64,
    /// What is held at most.
    pub bounds: PairingBounds,
}

/// What is held at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PairingBounds {
    /// Records that wait for their partner, and pairs that wait for the delays of others.
    pub records_max: usize,
    /// Scopes of the answer.
    pub scopes_max: usize,
}

impl PairingBounds {
    /// If the user does not say otherwise.
    pub const DEFAULT: Self = Self { records_max: Association::RECORDS_MAX, scopes_max: 1 << 21 };
}

impl RecordPairingConfig {
    /// As a meter of these settings closes records.
    #[must_use]
    pub fn new(config: &CnfConfig, by: By, estimator: RecordEstimator) -> Self {
        Self {
            rule: config.rule(),
            window_ns: config.window_ns(),
            active_timeout_ns: config.active_timeout_ns(),
            by,
            estimator,
            outliers: config.outliers(),
            bounds: PairingBounds::DEFAULT,
        }
    }
}

/// What became of the records, and where a bound was met.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecordPairingCounts {
    /// What became of the records.
    pub association: AssociationCounts,
    /// Negative delays: the clocks differ by more than packets were late.
    pub negative_delays: u64,
    /// Delays that came later than the window allows: Multiflow did without them.
    pub late_delays: u64,
    /// Pairs that did not wait for the delays of others to come: there was no room.
    pub hurried: u64,
    /// Delays that made place for others while records may still have asked for them.
    pub forgotten_delays: u64,
    /// Records of scopes beyond those that the answer has room for.
    pub beyond_scopes: u64,
}

/// Brings the records of two points together and concludes the delays of flows.
#[derive(Debug)]
pub struct RecordPairing {
    config: RecordPairingConfig,
    association: Association,
    delays: RecentDelays,
    /// Pairs that wait for the delays of others.
    waiting: Vec<Waiting>,
    scopes: Scopes,
    /// When `delays` were last put in order.
    settled: Timestamp,
    counts: RecordPairingCounts,
    held_max: usize,
}

/// What is kept of a pair: where its delays count, and which ones.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    scope: u32,
    class: ClassId,
    first: Timestamp,
    last: Timestamp,
    packets: u64,
}

/// Delays are put in order so often within a window: each time costs a look at all that wait.
const SETTLED_PER_WINDOW: u64 = 8;

impl RecordPairing {
    /// Nothing yet.
    #[must_use]
    pub fn new(config: RecordPairingConfig) -> Self {
        let RecordPairingConfig { rule, window_ns, active_timeout_ns, outliers, bounds, .. } =
            config;
        // A pair that waits ended after what is in order, and began a timeout earlier at most.
        let reach_ns = i64::try_from(window_ns.max(active_timeout_ns)).unwrap_or(i64::MAX);
        Self {
            config,
            association: Association::new(rule, window_ns, bounds.records_max),
            delays: RecentDelays::new(reach_ns, bounds.records_max, outliers),
            waiting: Vec::new(),
            scopes: Scopes::new(bounds.scopes_max),
            settled: Timestamp::MIN,
            counts: RecordPairingCounts::default(),
            held_max: 0,
        }
    }

    /// Takes a record. `packet_rate` is the share of a flow's packets that its records count, as
    /// far as that is known by now.
    pub fn offer(&mut self, side: Side, record: FlowRecord, packet_rate: f64) {
        self.count(side, &record);
        let clock_steps = self.association.counts().clock_steps;
        self.association.offer(side, record);
        self.take_pairs(packet_rate);
        if self.association.counts().clock_steps > clock_steps {
            self.settle_all();
            self.delays.restart();
            self.settled = Timestamp::MIN;
        }
        let settled = self.association.settled_before();
        if settled.as_nanos().saturating_sub(self.settled.as_nanos()) >= self.pace_ns() {
            self.settle(settled);
        }
        let records_max = self.config.bounds.records_max;
        if self.waiting.len() > records_max || self.delays.waiting() > 2 * records_max {
            self.hurry();
        }
    }

    /// Concludes with what there is: no more records come.
    pub fn finish(&mut self, packet_rate: f64) {
        self.association.finish();
        self.take_pairs(packet_rate);
        self.settle_all();
    }

    /// What became of the records so far.
    #[must_use]
    pub fn counts(&self) -> RecordPairingCounts {
        RecordPairingCounts {
            association: self.association.counts(),
            late_delays: self.delays.late,
            forgotten_delays: self.delays.forgotten,
            ..self.counts
        }
    }

    /// Records, pairs and delays that are held now: what is bounded by the window.
    #[must_use]
    pub fn held(&self) -> usize {
        self.association.waiting() + self.waiting.len() + self.delays.len()
    }

    /// The most that was held when delays were put in order, which is when it is most.
    #[must_use]
    pub const fn held_max(&self) -> usize {
        self.held_max
    }

    /// What the records tell, by scope. Flows that never passed upstream have no delay.
    #[must_use]
    pub fn estimates(self, packet_rate: f64, span: Span) -> Vec<Estimate> {
        let RecordPairingConfig { by, estimator, outliers, .. } = self.config;
        let question = FlowQuestion { by, estimator, packet_rate, outliers, span };
        self.scopes.estimates(&question)
    }

    fn pace_ns(&self) -> i64 {
        i64::try_from(self.config.window_ns / SETTLED_PER_WINDOW).unwrap_or(i64::MAX)
    }

    /// Counts the packets of a record for its scope.
    fn count(&mut self, side: Side, record: &FlowRecord) {
        let Some(scope) = self.scopes.place(self.config.by, &record.key) else {
            self.counts.beyond_scopes += 1;
            return;
        };
        let group = self.scopes.group(scope);
        let packets = match side {
            Side::Upstream => &mut group.upstream,
            Side::Downstream => &mut group.downstream,
        };
        *packets = packets.saturating_add(record.packets);
    }

    fn take_pairs(&mut self, packet_rate: f64) {
        while let Some(pair) = self.association.poll() {
            self.take(&pair, packet_rate);
        }
    }

    fn take(&mut self, pair: &Associated, packet_rate: f64) {
        let FlowRecord { key, class, first, last, packets, .. } = pair.upstream;
        for (time, delay) in pair.delays() {
            self.counts.negative_delays += u64::from(delay.as_nanos() < 0);
            if self.config.estimator != RecordEstimator::Endpoint {
                self.delays.add(class, time, delay);
            }
        }
        let Some(scope) = self.scopes.place(self.config.by, &key) else { return };
        match self.config.estimator.takes_own(packets, packet_rate) {
            true => {
                let own = Sums::of(pair.delays().map(|(_, delay)| delay));
                self.scopes.group(scope).add(packets, own);
            }
            false => self.waiting.push(Waiting { scope, class, first, last, packets }),
        }
    }

    /// Concludes pairs that ended before that time: no delay that counts for them is missing.
    fn settle(&mut self, before: Timestamp) {
        self.held_max = self.held_max.max(self.held());
        self.settled = before;
        self.delays.settle(before);
        let Self { waiting, delays, scopes, .. } = self;
        waiting.retain(|&Waiting { scope, class, first, last, packets }| {
            let is_settled = last < before;
            if is_settled {
                scopes.group(scope).add(packets, delays.between(class, first, last));
            }
            !is_settled
        });
        delays.forget();
    }

    /// Concludes about half of the pairs that wait, with the delays that have come so far.
    fn hurry(&mut self) {
        let waiting = self.waiting.len();
        match self.delays.middle() {
            Some(middle) => self.settle(middle),
            None => self.settle_all(),
        }
        self.counts.hurried += (waiting - self.waiting.len()) as u64;
    }

    fn settle_all(&mut self) {
        // The last moment of all would not be before itself; no record ends there.
        self.settle(Timestamp::MAX);
        self.waiting.clear();
    }
}

/// One line for each scope of the answer.
#[derive(Debug)]
struct Scopes {
    places: HashMap<Scope, u32, RandomState>,
    groups: Vec<Group>,
    scopes_max: usize,
}

impl Scopes {
    fn new(scopes_max: usize) -> Self {
        let scopes_max = scopes_max.clamp(1, u32::MAX as usize);
        Self { places: HashMap::default(), groups: Vec::new(), scopes_max }
    }

    /// Where the packets of a flow count; `None` if there is no room.
    fn place(&mut self, by: By, key: &FlowKey) -> Option<u32> {
        let scope = by.scope_of(key);
        if let Some(&place) = self.places.get(&scope) {
            return Some(place);
        }
        if self.groups.len() >= self.scopes_max {
            return None;
        }
        let place = self.groups.len() as u32;
        self.groups.push(Group::default());
        self.places.insert(scope, place);
        Some(place)
    }

    fn group(&mut self, place: u32) -> &mut Group {
        &mut self.groups[place as usize]
    }

    fn estimates(self, question: &FlowQuestion) -> Vec<Estimate> {
        let mut scopes: Vec<(Scope, u32)> = self.places.into_iter().collect();
        scopes.sort_unstable();
        let passed = |&(_, place): &(Scope, u32)| self.groups[place as usize].upstream > 0;
        let scopes = scopes.into_iter().filter(passed);
        let estimate =
            |(scope, place): (Scope, u32)| self.groups[place as usize].estimate(scope, question);
        scopes.map(estimate).collect()
    }
}

#[cfg(test)]
mod tests;
