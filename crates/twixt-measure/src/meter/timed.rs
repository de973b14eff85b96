//! Epochs that end by the time of each packet.

use std::collections::BTreeMap;

use twixt_model::{Batch, Delay, Epoch, EpochRule, Span, Timestamp};

use super::config::MeterConfig;
use super::sealer::{OpenEpoch, Sealer};
use super::span_of;
use crate::cut::{TimedCut, Zone};
use crate::tally::Tally;

/// Most epochs open at once, however long late packets are waited for.
pub const OPEN_EPOCHS_MAX: i64 = 8;

#[derive(Debug)]
pub(super) struct Timed {
    cut: TimedCut,
    whole: bool,
    lateness: Delay,
    open: BTreeMap<Epoch, OpenEpoch>,
    /// Latest time seen or set; `None` before any.
    watermark: Option<Timestamp>,
    /// The oldest epoch that is not sealed. Moves back only while nothing is sealed yet.
    oldest: Epoch,
    sealed_any: bool,
    /// What was counted before there was any epoch.
    pending: Tally,
}

impl Timed {
    pub(super) fn new(config: &MeterConfig) -> Self {
        Self {
            cut: TimedCut::new(config.rule, config.shift, config.guard),
            whole: config.rule == EpochRule::WHOLE,
            lateness: config.lateness.max(Delay::ZERO),
            open: BTreeMap::new(),
            watermark: None,
            oldest: Epoch(0),
            sealed_any: false,
            pending: Tally::default(),
        }
    }

    pub(super) fn observe(&mut self, batch: Batch<'_>, span: Span, sealer: &mut Sealer) {
        if let Some(mut newest) = self.open.last_entry() {
            let interior = self.cut.interior_of(*newest.key());
            if interior.contains(span.start) && interior.contains(span.end) {
                newest.get_mut().add(batch, span);
                self.advance(span.end, sealer);
                return;
            }
        }
        self.observe_runs(batch, sealer);
    }

    pub(super) fn advance(&mut self, time: Timestamp, sealer: &mut Sealer) {
        let watermark = self.watermark.map_or(time, |watermark| watermark.max(time));
        if self.watermark.is_none() && !self.sealed_any {
            self.oldest = self.cut.epoch_of(time);
        }
        self.watermark = Some(watermark);
        self.seal_before(self.floor(watermark), sealer);
    }

    pub(super) fn finish(&mut self, sealer: &mut Sealer) {
        if self.whole && !self.sealed_any {
            // Zero packets in all the time there is are worth saying, so it need not be open.
            self.open_epoch(Epoch(0), sealer);
            self.seal_before(Epoch(1), sealer);
        } else if let Some(newest) = self.newest() {
            self.seal_before(Epoch(newest.0 + 1), sealer);
        }
    }

    /// The newest epoch's, or one for later if there is none yet.
    pub(super) fn tally(&mut self, sealer: &mut Sealer) -> &mut Tally {
        match self.newest() {
            Some(newest) => &mut self.open_epoch(newest, sealer).tally,
            None => &mut self.pending,
        }
    }

    /// The first and the last epoch that a packet of this time may count in: one in flight at a
    /// boundary may count in the epoch beside.
    pub(super) fn epochs_near(&self, within: Span) -> (Epoch, Epoch) {
        let guard = self.cut.guard();
        let (one, other) =
            (self.cut.epoch_of(within.start - guard), self.cut.epoch_of(within.end + guard));
        (one.min(other), one.max(other))
    }

    /// Cuts a batch into runs of packets of one epoch.
    fn observe_runs(&mut self, batch: Batch<'_>, sealer: &mut Sealer) {
        let mut from = 0;
        while from < batch.len() {
            let rest = &batch.observations[from..];
            let epoch = self.cut.epoch_of(rest[0].time);
            let run = rest.iter().take_while(|seen| self.cut.epoch_of(seen.time) == epoch).count();
            self.observe_run(epoch, batch.slice(from, from + run), sealer);
            from += run;
        }
    }

    fn observe_run(&mut self, epoch: Epoch, batch: Batch<'_>, sealer: &mut Sealer) {
        let Some(span) = span_of(batch.observations) else { return };
        self.advance(span.end, sealer);
        if !self.admits(epoch) {
            let late = batch.len() as u64;
            sealer.counts.late_packets = sealer.counts.late_packets.saturating_add(late);
            let tally = self.tally(sealer);
            tally.late = tally.late.saturating_add(late);
            return;
        }
        let cut = self.cut;
        let open = self.open_epoch(epoch, sealer);
        open.add(batch, span);
        for observation in batch.observations {
            match cut.zone(epoch, observation.time) {
                Zone::Head => open.head.insert(*observation),
                Zone::Tail => open.tail.insert(*observation),
                Zone::Interior => {}
            }
        }
    }

    /// Whether packets of the epoch can still be counted.
    fn admits(&mut self, epoch: Epoch) -> bool {
        let floor = self.watermark.map(|watermark| self.floor(watermark));
        if !self.sealed_any && floor.is_some_and(|floor| epoch >= floor) {
            self.oldest = self.oldest.min(epoch);
        }
        epoch >= self.oldest
    }

    /// The oldest epoch that stays open at that time.
    fn floor(&self, watermark: Timestamp) -> Epoch {
        let newest = self.cut.epoch_of(watermark);
        let waited_for = self.cut.epoch_of(watermark - self.lateness);
        waited_for.max(Epoch(newest.0.saturating_sub(OPEN_EPOCHS_MAX - 1)))
    }

    /// The epoch of the latest time, or the next one if `finish` has sealed that.
    fn newest(&self) -> Option<Epoch> {
        if self.whole && self.sealed_any {
            return None;
        }
        Some(self.cut.epoch_of(self.watermark?).max(self.oldest))
    }

    fn seal_before(&mut self, end: Epoch, sealer: &mut Sealer) {
        if end <= self.oldest {
            return;
        }
        let mut next = self.oldest;
        while let Some(entry) = self.open.first_entry()
            && *entry.key() < end
        {
            let (epoch, open) = entry.remove_entry();
            sealer.seal_silent(next, epoch);
            sealer.seal(epoch, open);
            next = Epoch(epoch.0 + 1);
        }
        sealer.seal_silent(next, end);
        self.oldest = end;
        self.sealed_any = true;
    }

    fn open_epoch(&mut self, epoch: Epoch, sealer: &mut Sealer) -> &mut OpenEpoch {
        if !self.open.contains_key(&epoch) {
            let before = self.open.range_mut(..epoch).next_back().map(|(_, before)| before);
            let open = sealer.open_after(before);
            let open = self.with_pending(open);
            self.open.insert(epoch, open);
        }
        self.open.get_mut(&epoch).expect("it was inserted if it was not there")
    }

    fn with_pending(&mut self, mut open: OpenEpoch) -> OpenEpoch {
        open.tally.merge(&std::mem::take(&mut self.pending));
        open
    }
}
