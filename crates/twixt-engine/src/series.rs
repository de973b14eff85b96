//! One series of a segment: its pairing, and what of it was reported.

use std::collections::VecDeque;

use twixt_measure::{PairingCounts, QuestionTemplate, Sealed};
use twixt_model::{Delay, Epoch, EpochRule, Span, Timestamp};
use twixt_synopsis::By;

use crate::aligned::{AlignedConfig, AlignedPairing, Conclusion, Judgement, rule_of};
use crate::config::{EngineConfig, LateEpochs, SeriesProgress};
use crate::engine::Output;
use crate::event::{EngineEvent, Gap, GapReason, MinuteOver, PairEstimate, Series};
use crate::late::EpochRanges;
use crate::reported::Reported;

/// Epochs before the first that is needed that a replay starts with: that one's predecessor, and
/// the one whose packets were in flight then.
const REPLAY_MARGIN: i64 = 2;

/// Epochs before a restart that are looked at once more, if nothing was reported of them.
const UNREPORTED_EPOCHS_MAX: i64 = 256;

/// The pairing of one series.
#[derive(Debug)]
pub(crate) struct PairSeries {
    series: Series,
    rule: EpochRule,
    pairing: AlignedPairing,
    /// What the pairing counted that the engine has counted too.
    counted: PairingCounts,
    patience: Delay,
    by: By,
    /// Epochs that wait until it is known which belong together.
    held: VecDeque<Sealed>, // bounded by the caller
    reported: Reported,
    /// Epochs whose half came after they were concluded.
    late: EpochRanges,
    /// Epochs that were not compared while none seemed to belong together, of late.
    passed_over: Option<(Epoch, Epoch)>,
    /// Gaps that were reported before a restart, of epochs that may be concluded again.
    gaps: EpochRanges,
    minute_ns: i64, // positive
}

impl PairSeries {
    pub(crate) fn new(config: &EngineConfig, series: &Series) -> Self {
        let rule = rule_of(series);
        let aligned = aligned(series, config.by, config.patience, 0);
        Self {
            pairing: AlignedPairing::new(aligned, Epoch(i64::MIN), None).in_order(),
            counted: PairingCounts::default(),
            series: series.clone(),
            rule,
            patience: config.patience,
            by: config.by,
            held: VecDeque::new(),
            reported: Reported::nothing(),
            late: EpochRanges::default(),
            passed_over: None,
            gaps: EpochRanges::default(),
            minute_ns: config.minute.as_nanos().max(rule.length_ns().unwrap_or(i64::MAX)).max(1),
        }
    }

    pub(crate) fn resumed(config: &EngineConfig, progress: &SeriesProgress) -> Self {
        let mut resumed = Self::new(config, &progress.series);
        resumed.reported = Reported::resumed(progress);
        for &(first, last) in &progress.late {
            resumed.late.insert_range(first, last);
        }
        resumed.note_unreported(progress);
        let needed = Epoch(progress.replay_from.0.saturating_add(REPLAY_MARGIN));
        let learnt = Some((needed, progress.short_delays));
        resumed.align_knowing(progress.realigned_epochs.unwrap_or(0), learnt);
        resumed
    }

    /// Nothing was reported of the last epochs that are no longer waited for. Halves of them may have
    /// been stored just before the restart, and are not replayed.
    fn note_unreported(&mut self, progress: &SeriesProgress) {
        let Some(last) = progress.last else { return };
        let oldest = progress.through.0.saturating_sub(UNREPORTED_EPOCHS_MAX);
        let first = Epoch(last.0.saturating_add(1).max(oldest));
        if first <= progress.through {
            self.late.insert_range(first, progress.through);
        }
    }

    /// A half is stored, and handed over later unless it comes too late for that.
    pub(crate) fn note_stored(&mut self, epoch: Epoch) {
        if epoch <= self.reported.through {
            self.late.insert(epoch);
        }
    }

    /// `None` if there is nothing to remember.
    pub(crate) fn progress(&self, realigned_epochs: Option<i64>) -> Option<SeriesProgress> {
        let (through, last) = (self.reported.through, self.reported.all_last());
        let reported: Vec<(Epoch, u64)> =
            self.reported.all_beyond().into_iter().map(|epoch| (epoch, 0)).collect();
        if through == Epoch(i64::MIN) && reported.is_empty() {
            return None;
        }
        Some(SeriesProgress {
            series: self.series.clone(),
            through,
            last,
            reported,
            late: self.late.iter().collect(),
            summarised: Timestamp::MIN,
            realigned_epochs,
            short_delays: self.pairing.short_delays_before(through),
            replay_from: Epoch(through.0.saturating_sub(REPLAY_MARGIN)),
        })
    }

    /// Keeps an epoch until it is known which belong together.
    pub(crate) fn hold(&mut self, sealed: Sealed) {
        self.held.push_back(sealed);
    }

    /// How many are kept.
    pub(crate) fn held(&self) -> usize {
        self.held.len()
    }

    /// Pairs epochs whose numbers differ by this from now on; what waits is to be
    /// [finished](Self::finish) before. Hands over those that were kept.
    pub(crate) fn align(&mut self, realigned_epochs: i64) {
        self.align_knowing(realigned_epochs, None);
    }

    /// The same, with what was learnt of delays before an epoch.
    fn align_knowing(&mut self, realigned_epochs: i64, learnt: Option<(Epoch, u64)>) {
        let aligned = aligned(&self.series, self.by, self.patience, realigned_epochs);
        // An agent sends the epochs of a point one after the other, the oldest first.
        self.pairing = AlignedPairing::new(aligned, self.reported.through, learnt).in_order();
        self.counted = PairingCounts::default();
        if let Some((first, last)) = self.passed_over.take() {
            self.late.insert_range(first, last);
        }
        for sealed in std::mem::take(&mut self.held) {
            self.receive(sealed);
        }
    }

    /// Takes an epoch.
    pub(crate) fn receive(&mut self, sealed: Sealed) {
        let late = self.pairing.counts().late;
        let epoch = self.pairing.receive(sealed, None);
        if self.pairing.counts().late > late {
            self.late.insert(epoch);
        }
    }

    pub(crate) fn late_epochs(&self, realigned_epochs: i64) -> Option<LateEpochs> {
        let ranges: Vec<(Epoch, Epoch)> = self.late.iter().collect();
        let series = self.series.clone();
        (!ranges.is_empty()).then_some(LateEpochs { series, ranges, realigned_epochs })
    }

    /// Epochs whose half came after they were concluded.
    pub(crate) const fn late(&mut self) -> &mut EpochRanges {
        &mut self.late
    }

    /// A gap was reported before a restart. Both halves may be there by now.
    pub(crate) fn note_gap(&mut self, first: Epoch, last: Epoch) {
        let through = self.reported.through;
        if first <= through {
            self.late.insert_range(first, last.min(through));
        }
        if last > through {
            self.gaps.insert_range(first.max(Epoch(through.0.saturating_add(1))), last);
        }
    }

    pub(crate) fn advance(&mut self, now: Timestamp) {
        self.pairing.advance(now);
    }

    /// Bytes of memory that epochs take while they wait.
    pub(crate) fn waiting_bytes(&self) -> u64 {
        let held: u64 = self.held.iter().map(Sealed::memory_bytes).sum();
        self.pairing.waiting_bytes().saturating_add(held)
    }

    /// Concludes the oldest epoch that waits; whether there was one.
    pub(crate) fn give_up_oldest(&mut self) -> bool {
        self.pairing.give_up_oldest()
    }

    /// Nothing more will come that belongs together as before.
    pub(crate) fn finish(&mut self) {
        self.pairing.finish_upstream();
    }

    /// Reports what was concluded. `judge` says why an epoch must not be estimated. Whether a half
    /// was missing.
    pub(crate) fn drain(
        &mut self,
        judge: &mut dyn FnMut(Epoch) -> Judgement,
        output: &mut Output,
    ) -> bool {
        let mut is_unpaired = false;
        while let Some(conclusion) = self.pairing.poll(judge) {
            is_unpaired |=
                matches!(&conclusion, Conclusion::Gap(Gap { reason: GapReason::Unpaired(_), .. }));
            self.report(conclusion, output);
        }
        let counts = self.pairing.counts();
        output.counts.add(std::mem::replace(&mut self.counted, counts), counts);
        self.reported.conclude(self.pairing.concluded_through());
        is_unpaired
    }

    /// Reports that nothing is known of an epoch of upstream's, and of those before it.
    pub(crate) fn refuse(&mut self, epoch: Epoch, reason: GapReason, output: &mut Output) {
        self.pass_over(epoch);
        if epoch <= self.reported.through {
            return;
        }
        self.reported.conclude(Epoch(epoch.0.saturating_sub(1)));
        self.reported.through = epoch;
        self.report(Conclusion::Gap(self.pairing.gap(epoch, epoch, None, reason)), output);
    }

    /// An epoch is not compared. It is looked at once more when some turn out to belong together.
    pub(crate) fn pass_over(&mut self, epoch: Epoch) {
        let (first, last) = self.passed_over.unwrap_or((epoch, epoch));
        let (first, last) = (first.min(epoch), last.max(epoch));
        let oldest = Epoch(last.0.saturating_sub(UNREPORTED_EPOCHS_MAX));
        self.passed_over = Some((first.max(oldest), last));
    }

    /// Refuses those that were kept.
    pub(crate) fn refuse_held(&mut self, reason: &GapReason, output: &mut Output) {
        let held = std::mem::take(&mut self.held);
        held.iter().for_each(|sealed| self.pass_over(sealed.epoch));
        let upstream = &self.series.segment.upstream;
        let of_upstream = held.iter().filter(|sealed| sealed.point == *upstream);
        let mut epochs: Vec<Epoch> = of_upstream.map(|sealed| sealed.epoch).collect();
        epochs.sort_unstable();
        for epoch in epochs {
            self.refuse(epoch, reason.clone(), output);
        }
    }

    fn report(&mut self, conclusion: Conclusion, output: &mut Output) {
        let epoch = conclusion.epoch();
        if epoch > self.pairing.concluded_through().max(self.reported.through) {
            // Refused before its turn.
            if !self.reported.add_beyond(epoch) {
                output.counts.duplicates += 1;
                return;
            }
        } else {
            for (first, last) in self.reported.missing_before(epoch) {
                let missing = self.pairing.gap(first, last, None, GapReason::NothingCame);
                self.report_gap(&missing, output);
            }
            self.report_minute_before(epoch, output);
            self.reported.note(epoch);
        }
        match conclusion {
            Conclusion::Gap(gap) => self.report_gap(&gap, output),
            Conclusion::Estimate(estimate) => self.report_estimate(estimate, output),
        }
    }

    fn report_gap(&mut self, gap: &Gap, output: &mut Output) {
        match self.reported.unreported(gap.first, gap.last) {
            Some((first, last)) => {
                for (first, last, is_stored) in self.gaps.runs(first, last) {
                    let (point, reason) = (gap.point.clone(), gap.reason.clone());
                    let gap = Gap { is_stored, ..self.pairing.gap(first, last, point, reason) };
                    output.counts.gaps = output.counts.gaps.saturating_add(gap.epochs());
                    output.events.push_back(EngineEvent::Gap(gap));
                }
            }
            None => output.counts.replayed += gap.epochs(),
        }
    }

    fn report_estimate(&mut self, estimate: PairEstimate, output: &mut Output) {
        let was_gap = self.gaps.contains(estimate.epoch);
        if self.reported.was_reported(estimate.epoch) && !was_gap {
            output.counts.replayed += 1;
        } else {
            output.counts.estimated += 1;
            let estimate = PairEstimate { is_late: was_gap, ..estimate };
            output.events.push_back(EngineEvent::Estimated(Box::new(estimate)));
        }
    }

    /// Reports that the minute of the last epoch that was reported is over, if `epoch` lies in a
    /// later one.
    fn report_minute_before(&self, epoch: Epoch, output: &mut Output) {
        let Some(last) = self.reported.all_last() else { return };
        let minute = self.minute_of(last);
        if minute < self.minute_of(epoch) {
            let start_ns = minute.saturating_mul(self.minute_ns);
            let end_ns = start_ns.saturating_add(self.minute_ns - 1);
            let moment = Timestamp::from_nanos;
            let span = Span { start: moment(start_ns), end: moment(end_ns) };
            output.counts.summaries += 1;
            let over = MinuteOver { series: self.series.clone(), span };
            output.events.push_back(EngineEvent::MinuteOver(over));
        }
    }

    fn minute_of(&self, epoch: Epoch) -> i64 {
        self.rule.span_of(epoch).start.as_nanos().div_euclid(self.minute_ns)
    }
}

fn aligned(series: &Series, by: By, patience: Delay, realigned_epochs: i64) -> AlignedConfig {
    let question = QuestionTemplate { by, ..QuestionTemplate::default() };
    AlignedConfig { series: series.clone(), question, realigned_epochs, patience }
}
