//! Sealed epochs of both points, brought together algorithm by algorithm and class by class.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;
use std::sync::Arc;

use twixt_engine::{Conclusion, Gap, Series, StoredHalf, StoredPairing, StoredSeries, StreamCheck};
use twixt_measure::clock::{ClockPoint, ClockReport, diagnose};
use twixt_measure::survey::ClockDifference;
use twixt_measure::{QuestionTemplate, Remedy, Sealed};
use twixt_model::{Delay, Epoch, EpochRule, Estimate, Scope, Segment, Span, by_scope};
use twixt_synopsis::{Heartbeats, KnownFlow, Listing};
use twixt_wire::Digester;

use crate::chosen::ChosenAlgorithm;
use crate::measured::segment;
use crate::plan::Plan;

/// What one algorithm concluded.
#[derive(Debug, Default)]
pub struct Concluded {
    /// Of all epochs.
    pub estimates: Vec<Estimate>,
    /// What the epochs tell together, scope by scope; nothing if time was not cut.
    pub together: Vec<Estimate>,
    /// Epochs that were estimated, in all classes together.
    pub(crate) epochs: BTreeSet<Epoch>,
    /// State that one point kept per epoch, at most, over all classes.
    pub synopsis_bytes: u64,
    /// The interval of upstream time that was measured.
    pub span: Option<Span>,
    /// Why epochs were left out.
    pub problems: Vec<EpochLeftOut>,
}

/// An epoch that was left out.
#[derive(Debug)]
pub struct EpochLeftOut {
    /// Which one.
    pub epoch: Epoch,
    /// Why.
    pub reason: String,
}

impl Concluded {
    /// Of one epoch that covers everything.
    #[must_use]
    pub fn whole(estimates: Vec<Estimate>, synopsis_bytes: u64, span: Span) -> Self {
        let epochs = BTreeSet::from([Epoch(0)]);
        Self { estimates, epochs, synopsis_bytes, span: Some(span), ..Self::default() }
    }

    /// How many epochs were estimated.
    #[must_use]
    pub fn epochs(&self) -> u64 {
        self.epochs.len() as u64
    }

    /// Adds up what epochs tell, unless that is known already.
    pub(crate) fn add_up(&mut self) {
        if self.together.is_empty() {
            self.together = by_scope(&self.estimates).into_values().collect();
        }
    }

    /// Estimates of epochs, and of all of them together.
    pub(crate) fn all_mut(&mut self) -> impl Iterator<Item = &mut Estimate> {
        self.estimates.iter_mut().chain(&mut self.together)
    }

    /// Notes epochs that were estimated elsewhere, and when.
    pub(crate) fn note_more(&mut self, epochs: BTreeSet<Epoch>, span: Option<Span>) {
        self.epochs.extend(epochs);
        self.span = match (self.span, span) {
            (Some(one), Some(other)) => Some(one.union(other)),
            (one, other) => one.or(other),
        };
    }

    /// An estimate of no packets over all time is one over the interval that was measured.
    fn date_the_empty(&mut self) {
        let Some(span) = self.span else { return };
        for estimate in &mut self.estimates {
            if self.epochs.len() == 1 && estimate.evidence.packets == 0 {
                estimate.span = span;
            }
        }
    }

    /// The clocks' difference, where the delays cannot be explained otherwise: there was no
    /// survey that could tell more.
    #[must_use]
    pub fn clock(&self) -> Option<ClockDifference> {
        let means = self.estimates.iter().filter_map(|estimate| estimate.delay);
        ClockDifference::from_delay(means.map(|delay| delay.mean()).min()?)
    }

    /// What sampled packets tell of the clocks, if there are any.
    #[must_use]
    pub fn clocks(&self) -> Option<ClockReport> {
        let samples = self.estimates.iter().filter_map(|estimate| estimate.sample.as_deref());
        let points: Vec<ClockPoint> = samples.flat_map(ClockPoint::of_sample).collect();
        diagnose(&points, &[])
    }

    /// Takes what was concluded. Where it was cut when packets were matched, each scope has the estimate
    /// of the whole first.
    fn note(&mut self, class: &str, cut: EpochRule, conclusion: Conclusion) {
        match conclusion {
            Conclusion::Estimate(pair) => {
                let named = |estimate: Estimate| match class {
                    "" => estimate,
                    class => Estimate { scope: Scope::Class(class.to_owned()), ..estimate },
                };
                let estimates = pair.estimates.into_iter().map(named);
                if cut == EpochRule::WHOLE {
                    self.note_more(BTreeSet::from([pair.epoch]), pair.upstream.seen);
                    return self.estimates.extend(estimates);
                }
                let mut scopes = BTreeSet::new();
                let (together, estimates): (Vec<_>, Vec<_>) =
                    estimates.partition(|estimate| scopes.insert(estimate.scope.clone()));
                let epochs = estimates.iter().map(|estimate| cut.epoch_of(estimate.span.start));
                self.note_more(epochs.collect(), pair.upstream.seen);
                self.together.extend(together);
                self.estimates.extend(estimates);
            }
            Conclusion::Gap(Gap { first: epoch, point, reason, .. }) => {
                let reason = match point {
                    Some(point) => format!("{point}: {reason}"),
                    None => reason.to_string(),
                };
                self.problems.push(EpochLeftOut { epoch, reason });
            }
        }
    }
}

/// A sealed epoch on its way to its pairing.
pub(crate) struct Sent {
    /// Index of its algorithm in the plan.
    pub(crate) algorithm: usize,
    pub(crate) sealed: Sealed,
    /// The flows in it, if the algorithm needs them and the point noted them.
    pub(crate) flows: Option<Arc<[KnownFlow]>>,
}

/// Pairings for each algorithm and class.
pub(crate) struct Pairs {
    segment: Segment,
    /// Other epochs help to sort out packets in flight, and are not concluded.
    asked: RangeInclusive<Epoch>,
    algorithms: Vec<AlgorithmPairs>,
}

struct AlgorithmPairs {
    question: QuestionTemplate,
    by_class: BTreeMap<String, ClassPairs>,
    concluded: Concluded,
}

struct ClassPairs {
    pairing: StoredPairing,
    state_bytes: u64,
}

impl Pairs {
    /// Nothing received yet. `reference` is a rough idea of the delay.
    #[must_use]
    pub(crate) fn new(
        plan: &Plan,
        segment: Segment,
        digester: &Digester,
        reference: Delay,
    ) -> Self {
        let known: Arc<[KnownFlow]> = plan.flows.known(digester).into();
        let algorithm = |chosen: &ChosenAlgorithm| AlgorithmPairs {
            question: QuestionTemplate {
                by: plan.by(chosen),
                estimator: chosen.estimator.clone(),
                flows: known.clone(),
                listing: if plan.flows.is_all() { Listing::Passing } else { Listing::Named },
                reference,
                heartbeats: Arc::default(),
                cut: EpochRule::WHOLE,
                remedy: Remedy::Guard,
                packets: plan.beside.packets,
            },
            by_class: BTreeMap::new(),
            concluded: Concluded::default(),
        };
        let asked = Epoch(i64::MIN)..=Epoch(i64::MAX);
        Self { segment, asked, algorithms: plan.algorithms.iter().map(algorithm).collect() }
    }

    /// Of captures: what matches packets cuts time then, and what is kept near boundaries follows from
    /// the length of epochs.
    pub(crate) fn of_captures(
        plan: &Plan,
        digester: &Digester,
        reference: Delay,
        heartbeats: &Arc<[Heartbeats]>,
    ) -> Self {
        let mut pairs = Self::new(plan, segment(), digester, reference);
        for (algorithm, chosen) in pairs.algorithms.iter_mut().zip(&plan.algorithms) {
            algorithm.question.remedy = Remedy::Length;
            algorithm.question.heartbeats = heartbeats.clone();
            if plan.cuts_when_matched(chosen) {
                algorithm.question.cut = plan.rule;
            }
        }
        pairs
    }

    /// Concludes no other epochs than these.
    pub(crate) fn only(self, asked: RangeInclusive<Epoch>) -> Self {
        Self { asked, ..self }
    }

    /// Takes an epoch of the algorithm with this index. A point's epochs come in order.
    pub(crate) fn receive(&mut self, Sent { algorithm, sealed, flows }: Sent) {
        let pairs = &mut self.algorithms[algorithm];
        let class = pairs
            .by_class
            .entry(sealed.class.clone())
            .or_insert_with(|| ClassPairs::new(&self.segment, &sealed, &pairs.question));
        let name = sealed.class.clone();
        class.pairing.receive(StoredHalf { sealed, flows });
        class.drain(&name, pairs.question.cut, &self.asked, &mut pairs.concluded);
    }

    /// Nothing more comes: what each algorithm concluded, in their order.
    pub(crate) fn finish(self) -> Vec<Concluded> {
        let finish = |mut pairs: AlgorithmPairs| {
            for (name, class) in &mut pairs.by_class {
                class.pairing.finish();
                class.drain(name, pairs.question.cut, &self.asked, &mut pairs.concluded);
                pairs.concluded.synopsis_bytes += class.state_bytes;
            }
            pairs.concluded.date_the_empty();
            pairs.concluded.estimates.sort_by_key(|estimate| estimate.span.start);
            pairs.concluded
        };
        self.algorithms.into_iter().map(finish).collect()
    }
}

impl ClassPairs {
    fn new(segment: &Segment, first: &Sealed, question: &QuestionTemplate) -> Self {
        let pairing = StoredPairing::new(StoredSeries {
            series: Series::of(segment.clone(), first),
            question: question.clone(),
            realigned_epochs: 0,
            check: StreamCheck::Nothing,
        });
        Self { pairing, state_bytes: 0 }
    }

    fn drain(
        &mut self,
        class: &str,
        cut: EpochRule,
        asked: &RangeInclusive<Epoch>,
        concluded: &mut Concluded,
    ) {
        while let Some(conclusion) = self.pairing.poll() {
            if !asked.contains(&conclusion.epoch()) {
                continue;
            }
            if let Conclusion::Estimate(pair) = &conclusion {
                let most = pair.upstream.synopsis_bytes.max(pair.downstream.synopsis_bytes);
                self.state_bytes = self.state_bytes.max(most);
            }
            concluded.note(class, cut, conclusion);
        }
    }
}
