//! What the segments of a path add up to, and what of the whole that does not explain.

use twixt_model::{Estimate, total};

use super::Section;

/// The segments and the whole, each as one estimate of all its traffic.
pub(super) struct Breakdown {
    pub(super) segments: Vec<Option<Estimate>>,
    pub(super) total: Option<Estimate>,
}

/// What the whole has beyond the sum of the segments. `None` where that is not known.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Rest {
    pub(super) mean_ns: Option<f64>,
    /// Half the width of its 95 % confidence interval.
    pub(super) half_width_ns: Option<f64>,
    /// Twice the sum of the segments' covariances, if all saw the same packets.
    pub(super) variance_ns2: Option<f64>,
    pub(super) lost: Option<i64>,
}

/// What a segment adds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Summand {
    Delay,
    Variance,
    Loss,
}

impl Breakdown {
    pub(super) fn new(sections: &[Section<'_>], whole: &Section<'_>) -> Self {
        let one = |section: &Section<'_>| total(&section.measured.concluded[0].estimates);
        Self { segments: sections.iter().map(one).collect(), total: one(whole) }
    }

    /// What a segment adds, in nanoseconds, their square, or packets.
    pub(super) fn part(estimate: &Estimate, part: Summand) -> Option<f64> {
        match part {
            Summand::Delay => estimate.delay.map(|delay| delay.mean_ns()),
            Summand::Variance => {
                estimate.delay?.deviation_ns.map(|deviation| deviation * deviation)
            }
            Summand::Loss => estimate.evidence.lost.map(|lost| lost as f64),
        }
    }

    /// What the segments add up to; `None` unless all are known.
    pub(super) fn sum(&self, part: Summand) -> Option<f64> {
        self.segments.iter().map(|segment| Self::part(segment.as_ref()?, part)).sum()
    }

    /// The share of a segment in the sum of all; `None` where that means nothing, as when clocks
    /// make a delay negative.
    pub(super) fn share(&self, index: usize, part: Summand) -> Option<f64> {
        let of = |segment: &Option<Estimate>| Self::part(segment.as_ref()?, part);
        let all: Option<Vec<f64>> = self.segments.iter().map(of).collect();
        let all = all.filter(|all| all.iter().all(|&part| part >= 0.0))?;
        let sum: f64 = all.iter().sum();
        (sum > 0.0).then(|| all[index] / sum)
    }

    /// The segment that adds the most; `None` if none adds anything.
    pub(super) fn most(&self, part: Summand) -> Option<(usize, f64)> {
        let shares =
            (0..self.segments.len()).filter_map(|index| Some((index, self.share(index, part)?)));
        shares.max_by(|(_, one), (_, other)| one.total_cmp(other))
    }

    /// What the whole has beyond the sum of the segments.
    pub(super) fn rest(&self) -> Rest {
        let of_total = |part| Self::part(self.total.as_ref()?, part);
        let beyond = |part| Some(of_total(part)? - self.sum(part)?);
        Rest {
            mean_ns: self.mean_rest_ns(),
            half_width_ns: self.half_width_ns(),
            variance_ns2: beyond(Summand::Variance),
            lost: beyond(Summand::Loss).map(|lost| lost as i64),
        }
    }

    /// In integers first: clocks may be years apart.
    fn mean_rest_ns(&self) -> Option<f64> {
        let mean_ns = |estimate: &Option<Estimate>| {
            Some(i128::from(estimate.as_ref()?.delay?.mean().as_nanos()))
        };
        let segments: Option<i128> = self.segments.iter().map(mean_ns).sum();
        Some((mean_ns(&self.total)? - segments?) as f64)
    }

    /// Errors of the segments and of the whole are taken to be independent. Where algorithms
    /// sample the same packets everywhere they are not, and the interval is mostly too wide.
    fn half_width_ns(&self) -> Option<f64> {
        let square = |estimate: &Option<Estimate>| {
            let half_ns = estimate.as_ref()?.delay?.half_width_ns?;
            Some(half_ns * half_ns)
        };
        let squares: Option<f64> = self.segments.iter().chain([&self.total]).map(square).sum();
        squares.map(f64::sqrt)
    }
}

#[cfg(test)]
mod tests {
    use twixt_model::{DelayEstimate, Evidence, Scope, Span, Timestamp};

    use super::*;

    fn estimate(mean_ns: i128, deviation_ns: f64, lost: u64) -> Option<Estimate> {
        let delay = DelayEstimate {
            count: 10,
            sum_ns: 10 * mean_ns,
            deviation_ns: Some(deviation_ns),
            half_width_ns: Some(3.0),
            order: None,
            order_range: None,
        };
        let evidence = Evidence { packets: 10 + lost, lost: Some(lost), ..Evidence::default() };
        let span = Span::at(Timestamp::from_nanos(0));
        Some(Estimate {
            scope: Scope::All,
            span,
            evidence,
            delay: Some(delay),
            reason: None,
            sample: None,
            crossings: None,
        })
    }

    fn breakdown(segments: Vec<Option<Estimate>>) -> Breakdown {
        Breakdown { segments, total: estimate(110, 6.0, 5) }
    }

    #[test]
    fn the_rest_is_what_segments_do_not_explain() {
        let path = breakdown(vec![estimate(60, 3.0, 4), estimate(40, 4.0, 1)]);
        let rest = path.rest();
        assert_eq!((rest.mean_ns, rest.lost), (Some(10.0), Some(0)));
        assert_eq!(rest.variance_ns2, Some(11.0));
        assert_eq!(rest.half_width_ns, Some(27.0_f64.sqrt()));
        assert_eq!(path.most(Summand::Delay), Some((0, 0.6)));
        assert_eq!(path.most(Summand::Variance), Some((1, 0.64)));
        assert_eq!(path.most(Summand::Loss), Some((0, 0.8)));
    }

    #[test]
    fn what_one_segment_does_not_know_the_sum_does_not_either() {
        let path = breakdown(vec![estimate(60, 3.0, 4), None]);
        assert_eq!(path.rest(), Rest::default());
        assert_eq!(path.most(Summand::Loss), None);
    }

    #[test]
    fn shares_of_negative_delays_mean_nothing() {
        let path = breakdown(vec![estimate(-60, 3.0, 0), estimate(170, 4.0, 0)]);
        assert_eq!(path.most(Summand::Delay), None);
        assert_eq!(path.most(Summand::Loss), None);
        assert_eq!(path.rest().mean_ns, Some(0.0));
    }
}
