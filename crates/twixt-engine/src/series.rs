//! One series of a segment: its pairing, and what of it was reported.

use std::collections::VecDeque;

use twixt_measure::{
    Pairing, PairingConfig, PairingCounts, PairingEvent, QuestionTemplate, Sealed,
};
use twixt_model::{Delay, Epoch, EpochRule, PointId, Span, Timestamp};

use crate::engine::{EngineConfig, Output, SeriesProgress};
use crate::event::{EngineEvent, Gap, GapReason, MinuteOver, PairEstimate, Series};
use crate::reported::Reported;

/// Epochs before the first that is needed that a replay starts with: that one's predecessor, and
/// the one whose packets were in flight then.
const REPLAY_MARGIN: i64 = 2;

/// Why loss is not known beside an epoch that is missing.
pub const MISSING_BESIDE: &str = "an epoch beside this one did not come: loss is not known";

/// The pairing of one series.
#[derive(Debug)]
pub(crate) struct PairSeries {
    series: Series,
    rule: EpochRule,
    pairing: Pairing,
    /// What the pairing counted that the engine has counted too.
    counted: PairingCounts,
    patience: Delay,
    question: QuestionTemplate,
    /// Downstream's numbers are larger by this.
    realigned_epochs: i64,
    /// Epochs that wait until it is known which belong together.
    held: VecDeque<Sealed>, // bounded by whoever holds
    reported: Reported,
    minute_ns: i64, // positive
}

/// What is concluded of an epoch.
enum Conclusion {
    Gap(Gap),
    Estimate(PairEstimate),
}

/// What is to be thought of an epoch.
#[derive(Debug, Default)]
pub(crate) struct Judgement {
    /// Why it must not be estimated.
    pub(crate) refused: Option<GapReason>,
    /// An epoch beside it did not come.
    pub(crate) is_edge: bool,
}

impl PairSeries {
    pub(crate) fn new(config: &EngineConfig, series: &Series) -> Self {
        let rule = rule_of(series);
        let question = QuestionTemplate { by: config.by, ..QuestionTemplate::default() };
        Self {
            pairing: pairing(series, &question, config.patience, Epoch(i64::MIN), None),
            counted: PairingCounts::default(),
            series: series.clone(),
            rule,
            patience: config.patience,
            question,
            realigned_epochs: 0,
            held: VecDeque::new(),
            reported: Reported::nothing(),
            minute_ns: config.minute.as_nanos().max(rule.length_ns().unwrap_or(i64::MAX)).max(1),
        }
    }

    pub(crate) fn resumed(config: &EngineConfig, progress: &SeriesProgress) -> Self {
        let mut resumed = Self::new(config, &progress.series);
        resumed.reported = Reported::resumed(progress);
        let needed = Epoch(progress.replay_from.0.saturating_add(REPLAY_MARGIN));
        let learnt = Some((needed, progress.short_delays));
        resumed.align_knowing(progress.realigned_epochs.unwrap_or(0), learnt);
        resumed
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
        self.realigned_epochs = realigned_epochs;
        self.question.reference = self.shift();
        let (through, patience) = (self.reported.through, self.patience);
        self.pairing = pairing(&self.series, &self.question, patience, through, learnt);
        self.counted = PairingCounts::default();
        for sealed in std::mem::take(&mut self.held) {
            self.receive(sealed);
        }
    }

    /// Takes an epoch, downstream's by upstream's numbers.
    pub(crate) fn receive(&mut self, sealed: Sealed) {
        let sealed = if sealed.point == self.series.segment.downstream {
            let epoch = Epoch(sealed.epoch.0.saturating_sub(self.realigned_epochs));
            Sealed { epoch, shift: sealed.shift + self.shift(), ..sealed }
        } else {
            sealed
        };
        self.pairing.receive(sealed);
    }

    pub(crate) fn advance(&mut self, now: Timestamp) {
        self.pairing.advance(now);
    }

    /// Nothing more will come that belongs together as before.
    pub(crate) fn finish(&mut self) {
        self.pairing.finish_upstream();
    }

    /// Tells what was concluded. `judge` says why an epoch must not be estimated. Whether a half
    /// was missing.
    pub(crate) fn drain(
        &mut self,
        judge: &mut dyn FnMut(Epoch) -> Judgement,
        output: &mut Output,
    ) -> bool {
        let mut is_unpaired = false;
        while let Some(event) = self.pairing.poll() {
            is_unpaired |= matches!(event, PairingEvent::Unpaired { .. });
            let event = self.judged(event, judge);
            self.report(event, output);
        }
        let counts = self.pairing.counts();
        output.counts.add(std::mem::replace(&mut self.counted, counts), counts);
        self.reported.conclude(self.pairing.concluded_through());
        is_unpaired
    }

    /// Reports that nothing is known of an epoch of upstream's, and of those before it.
    pub(crate) fn refuse(&mut self, epoch: Epoch, reason: GapReason, output: &mut Output) {
        if epoch <= self.reported.through {
            return;
        }
        self.reported.conclude(Epoch(epoch.0.saturating_sub(1)));
        self.reported.through = epoch;
        self.report(Conclusion::Gap(self.gap(epoch, epoch, None, reason)), output);
    }

    /// Refuses those that were kept.
    pub(crate) fn refuse_held(&mut self, reason: &GapReason, output: &mut Output) {
        let upstream = &self.series.segment.upstream;
        let mut epochs: Vec<Epoch> = std::mem::take(&mut self.held)
            .into_iter()
            .filter(|sealed| sealed.point == *upstream)
            .map(|sealed| sealed.epoch)
            .collect();
        epochs.sort_unstable();
        for epoch in epochs {
            self.refuse(epoch, reason.clone(), output);
        }
    }

    /// By how much downstream's times are moved to find their epoch.
    fn shift(&self) -> Delay {
        let length_ns = self.rule.length_ns().unwrap_or(0);
        Delay::from_nanos(self.realigned_epochs.saturating_mul(length_ns))
    }

    fn judged(&self, event: PairingEvent, judge: &mut dyn FnMut(Epoch) -> Judgement) -> Conclusion {
        match event {
            PairingEvent::Estimated { epoch, span, estimates, upstream, downstream, moved } => {
                let silent = upstream.packets == 0 && downstream.packets == 0;
                let judgement = if silent { Judgement::default() } else { judge(epoch) };
                if let Some(reason) = judgement.refused {
                    return Conclusion::Gap(self.gap(epoch, epoch, None, reason));
                }
                let mut estimates = estimates;
                if judgement.is_edge {
                    estimates.iter_mut().for_each(|estimate| estimate.forget_loss(MISSING_BESIDE));
                }
                let (series, realigned_epochs) = (self.series.clone(), self.realigned_epochs);
                Conclusion::Estimate(PairEstimate {
                    series,
                    epoch,
                    span,
                    estimates,
                    upstream,
                    downstream,
                    moved,
                    realigned_epochs,
                })
            }
            PairingEvent::Unpaired { epoch, point, reason } => {
                Conclusion::Gap(self.gap(epoch, epoch, Some(point), GapReason::Unpaired(reason)))
            }
            PairingEvent::Refused { epoch, reason } => {
                Conclusion::Gap(self.gap(epoch, epoch, None, GapReason::Refused(reason)))
            }
        }
    }

    fn gap(&self, first: Epoch, last: Epoch, point: Option<PointId>, reason: GapReason) -> Gap {
        let span = self.rule.span_of(first).union(self.rule.span_of(last));
        Gap { series: self.series.clone(), first, last, span, point, reason }
    }

    fn report(&mut self, event: Conclusion, output: &mut Output) {
        let epoch = match &event {
            Conclusion::Gap(gap) => gap.first,
            Conclusion::Estimate(estimate) => estimate.epoch,
        };
        if epoch > self.pairing.concluded_through().max(self.reported.through) {
            // Refused before its turn.
            if !self.reported.add_beyond(epoch) {
                output.counts.duplicates += 1;
                return;
            }
        } else {
            for (first, last) in self.reported.missing_before(epoch) {
                let missing = self.gap(first, last, None, GapReason::NothingCame);
                self.report_gap(missing, output);
            }
            self.report_minute_before(epoch, output);
            self.reported.note(epoch);
        }
        match event {
            Conclusion::Gap(gap) => self.report_gap(gap, output),
            Conclusion::Estimate(estimate) => self.report_estimate(estimate, output),
        }
    }

    fn report_gap(&mut self, gap: Gap, output: &mut Output) {
        match self.reported.unreported(gap.first, gap.last) {
            Some((first, last)) => {
                let gap = self.gap(first, last, gap.point, gap.reason);
                output.counts.gaps = output.counts.gaps.saturating_add(gap.epochs());
                output.events.push_back(EngineEvent::Gap(gap));
            }
            None => output.counts.replayed += gap.epochs(),
        }
    }

    fn report_estimate(&mut self, estimate: PairEstimate, output: &mut Output) {
        if self.reported.was_reported(estimate.epoch) {
            output.counts.replayed += 1;
        } else {
            output.counts.estimated += 1;
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

/// How a series cuts time.
pub(crate) fn rule_of(series: &Series) -> EpochRule {
    series.epoch_ns.and_then(EpochRule::every).unwrap_or(EpochRule::WHOLE)
}

fn pairing(
    series: &Series,
    question: &QuestionTemplate,
    patience: Delay,
    through: Epoch,
    learnt: Option<(Epoch, u64)>,
) -> Pairing {
    let config = PairingConfig {
        segment: series.segment.clone(),
        class: series.class.clone(),
        question: question.clone(),
        patience,
    };
    // An agent sends the epochs of a point one after the other, the oldest first.
    Pairing::resumed(config, through, learnt.unwrap_or((Epoch(i64::MIN), 0))).in_order()
}
