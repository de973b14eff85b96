//! One series of a segment: its pairing, and what of it was told.

use std::collections::{BTreeMap, VecDeque};

use twixt_measure::{
    Pairing, PairingConfig, PairingCounts, PairingEvent, QuestionTemplate, Sealed,
};
use twixt_model::{Delay, Epoch, EpochRule, PointId, Timestamp};

use super::event::{EngineEvent, Gap, GapReason, MinuteSummary, PairEstimate, Series};
use super::minutes::{Minutes, Summed};
use super::told::Told;
use super::{Concluded, EngineConfig, Output};

/// Epochs before the first that is needed that a replay starts with: that one's predecessor, and
/// the one whose packets were in flight then.
const REPLAY_MARGIN: i64 = 2;

/// Why loss is not known beside an epoch that is missing.
pub const MISSING_BESIDE: &str = "an epoch beside this one did not come: loss is not known";

/// The pairing of one series.
#[derive(Debug)]
pub(super) struct PairSeries {
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
    told: Told,
    minutes: Minutes,
    /// What pairing had learnt of delays before the first epoch of every minute that is not over.
    learnt: BTreeMap<Epoch, u64>, // as many as minutes
}

/// What there is to tell of an epoch.
enum Telling {
    Gap(Gap),
    Estimate(PairEstimate),
}

/// What is to be thought of an epoch.
#[derive(Debug, Default)]
pub(super) struct Judgement {
    /// Why it must not be estimated.
    pub(super) refused: Option<GapReason>,
    /// An epoch beside it did not come.
    pub(super) is_edge: bool,
}

impl PairSeries {
    pub(super) fn new(config: &EngineConfig, series: &Series) -> Self {
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
            told: Told::nothing(),
            minutes: Minutes::new(rule, config.minute, Timestamp::MIN),
            learnt: BTreeMap::new(),
        }
    }

    pub(super) fn resumed(config: &EngineConfig, concluded: &Concluded) -> Self {
        let mut resumed = Self::new(config, &concluded.series);
        resumed.minutes = Minutes::new(resumed.rule, config.minute, concluded.summarised);
        resumed.told = Told::resumed(concluded);
        let needed = Epoch(concluded.replay_from.0.saturating_add(REPLAY_MARGIN));
        let learnt = Some((needed, concluded.short_delays));
        resumed.align_knowing(concluded.realigned_epochs.unwrap_or(0), learnt);
        resumed
    }

    /// `None` if there is nothing to remember.
    pub(super) fn concluded(&self, realigned_epochs: Option<i64>) -> Option<Concluded> {
        let (through, last) = (self.told.through, self.told.all_last());
        let told: Vec<(Epoch, u64)> =
            self.told.all_beyond().into_iter().map(|epoch| (epoch, 0)).collect();
        if through == Epoch(i64::MIN) && told.is_empty() {
            return None;
        }
        let needed = self.minutes.first_epoch().unwrap_or(self.told.through);
        let needed = needed.min(self.told.through);
        Some(Concluded {
            series: self.series.clone(),
            through,
            last,
            told,
            summarised: self.minutes.told(),
            realigned_epochs,
            short_delays: self.learnt_before(needed),
            replay_from: Epoch(needed.0.saturating_sub(REPLAY_MARGIN)),
        })
    }

    /// Keeps an epoch until it is known which belong together.
    pub(super) fn hold(&mut self, sealed: Sealed) {
        self.held.push_back(sealed);
    }

    /// How many are kept.
    pub(super) fn held(&self) -> usize {
        self.held.len()
    }

    /// Pairs epochs whose numbers differ by this from now on; what waits is to be
    /// [finished](Self::finish) before. Hands over those that were kept.
    pub(super) fn align(&mut self, realigned_epochs: i64) {
        self.align_knowing(realigned_epochs, None);
    }

    /// The same, with what was learnt of delays before an epoch.
    fn align_knowing(&mut self, realigned_epochs: i64, learnt: Option<(Epoch, u64)>) {
        self.realigned_epochs = realigned_epochs;
        self.question.reference = self.shift();
        let (through, patience) = (self.told.through, self.patience);
        self.pairing = pairing(&self.series, &self.question, patience, through, learnt);
        self.counted = PairingCounts::default();
        for sealed in std::mem::take(&mut self.held) {
            self.receive(sealed);
        }
    }

    /// Takes an epoch, downstream's by upstream's numbers.
    pub(super) fn receive(&mut self, sealed: Sealed) {
        let sealed = if sealed.point == self.series.segment.downstream {
            let epoch = Epoch(sealed.epoch.0.saturating_sub(self.realigned_epochs));
            Sealed { epoch, shift: sealed.shift + self.shift(), ..sealed }
        } else {
            sealed
        };
        self.pairing.receive(sealed);
    }

    pub(super) fn advance(&mut self, now: Timestamp) {
        self.pairing.advance(now);
    }

    /// Nothing more will come that belongs together as before.
    pub(super) fn finish(&mut self) {
        self.pairing.finish_upstream();
    }

    /// Tells what was concluded. `judge` says why an epoch must not be estimated. Whether a half
    /// was missing.
    pub(super) fn drain(
        &mut self,
        judge: &mut dyn FnMut(Epoch) -> Judgement,
        output: &mut Output,
    ) -> bool {
        let mut is_unpaired = false;
        while let Some(event) = self.pairing.poll() {
            is_unpaired |= matches!(event, PairingEvent::Unpaired { .. });
            let event = self.judged(event, judge);
            self.tell(event, output);
        }
        let counts = self.pairing.counts();
        output.counts.add(std::mem::replace(&mut self.counted, counts), counts);
        self.told.conclude(self.pairing.concluded_through());
        while let Some(summed) = self.minutes.poll(self.told.through) {
            self.summarise(summed, output);
        }
        self.note_learnt();
        is_unpaired
    }

    /// Remembers what was known of delays when each minute began: whoever replays it must not know
    /// more, nor less.
    fn note_learnt(&mut self) {
        let first = self.minutes.first_epoch();
        self.learnt.retain(|&epoch, _| first.is_some_and(|first| epoch >= first));
        for epoch in self.minutes.first_epochs() {
            let pairing = &self.pairing;
            self.learnt.entry(epoch).or_insert_with(|| pairing.short_delays_before(epoch));
        }
    }

    fn learnt_before(&self, epoch: Epoch) -> u64 {
        let noted = self.learnt.get(&epoch).copied();
        noted.unwrap_or_else(|| self.pairing.short_delays_before(epoch))
    }

    /// Tells that nothing can be told of an epoch of upstream's, and of those before it.
    pub(super) fn refuse(&mut self, epoch: Epoch, reason: GapReason, output: &mut Output) {
        if epoch <= self.told.through {
            return;
        }
        self.told.conclude(Epoch(epoch.0.saturating_sub(1)));
        self.told.through = epoch;
        self.tell(Telling::Gap(self.gap(epoch, epoch, None, reason)), output);
        while let Some(summed) = self.minutes.poll(self.told.through) {
            self.summarise(summed, output);
        }
    }

    /// Refuses those that were kept.
    pub(super) fn refuse_held(&mut self, reason: &GapReason, output: &mut Output) {
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

    fn judged(&self, event: PairingEvent, judge: &mut dyn FnMut(Epoch) -> Judgement) -> Telling {
        match event {
            PairingEvent::Estimated { epoch, span, estimates, upstream, downstream, moved } => {
                let silent = upstream.packets == 0 && downstream.packets == 0;
                let judgement = if silent { Judgement::default() } else { judge(epoch) };
                if let Some(reason) = judgement.refused {
                    return Telling::Gap(self.gap(epoch, epoch, None, reason));
                }
                let mut estimates = estimates;
                if judgement.is_edge {
                    estimates.iter_mut().for_each(|estimate| estimate.forget_loss(MISSING_BESIDE));
                }
                let (series, realigned_epochs) = (self.series.clone(), self.realigned_epochs);
                Telling::Estimate(PairEstimate {
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
                Telling::Gap(self.gap(epoch, epoch, Some(point), GapReason::Unpaired(reason)))
            }
            PairingEvent::Refused { epoch, reason } => {
                Telling::Gap(self.gap(epoch, epoch, None, GapReason::Refused(reason)))
            }
        }
    }

    fn gap(&self, first: Epoch, last: Epoch, point: Option<PointId>, reason: GapReason) -> Gap {
        let span = self.rule.span_of(first).union(self.rule.span_of(last));
        Gap { series: self.series.clone(), first, last, span, point, reason }
    }

    fn tell(&mut self, event: Telling, output: &mut Output) {
        let epoch = match &event {
            Telling::Gap(gap) => gap.first,
            Telling::Estimate(estimate) => estimate.epoch,
        };
        if epoch > self.pairing.concluded_through().max(self.told.through) {
            // Refused before its turn.
            if !self.told.add_beyond(epoch) {
                output.counts.duplicates += 1;
                return;
            }
        } else {
            for (first, last) in self.told.missing_before(epoch) {
                let missing = self.gap(first, last, None, GapReason::NothingCame);
                self.tell_gap(missing, output);
            }
            self.told.note(epoch);
        }
        match event {
            Telling::Gap(gap) => self.tell_gap(gap, output),
            Telling::Estimate(estimate) => self.tell_estimate(estimate, output),
        }
    }

    fn tell_gap(&mut self, gap: Gap, output: &mut Output) {
        let early = self.minutes.add_gap(gap.first, gap.last);
        match self.told.untold(gap.first, gap.last) {
            Some((first, last)) => {
                let gap = self.gap(first, last, gap.point, gap.reason);
                output.counts.gaps = output.counts.gaps.saturating_add(gap.epochs());
                output.events.push_back(EngineEvent::Gap(gap));
            }
            None => output.counts.replayed += gap.epochs(),
        }
        early.into_iter().for_each(|summed| self.summarise(summed, output));
    }

    fn tell_estimate(&mut self, estimate: PairEstimate, output: &mut Output) {
        let early = self.minutes.add(estimate.epoch, &estimate.estimates);
        if self.told.was_told(estimate.epoch) {
            output.counts.replayed += 1;
        } else {
            output.counts.estimated += 1;
            output.events.push_back(EngineEvent::Estimated(Box::new(estimate)));
        }
        early.into_iter().for_each(|summed| self.summarise(summed, output));
    }

    fn summarise(&self, summed: Summed, output: &mut Output) {
        let Summed { span, estimates, epochs, gaps } = summed;
        let series = self.series.clone();
        output.counts.summaries += 1;
        let summary = MinuteSummary { series, span, estimates, epochs, gaps };
        output.events.push_back(EngineEvent::Summary(Box::new(summary)));
    }
}

/// How a series cuts time.
pub(super) fn rule_of(series: &Series) -> EpochRule {
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
