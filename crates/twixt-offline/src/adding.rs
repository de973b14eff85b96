//! What was measured on both sides of a step of a clock, added up.

use std::collections::BTreeMap;

use twixt_model::{Epoch, EpochRule, Estimate, Scope};

use crate::measured::Measured;
use crate::pairs::Concluded;

impl Measured {
    /// Adds what was measured of another part of the same captures.
    pub(crate) fn add(&mut self, other: Self, rule: EpochRule) {
        for (concluded, more) in self.concluded.iter_mut().zip(other.concluded) {
            concluded.add(more, rule);
        }
        for (counts, more) in
            [(&mut self.upstream, other.upstream), (&mut self.downstream, other.downstream)]
        {
            // What one part measured, the other skipped.
            let outside = twixt_wire::Skip::OutsideStretch.name();
            let skipped = counts.skipped.get(outside).copied().unwrap_or(0);
            counts.packets += more.packets;
            match skipped.saturating_sub(more.packets) {
                0 => counts.skipped.remove(outside),
                left => counts.skipped.insert(outside.to_owned(), left),
            };
        }
        self.stretch = match (self.stretch, other.stretch) {
            (Some(one), Some(another)) => Some(one.union(another)),
            (one, another) => one.or(another),
        };
    }
}

impl Concluded {
    fn add(&mut self, other: Self, rule: EpochRule) {
        add_all(&mut self.estimates, other.estimates, rule);
        add_all(&mut self.together, other.together, EpochRule::WHOLE);
        self.note_more(other.epochs, other.span);
        self.synopsis_bytes = self.synopsis_bytes.max(other.synopsis_bytes);
        self.problems.extend(other.problems);
    }
}

/// Adds estimates to those of the same scope and epoch.
fn add_all(estimates: &mut Vec<Estimate>, others: Vec<Estimate>, rule: EpochRule) {
    let key = |estimate: &Estimate| match rule {
        EpochRule::WHOLE => (Epoch(0), estimate.scope.clone()),
        _ => (rule.epoch_of(estimate.span.start), estimate.scope.clone()),
    };
    let mut at: BTreeMap<(Epoch, Scope), usize> =
        estimates.iter().enumerate().map(|(index, one)| (key(one), index)).collect();
    for estimate in others {
        match at.get(&key(&estimate)) {
            Some(&index) => add(&mut estimates[index], estimate),
            None => {
                at.insert(key(&estimate), estimates.len());
                estimates.push(estimate);
            }
        }
    }
    estimates.sort_by_key(|estimate| estimate.span.start);
}

/// Adds what is known of other packets of the same scope.
fn add(estimate: &mut Estimate, other: Estimate) {
    let had_order = estimate.delay.and_then(|delay| delay.order).is_some();
    estimate.span = estimate.span.union(other.span);
    estimate.evidence = estimate.evidence.added(other.evidence);
    estimate.delay = match (estimate.delay, other.delay) {
        (Some(one), Some(another)) => Some(one.merged(&another)),
        (one, another) => one.or(another),
    };
    match (&mut estimate.sample, other.sample) {
        (Some(sample), Some(more)) => sample.merge(&more),
        (sample, more) => *sample = sample.take().or(more),
    }
    match (&mut estimate.crossings, other.crossings) {
        (Some(crossings), Some(more)) => crossings.add(*more),
        (crossings, more) => *crossings = crossings.take().or(more),
    }
    if let Some(reason) = other.reason {
        estimate.add_reason(&reason);
    }
    if had_order && estimate.delay.is_some_and(|delay| delay.order.is_none()) {
        estimate.add_reason(
            "a clock was stepped: percentiles of both sides cannot be added up, unless with \
             --clock correct",
        );
    }
}
