//! Sealed epochs of both points, brought together algorithm by algorithm and class by class.

use std::collections::BTreeMap;

use twixt_measure::{Pairing, PairingConfig, PairingEvent, QuestionTemplate, Sealed};
use twixt_model::{Delay, Estimate, PointId, Scope, Segment, Span, Timestamp};

use super::{DirectionFound, Measured, Plan, PointCounts};
use crate::args::Chosen;

/// What one algorithm concluded.
#[derive(Default)]
pub(crate) struct Concluded {
    pub(crate) estimates: Vec<Estimate>,
    /// Epochs that were estimated.
    pub(crate) epochs: u64,
    /// State that one point kept per epoch, at most, over all classes.
    pub(crate) synopsis_bytes: u64,
    /// The stretch of upstream time that was measured.
    pub(crate) span: Option<Span>,
    /// Why epochs were left out.
    pub(crate) problems: Vec<String>,
}

/// Pairings for each algorithm and class.
pub(crate) struct Pairs {
    segment: Segment,
    algorithms: Vec<AlgorithmPairs>,
}

struct AlgorithmPairs {
    question: QuestionTemplate,
    by_class: BTreeMap<String, Pairing>,
    state_bytes: BTreeMap<String, u64>,
    concluded: Concluded,
}

impl Pairs {
    /// Nothing received yet. `reference` is a rough idea of the delay.
    pub(crate) fn new(plan: &Plan<'_>, segment: Segment, reference: Delay) -> Self {
        let algorithm = |chosen: &Chosen| AlgorithmPairs {
            question: QuestionTemplate {
                by: plan.by(chosen),
                estimator: chosen.estimator.clone(),
                reference,
            },
            by_class: BTreeMap::new(),
            state_bytes: BTreeMap::new(),
            concluded: Concluded::default(),
        };
        Self { segment, algorithms: plan.algorithms.iter().map(algorithm).collect() }
    }

    /// Takes an epoch of the algorithm with this index.
    pub(crate) fn receive(&mut self, algorithm: usize, sealed: Sealed) {
        let pairs = &mut self.algorithms[algorithm];
        let class = sealed.class.clone();
        let pairing = pairs.by_class.entry(class.clone()).or_insert_with(|| {
            Pairing::new(PairingConfig {
                segment: self.segment.clone(),
                class: class.clone(),
                question: pairs.question.clone(),
                patience: Delay::ZERO,
            })
        });
        pairing.receive(sealed);
        while let Some(event) = pairing.poll() {
            note_event(&mut pairs.concluded, &mut pairs.state_bytes, &class, event);
        }
    }

    /// Both points have come to this time: what is missing before it will not come.
    pub(crate) fn advance(&mut self, now: Timestamp) {
        for pairs in &mut self.algorithms {
            for (class, pairing) in &mut pairs.by_class {
                pairing.advance(now);
                while let Some(event) = pairing.poll() {
                    note_event(&mut pairs.concluded, &mut pairs.state_bytes, class, event);
                }
            }
        }
    }

    /// Nothing more comes: what each algorithm concluded, in their order.
    pub(crate) fn finish(self) -> Vec<Concluded> {
        let finish = |mut pairs: AlgorithmPairs| {
            for (class, pairing) in &mut pairs.by_class {
                pairing.finish();
                while let Some(event) = pairing.poll() {
                    note_event(&mut pairs.concluded, &mut pairs.state_bytes, class, event);
                }
            }
            pairs.concluded.synopsis_bytes = pairs.state_bytes.values().sum();
            pairs.concluded.estimates.sort_by_key(|estimate| estimate.span.start);
            pairs.concluded
        };
        self.algorithms.into_iter().map(finish).collect()
    }
}

fn note_event(
    concluded: &mut Concluded,
    state_bytes: &mut BTreeMap<String, u64>,
    class: &str,
    event: PairingEvent,
) {
    match event {
        PairingEvent::Estimated { span, estimates, upstream, downstream, .. } => {
            concluded.epochs += 1;
            concluded.span = Some(concluded.span.map_or(span, |other| other.union(span)));
            let most = state_bytes.entry(class.to_owned()).or_default();
            *most = (*most).max(upstream.synopsis_bytes).max(downstream.synopsis_bytes);
            let named = |estimate: Estimate| match class {
                "" => estimate,
                class => Estimate { scope: Scope::Class(class.to_owned()), ..estimate },
            };
            concluded.estimates.extend(estimates.into_iter().map(named));
        }
        PairingEvent::Unpaired { epoch, point, reason } => {
            concluded.problems.push(format!("epoch {}: {point}: {reason}", epoch.0));
        }
        PairingEvent::Refused { epoch, reason } => {
            concluded.problems.push(format!("epoch {}: {reason}", epoch.0));
        }
    }
}

/// Pairs what two epoch files hold. Within the program the points are called by their role: two
/// recordings may well have the same name.
pub(super) fn pair_files(
    plan: &Plan<'_>,
    upstream: Vec<Sealed>,
    downstream: Vec<Sealed>,
) -> Measured {
    let segment = super::segment();
    let first = |epochs: &[Sealed]| {
        epochs.iter().filter_map(|sealed| sealed.seen).map(|seen| seen.start).min()
    };
    let reference = match (first(&upstream), first(&downstream)) {
        (Some(sent), Some(received)) => received - sent,
        _ => Delay::ZERO,
    };
    let (up, down) = (counts_of(&upstream), counts_of(&downstream));
    let mut pairs = Pairs::new(plan, segment.clone(), reference);
    let named = |point: &PointId, sealed| Sealed { point: point.clone(), ..sealed };
    let upstream = upstream.into_iter().map(|sealed| named(&segment.upstream, sealed));
    let downstream = downstream.into_iter().map(|sealed| named(&segment.downstream, sealed));
    let mut epochs: Vec<Sealed> = upstream.chain(downstream).collect();
    epochs.sort_by_key(|sealed| sealed.epoch);
    for sealed in epochs {
        pairs.advance(sealed.rule.span_of(sealed.epoch).start);
        pairs.receive(0, sealed);
    }
    let concluded = pairs.finish();
    Measured {
        stretch: concluded.first().and_then(|concluded| concluded.span),
        concluded,
        upstream: up,
        downstream: down,
        direction: DirectionFound { decided_by: "recording", unknown_flows: 0 },
        clock: None,
        negative_delays: 0,
        opposite: false,
    }
}

fn counts_of(epochs: &[Sealed]) -> PointCounts {
    let mut counts = PointCounts::default();
    for sealed in epochs {
        counts.packets += sealed.packets;
        for (reason, skipped) in sealed.tally.skipped() {
            *counts.skipped.entry(reason.to_owned()).or_default() += skipped;
        }
        if sealed.tally.dropped > 0 {
            counts.dropped = Some(counts.dropped.unwrap_or(0) + sealed.tally.dropped);
        }
    }
    counts
}
