//! The pairing of one series when it is known which epochs belong together: live ones as they come,
//! and stored ones.

use std::sync::Arc;

use twixt_measure::{
    Pairing, PairingConfig, PairingCounts, PairingEvent, QuestionTemplate, Sealed,
};
use twixt_model::{Delay, Epoch, EpochRule, PointId, Timestamp};
use twixt_synopsis::KnownFlow;

use crate::event::{Gap, GapReason, PairEstimate, Series};

/// Why loss is not known beside an epoch that is missing.
const MISSING_BESIDE: &str = "a neighbouring epoch is missing: loss is unknown";

/// What is concluded of an epoch.
#[derive(Clone, Debug, PartialEq)]
pub enum Conclusion {
    /// Both halves were compared.
    Estimate(PairEstimate),
    /// Nothing is known, and why.
    Gap(Gap),
}

impl Conclusion {
    /// Which epoch, by upstream's number.
    #[must_use]
    pub const fn epoch(&self) -> Epoch {
        match self {
            Self::Estimate(estimate) => estimate.epoch,
            Self::Gap(gap) => gap.first,
        }
    }
}

/// Whether an epoch may be estimated.
#[derive(Debug, Default)]
pub(crate) struct Judgement {
    /// Why it must not be estimated.
    pub(crate) refused: Option<GapReason>,
    /// An epoch beside it did not come.
    pub(crate) is_edge: bool,
    /// The first and last epochs are whole: beside them is nothing.
    pub(crate) has_whole_ends: bool,
}

/// How a series is paired.
#[derive(Clone, Debug)]
pub(crate) struct AlignedConfig {
    pub(crate) series: Series,
    /// Its reference is a rough idea of the delay after realignment.
    pub(crate) question: QuestionTemplate,
    /// Downstream's numbers are larger by this.
    pub(crate) realigned_epochs: i64,
    pub(crate) patience: Delay,
}

/// Pairs the epochs of one series.
#[derive(Debug)]
pub(crate) struct AlignedPairing {
    series: Series,
    rule: EpochRule,
    realigned_epochs: i64,
    pairing: Pairing,
}

impl AlignedPairing {
    /// All epochs up to `through` are concluded. `learnt` is what was known of delays before an
    /// epoch.
    pub(crate) fn new(config: AlignedConfig, through: Epoch, learnt: Option<(Epoch, u64)>) -> Self {
        let AlignedConfig { series, question, realigned_epochs, patience } = config;
        let rule = rule_of(&series);
        let shift = shift(rule, realigned_epochs);
        let pairing = PairingConfig {
            segment: series.segment.clone(),
            class: series.class.clone(),
            question: QuestionTemplate { reference: question.reference + shift, ..question },
            patience,
        };
        let learnt = learnt.unwrap_or((Epoch(i64::MIN), 0));
        let pairing = Pairing::resumed(pairing, through, learnt);
        Self { series, rule, realigned_epochs, pairing }
    }

    /// Each run of a point hands its epochs over in order.
    pub(crate) fn in_order(self) -> Self {
        Self { pairing: self.pairing.in_order(), ..self }
    }

    /// Takes an epoch, and the flows in it if the algorithm needs them. Returns its number, by
    /// upstream's count.
    pub(crate) fn receive(&mut self, sealed: Sealed, flows: Option<Arc<[KnownFlow]>>) -> Epoch {
        let sealed = if sealed.point == self.series.segment.downstream {
            let epoch = Epoch(sealed.epoch.0.saturating_sub(self.realigned_epochs));
            let shift = sealed.shift + shift(self.rule, self.realigned_epochs);
            Sealed { epoch, shift, ..sealed }
        } else {
            sealed
        };
        let epoch = sealed.epoch;
        self.pairing.receive_with_flows(sealed, flows);
        epoch
    }

    pub(crate) fn advance(&mut self, now: Timestamp) {
        self.pairing.advance(now);
    }

    /// Nothing more comes.
    pub(crate) fn finish(&mut self) {
        self.pairing.finish();
    }

    /// Nothing more comes that is numbered as before.
    pub(crate) fn finish_upstream(&mut self) {
        self.pairing.finish_upstream();
    }

    /// The next conclusion. `judge` says whether an epoch may be estimated.
    pub(crate) fn poll(&mut self, judge: &mut dyn FnMut(Epoch) -> Judgement) -> Option<Conclusion> {
        Some(match self.pairing.poll()? {
            PairingEvent::Estimated {
                epoch,
                span,
                estimates,
                upstream,
                downstream,
                moved,
                lacks_neighbour,
            } => {
                let silent = upstream.packets == 0 && downstream.packets == 0;
                let judgement = if silent { Judgement::default() } else { judge(epoch) };
                if let Some(reason) = judgement.refused {
                    return Some(Conclusion::Gap(self.gap(epoch, epoch, None, reason)));
                }
                let mut estimates = estimates;
                if judgement.is_edge || (lacks_neighbour && !silent && !judgement.has_whole_ends) {
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
                    is_late: false,
                })
            }
            PairingEvent::Unpaired { epoch, point, reason } => {
                Conclusion::Gap(self.gap(epoch, epoch, Some(point), GapReason::Unpaired(reason)))
            }
            PairingEvent::Refused { epoch, reason } => {
                Conclusion::Gap(self.gap(epoch, epoch, None, GapReason::Refused(reason)))
            }
        })
    }

    /// A gap of this series.
    pub(crate) fn gap(
        &self,
        first: Epoch,
        last: Epoch,
        point: Option<PointId>,
        reason: GapReason,
    ) -> Gap {
        let span = self.rule.span_of(first).union(self.rule.span_of(last));
        let (series, is_stored) = (self.series.clone(), false);
        Gap { series, first, last, span, point, reason, is_stored }
    }

    pub(crate) fn waiting_bytes(&self) -> u64 {
        self.pairing.waiting_bytes()
    }

    /// Concludes the oldest epoch that waits; whether there was one.
    pub(crate) fn give_up_oldest(&mut self) -> bool {
        self.pairing.give_up_oldest()
    }

    pub(crate) const fn concluded_through(&self) -> Epoch {
        self.pairing.concluded_through()
    }

    pub(crate) const fn counts(&self) -> PairingCounts {
        self.pairing.counts()
    }

    pub(crate) fn short_delays_before(&self, epoch: Epoch) -> u64 {
        self.pairing.short_delays_before(epoch)
    }
}

/// How a series cuts time.
pub(crate) fn rule_of(series: &Series) -> EpochRule {
    series.epoch_ns.and_then(EpochRule::every).unwrap_or(EpochRule::WHOLE)
}

/// By how much downstream's times are moved to find their epoch.
fn shift(rule: EpochRule, realigned_epochs: i64) -> Delay {
    Delay::from_nanos(realigned_epochs.saturating_mul(rule.length_ns().unwrap_or(0)))
}
