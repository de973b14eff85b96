//! Estimates of several epochs, added up.

use std::collections::BTreeMap;

use crate::{DelayEstimate, DelaySample, Estimate, Scope};

/// One estimate for each scope, from all epochs.
#[must_use]
pub fn by_scope(estimates: &[Estimate]) -> BTreeMap<&Scope, Estimate> {
    let mut groups: BTreeMap<&Scope, Vec<&Estimate>> = BTreeMap::new();
    for estimate in estimates {
        groups.entry(&estimate.scope).or_default().push(estimate);
    }
    groups.into_iter().filter_map(|(scope, group)| Some((scope, total(group)?))).collect()
}

/// Adds up estimates of disjoint packets. Each counts by the packets that crossed, which may be
/// more than those that the estimate rests on. `None` if there are none.
#[must_use]
pub fn total<'a>(estimates: impl IntoIterator<Item = &'a Estimate>) -> Option<Estimate> {
    let estimates: Vec<&Estimate> = estimates.into_iter().collect();
    let [first, others @ ..] = estimates.as_slice() else { return None };
    if others.is_empty() {
        return Some((*first).clone());
    }
    let mut sum = Estimate { delay: crossed(first), ..(*first).clone() };
    for estimate in others {
        sum.span = sum.span.union(estimate.span);
        sum.evidence = sum.evidence.added(estimate.evidence);
        sum.delay = match (sum.delay, crossed(estimate)) {
            (Some(one), Some(other)) => Some(one.merged(&other)),
            (one, other) => one.or(other),
        };
    }
    sum.sample = sample(&estimates);
    sum.crossings = None;
    sum.reason = reason(&estimates);
    Some(sum)
}

/// The samples of all intervals that had packets; one that has none leaves a hole in the whole.
fn sample(estimates: &[&Estimate]) -> Option<Box<DelaySample>> {
    let mut samples = estimates
        .iter()
        .filter(|estimate| estimate.evidence.packets > 0)
        .map(|estimate| estimate.sample.as_deref());
    let mut sum = samples.next()??.clone();
    for sample in samples {
        sum.merge(sample?);
    }
    Some(Box::new(sum))
}

/// The delay as that of all packets that crossed: same mean and deviation.
fn crossed(estimate: &Estimate) -> Option<DelayEstimate> {
    let delay = estimate.delay?;
    let evidence = &estimate.evidence;
    let count = evidence.packets.saturating_sub(evidence.lost.unwrap_or(0)).max(1);
    if delay.count == count {
        return Some(delay);
    }
    let sum_ns = delay.sum_ns.saturating_mul(i128::from(count)) / i128::from(delay.count);
    Some(DelayEstimate { count, sum_ns, ..delay })
}

/// The first reason, and in how many epochs something is not known.
fn reason(estimates: &[&Estimate]) -> Option<String> {
    let reasons: Vec<&str> =
        estimates.iter().filter_map(|estimate| estimate.reason.as_deref()).collect();
    let first = reasons.first()?;
    Some(format!("{} of {} epochs: {first}", reasons.len(), estimates.len()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Delay, Evidence, Span, Timestamp};

    fn estimate(start: i64, packets: u64, lost: Option<u64>, mean: Option<i128>) -> Estimate {
        let used = packets - lost.unwrap_or(0);
        let delay = mean.map(|mean| DelayEstimate {
            count: used,
            sum_ns: mean * i128::from(used),
            deviation_ns: Some(0.0),
            half_width_ns: Some(0.0),
            order: None,
            order_range: None,
        });
        Estimate {
            scope: Scope::All,
            span: Span::at(Timestamp::from_nanos(start)),
            evidence: Evidence { packets, used, lost, ..Evidence::default() },
            delay,
            reason: delay.is_none().then(|| "nobody knows".to_owned()),
            sample: None,
            crossings: None,
        }
    }

    #[test]
    fn epochs_count_by_their_packets() {
        let epochs = [estimate(5, 10, Some(1), Some(100)), estimate(9, 21, Some(0), Some(200))];
        let total = total(&epochs).unwrap();
        assert_eq!((total.evidence.packets, total.evidence.lost), (31, Some(1)));
        let mean = total.delay.unwrap().mean();
        assert_eq!(mean, Delay::from_nanos((9 * 100 + 21 * 200) / 30));
        assert_eq!((total.span.start.as_nanos(), total.span.end.as_nanos()), (5, 9));
        assert_eq!(total.reason, None);
    }

    #[test]
    fn what_one_epoch_does_not_know_is_said_or_not_known() {
        let epochs = [estimate(5, 10, None, None), estimate(9, 20, Some(0), Some(200))];
        let total = total(&epochs).unwrap();
        assert_eq!(total.evidence.lost, None);
        assert_eq!(total.delay.unwrap().mean(), Delay::from_nanos(200));
        assert_eq!(total.reason.as_deref(), Some("1 of 2 epochs: nobody knows"));
        assert!(super::total([]).is_none());
    }
}
