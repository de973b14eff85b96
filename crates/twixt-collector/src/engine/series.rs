//! One series of a segment: its pairing, and what of it was told.

use std::collections::VecDeque;

use twixt_measure::{Pairing, PairingConfig, PairingEvent, QuestionTemplate, Sealed};
use twixt_model::{Epoch, EpochRule, Timestamp};

use super::event::{EngineCounts, EngineEvent, Gap, GapReason, PairEstimate, Series};
use super::{Concluded, EngineConfig};

/// The pairing of one series.
#[derive(Debug)]
pub(super) struct PairSeries {
    pairing: Pairing,
    rule: EpochRule,
    through: Epoch,
}

impl PairSeries {
    pub(super) fn new(config: &EngineConfig, series: &Series) -> Self {
        let pairing = Pairing::new(PairingConfig {
            segment: series.segment.clone(),
            class: series.class.clone(),
            question: QuestionTemplate { by: config.by, ..QuestionTemplate::default() },
            patience: config.patience,
        });
        let rule = series.epoch_ns.and_then(EpochRule::every).unwrap_or(EpochRule::WHOLE);
        Self { pairing, rule, through: Epoch(i64::MIN) }
    }

    pub(super) fn resumed(config: &EngineConfig, concluded: &Concluded) -> Self {
        Self { through: concluded.through, ..Self::new(config, &concluded.series) }
    }

    pub(super) fn concluded(&self, series: &Series) -> Concluded {
        Concluded {
            series: series.clone(),
            through: self.through,
            told: Vec::new(),
            summarised: Timestamp::MIN,
            realigned_epochs: None,
            replay_from: Epoch(self.through.0.saturating_sub(2)),
        }
    }

    pub(super) fn receive(&mut self, sealed: Sealed) {
        self.pairing.receive(sealed);
    }

    pub(super) fn advance(&mut self, now: Timestamp) {
        self.pairing.advance(now);
    }

    pub(super) fn drain(
        &mut self,
        series: &Series,
        events: &mut VecDeque<EngineEvent>,
        counts: &mut EngineCounts,
    ) {
        while let Some(event) = self.pairing.poll() {
            let event = self.named(series, event);
            match &event {
                EngineEvent::Estimated(_) => counts.estimated += 1,
                _ => counts.gaps += 1,
            }
            events.push_back(event);
        }
    }

    fn named(&mut self, series: &Series, event: PairingEvent) -> EngineEvent {
        let series = series.clone();
        let (epoch, point, reason) = match event {
            PairingEvent::Estimated { epoch, span, estimates, upstream, downstream, moved } => {
                self.through = self.through.max(epoch);
                return EngineEvent::Estimated(Box::new(PairEstimate {
                    series,
                    epoch,
                    span,
                    estimates,
                    upstream,
                    downstream,
                    moved,
                    realigned_epochs: 0,
                }));
            }
            PairingEvent::Unpaired { epoch, point, reason } => {
                (epoch, Some(point), GapReason::Unpaired(reason))
            }
            PairingEvent::Refused { epoch, reason } => (epoch, None, GapReason::Refused(reason)),
        };
        self.through = self.through.max(epoch);
        let span = self.rule.span_of(epoch);
        EngineEvent::Gap(Gap { series, first: epoch, last: epoch, span, point, reason })
    }
}
