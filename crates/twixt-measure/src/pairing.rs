//! Sealed epochs to estimates: brings the two ends of a segment together.
//!
//! Before an epoch is estimated, packets that were in flight at its boundaries are moved to the
//! epoch of their upstream time. That takes what both points kept near the boundaries in this
//! epoch and its neighbours, so an epoch waits until its neighbours are there, or no longer
//! expected. Where points send their epochs in order, nothing is expected before the first that
//! both sent.
//!
//! Parts of one epoch from different runs of an agent are combined: a restarted agent saw
//! the rest of the epoch. Threads and interfaces of one run are combined by the agent, so
//! a second epoch of the same run is a duplicate.

mod boundary;
mod conclude;
mod event;
mod learnt;
mod slot;
mod unobserved;

pub use event::{PairingCounts, PairingError, PairingEvent, PointSummary, UnpairedReason};
pub use slot::RUNS_MAX;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use twixt_model::{Delay, Epoch, EpochRule, Segment, Side, Timestamp};
use twixt_synopsis::{By, Heartbeats, KnownFlow, Listing};

use crate::sealed::{CutKind, Difference, Sealed, SealedMismatch, same_rule};
use boundary::is_severed;
use learnt::Learnt;
use slot::{Added, Slot};

/// Most epochs that are remembered, waiting or concluded. The oldest is given up for a new one.
pub const WAITING_EPOCHS_MAX: usize = 64;

/// How epochs of a segment are brought together.
#[derive(Clone, Debug)]
pub struct PairingConfig {
    /// The two points.
    pub segment: Segment,
    /// Name of the class of traffic; empty without classes.
    pub class: String,
    /// What is asked of the algorithm.
    pub question: QuestionTemplate,
    /// How long after an epoch's end its halves are waited for: must cover how long agents wait
    /// for late packets, and the way from agent to collector. An epoch is given up when its
    /// successor is no longer waited for, since that has a part of the packets in flight.
    pub patience: Delay,
}

/// What is asked of the algorithm in every epoch.
#[derive(Clone, Debug, Default)]
pub struct QuestionTemplate {
    /// How estimates are split up.
    pub by: By,
    /// One of the algorithm's estimators; its first when `None`.
    pub estimator: Option<String>,
    /// Flows to answer for.
    pub flows: Arc<[KnownFlow]>,
    /// Where flows come from, those that an epoch brings with it included.
    pub listing: Listing,
    /// A rough idea of the delay, clock offset included.
    pub reference: Delay,
    /// Packets of which nobody knows how many were in flight at the ends of what is compared.
    pub heartbeats: Arc<[Heartbeats]>,
    /// Whether every packet is to be in the estimate, from algorithms that keep every packet.
    pub packets: bool,
    /// How estimates are cut by when packets left, where one epoch is of all time.
    pub cut: EpochRule,
    /// What can be done where packets in flight are not known.
    pub remedy: Remedy,
}

/// What can be done where what was kept near a boundary does not suffice to know which packets were in
/// flight.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Remedy {
    /// Keep more, or use longer epochs.
    #[default]
    Guard,
    /// Use longer epochs, or match packets: how much is kept cannot be chosen.
    Length,
}

/// Brings together what the two points of a segment saw in the same epoch.
///
/// The first epoch received says how time is cut; epochs that are cut otherwise are refused.
#[derive(Debug)]
pub struct Pairing {
    config: PairingConfig,
    /// How time is cut, and which side set it first.
    rule: Option<(Side, EpochRule)>,
    /// Boxed, since few wait as a rule: a map has room for many.
    slots: BTreeMap<Epoch, Box<Slot>>, // at most WAITING_EPOCHS_MAX
    /// All epochs up to this one are concluded or given up.
    horizon: Epoch,
    /// The newest epoch that came of upstream, and of downstream.
    newest: [Option<Epoch>; 2],
    oldest_downstream: Option<Epoch>,
    /// The newest that came when it was concluded or given up.
    newest_late: Option<Epoch>,
    /// Whether points hand their epochs over in order.
    is_in_order: bool,
    learnt: Learnt,
    events: VecDeque<PairingEvent>,
    counts: PairingCounts,
}

impl Pairing {
    /// Nothing received yet.
    #[must_use]
    pub fn new(config: PairingConfig) -> Self {
        Self {
            config,
            rule: None,
            slots: BTreeMap::new(),
            horizon: Epoch(i64::MIN),
            newest: [None; 2],
            oldest_downstream: None,
            newest_late: None,
            is_in_order: false,
            learnt: Learnt::default(),
            events: VecDeque::new(),
            counts: PairingCounts::default(),
        }
    }

    /// Goes on where another pairing was: all epochs up to `through` are concluded. Of delays it
    /// knows what that one knew before an epoch, as
    /// [`short_delays_before`](Self::short_delays_before) returned, and learns from there on.
    #[must_use]
    pub fn resumed(config: PairingConfig, through: Epoch, learnt: (Epoch, u64)) -> Self {
        Self { horizon: through, learnt: Learnt::resumed(learnt), ..Self::new(config) }
    }

    /// Each run of a point hands its epochs over in order: what would come before the first that
    /// both points have sent does not come.
    #[must_use]
    pub fn in_order(self) -> Self {
        Self { is_in_order: true, ..self }
    }

    /// All epochs up to this one are concluded or given up.
    #[must_use]
    pub const fn concluded_through(&self) -> Epoch {
        self.horizon
    }

    /// Delays in a row that were far shorter than what is kept, at all boundaries before the one
    /// at which an epoch starts. As long as there are few, packets missing at a boundary may be
    /// late ones. Known of the epochs that were concluded last.
    #[must_use]
    pub fn short_delays_before(&self, epoch: Epoch) -> u64 {
        self.learnt.before(epoch)
    }

    /// Takes an epoch of one of the points. Those of other points and classes are ignored.
    pub fn receive(&mut self, sealed: Sealed) {
        self.receive_with_flows(sealed, None);
    }

    /// As [`receive`](Self::receive), with the flows that upstream saw in the epoch: the algorithm
    /// is asked about these rather than about those that the configuration names.
    pub fn receive_with_flows(&mut self, sealed: Sealed, flows: Option<Arc<[KnownFlow]>>) {
        let Some(side) = self.side_of(&sealed) else {
            self.counts.foreign += 1;
            return;
        };
        self.counts.received += 1;
        let epoch = sealed.epoch;
        if let Err(mismatch) = self.check_rule(side, sealed.rule) {
            self.counts.refused += 1;
            self.events.push_back(PairingEvent::Refused { epoch, reason: mismatch.into() });
            return;
        }
        let newest = &mut self.newest[side as usize];
        if newest.is_some_and(|newest| epoch < newest) {
            self.counts.out_of_order += 1;
        }
        *newest = Some(newest.map_or(epoch, |newest| newest.max(epoch)));
        if side == Side::Downstream {
            let oldest = self.oldest_downstream.map_or(epoch, |oldest| oldest.min(epoch));
            self.oldest_downstream = Some(oldest);
        }
        if epoch <= self.horizon {
            self.counts.late += 1;
            self.newest_late = self.newest_late.max(Some(epoch));
            return;
        }
        self.add(side, sealed);
        if let (Some(flows), Some(slot)) = (flows, self.slots.get_mut(&epoch)) {
            slot.flows = Some(flows);
        }
        self.conclude_ready();
        self.make_room();
    }

    /// Advances the time. Halves that did not come within the configured patience are given up.
    pub fn advance(&mut self, now: Timestamp) {
        let Some(rule) = self.rule().filter(|&rule| rule != EpochRule::WHOLE) else { return };
        let waited_for = rule.epoch_of(now - self.config.patience);
        self.give_up_through(Epoch(waited_for.0.saturating_sub(2)), UnpairedReason::Missing);
        self.conclude_ready();
    }

    /// The next event. Epochs are estimated oldest first; one that lacks a half, or whose
    /// predecessor may still come, holds up the others while patience lasts. A refusal comes as
    /// soon as it is certain.
    pub fn poll(&mut self) -> Option<PairingEvent> {
        self.events.pop_front()
    }

    /// Nothing more will come: concludes all that waits. Where packets of upstream's first epoch
    /// all arrived in downstream's first, which is the next, downstream saw nothing in the epoch
    /// that it lacks.
    pub fn finish(&mut self) {
        self.stand_in_before_first();
        self.stand_in_after_last();
        if let Some((&newest, _)) = self.slots.last_key_value() {
            self.give_up_through(newest, UnpairedReason::Missing);
        }
    }

    /// The same, but only up to the newest epoch that came of upstream: what waits beyond is
    /// forgotten. For when downstream's numbers turn out to mean something else.
    pub fn finish_upstream(&mut self) {
        let newest = self.newest[Side::Upstream as usize];
        self.slots.retain(|&epoch, _| newest.is_some_and(|newest| epoch <= newest));
        self.finish();
    }

    /// Bytes of memory that epochs take while they wait.
    #[must_use]
    pub fn waiting_bytes(&self) -> u64 {
        let waiting = self.slots.values().filter(|slot| !slot.is_concluded());
        waiting.map(|slot| slot.memory_bytes()).sum()
    }

    /// Concludes the oldest epoch that waits, with what there is, to make room. Whether there was
    /// one.
    pub fn give_up_oldest(&mut self) -> bool {
        let oldest = self.slots.iter().find(|(_, slot)| !slot.is_concluded());
        let Some((&oldest, _)) = oldest else { return false };
        self.counts.crowded_out += 1;
        self.crowd_out(oldest);
        self.conclude_ready();
        true
    }

    /// What happened so far.
    #[must_use]
    pub const fn counts(&self) -> PairingCounts {
        self.counts
    }

    fn side_of(&self, sealed: &Sealed) -> Option<Side> {
        let Segment { upstream, downstream } = &self.config.segment;
        match () {
            () if sealed.class != self.config.class => None,
            () if sealed.point == *upstream => Some(Side::Upstream),
            () if sealed.point == *downstream => Some(Side::Downstream),
            () => None,
        }
    }

    fn rule(&self) -> Option<EpochRule> {
        self.rule.map(|(_, rule)| rule)
    }

    fn check_rule(&mut self, side: Side, rule: EpochRule) -> Result<(), SealedMismatch> {
        let (first, expected) = *self.rule.get_or_insert((side, rule));
        match (first, side) {
            (Side::Upstream, Side::Downstream) => {
                same_rule(expected, rule).map_err(Difference::between_points)
            }
            (Side::Downstream, Side::Upstream) => {
                same_rule(rule, expected).map_err(Difference::between_points)
            }
            _ => same_rule(expected, rule).map_err(Difference::within_point),
        }
    }

    fn add(&mut self, side: Side, sealed: Sealed) {
        let epoch = sealed.epoch;
        let slot = self.slots.entry(epoch).or_default();
        match slot.add(side, sealed) {
            Ok(Added::New) => {}
            Ok(Added::Merged) => self.counts.merged_runs += 1,
            Ok(Added::Duplicate) => self.counts.duplicates += 1,
            Ok(Added::AfterConclusion) => self.counts.late += 1,
            Err(reason) => {
                slot.conclude();
                self.counts.refused += 1;
                self.events.push_back(PairingEvent::Refused { epoch, reason });
            }
        }
    }

    /// Concludes epochs, oldest first, until one has to wait.
    fn conclude_ready(&mut self) {
        while let Some((&epoch, _)) = self.slots.iter().find(|(_, slot)| !slot.is_concluded())
            && self.is_ready(epoch)
        {
            self.conclude(epoch, UnpairedReason::Missing);
            self.retire_through(epoch);
        }
    }

    fn is_ready(&self, epoch: Epoch) -> bool {
        self.slots.get(&epoch).is_some_and(|slot| slot.is_complete())
            && (!self.needs_neighbours(epoch)
                || ((self.is_known(epoch.0.saturating_sub(1)) || self.is_first(epoch))
                    && self.is_known(epoch.0.saturating_add(1))))
    }

    /// Whether nothing can come of epochs before this one: nothing did, and the runs of both points
    /// that it is of have sent the next. To wait for its predecessor would be to keep all epochs of
    /// as long as patience lasts, whenever points begin.
    fn is_first(&self, epoch: Epoch) -> bool {
        let next = self.slots.get(&Epoch(epoch.0.saturating_add(1)));
        self.is_in_order
            && self.horizon == Epoch(i64::MIN)
            && self.slots.first_key_value().is_some_and(|(&oldest, first)| {
                oldest == epoch
                    && next.is_some_and(|next| next.is_complete() && !is_severed(first, next))
            })
    }

    /// Whether packets can be in flight at the epoch's boundaries.
    fn needs_neighbours(&self, epoch: Epoch) -> bool {
        let cut = self.slots.get(&epoch).and_then(|slot| slot.cut());
        self.rule() != Some(EpochRule::WHOLE) && cut == Some(CutKind::Timed)
    }

    /// Whether all that can come of an epoch has come.
    fn is_known(&self, epoch: i64) -> bool {
        let epoch = Epoch(epoch);
        epoch <= self.horizon
            || self.slots.get(&epoch).is_some_and(|slot| slot.is_concluded() || slot.is_complete())
    }

    /// Concludes all epochs up to `last` with what there is, and expects no more of them.
    fn give_up_through(&mut self, last: Epoch, reason: UnpairedReason) {
        let waiting: Vec<Epoch> = self.slots.range(..=last).map(|(&epoch, _)| epoch).collect();
        for epoch in waiting {
            self.conclude(epoch, reason);
        }
        self.retire_through(last);
    }

    /// Forgets all epochs up to `last`, which are concluded, but the newest of them: it knows what
    /// was in flight at its end.
    fn retire_through(&mut self, last: Epoch) {
        self.horizon = self.horizon.max(last);
        let Some((&kept, _)) = self.slots.range(..=last).next_back() else { return };
        while let Some(entry) = self.slots.first_entry()
            && *entry.key() < kept
        {
            entry.remove();
        }
    }

    fn make_room(&mut self) {
        while self.slots.len() > WAITING_EPOCHS_MAX
            && let Some((&oldest, slot)) = self.slots.first_key_value()
        {
            if !slot.is_concluded() {
                self.counts.crowded_out += 1;
            }
            self.crowd_out(oldest);
            self.slots.remove(&oldest);
            self.conclude_ready();
        }
    }

    fn crowd_out(&mut self, oldest: Epoch) {
        self.stand_in_before_first();
        self.give_up_through(oldest, UnpairedReason::CrowdedOut);
    }
}

#[cfg(test)]
mod tests;
