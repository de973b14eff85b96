//! When a point did not observe. Epochs that lack something because of that are torn: no loss may
//! be concluded from them.

use twixt_measure::Sealed;
use twixt_model::{Span, Timestamp};

/// Gaps remembered. Beyond, the two oldest count as one, with all between them.
pub const GAPS_MAX: usize = 64;

/// Intervals of time, on the point's clock, in which it did not observe.
#[derive(Clone, Debug)]
pub(crate) struct Gaps {
    spans: Vec<Span>, // at most GAPS_MAX
}

impl Gaps {
    /// Observes from then on.
    pub(crate) fn until(began: Timestamp) -> Self {
        Self { spans: vec![Span { start: Timestamp::MIN, end: began }] }
    }

    /// Did not observe in this interval.
    pub(crate) fn add(&mut self, span: Span) {
        self.spans.push(span);
        if self.spans.len() > GAPS_MAX {
            let oldest = self.spans.remove(0);
            self.spans[0] = self.spans[0].union(oldest);
        }
    }

    /// Does not observe from then on; until when is not known.
    pub(crate) fn open(&mut self, from: Timestamp) {
        self.add(Span { start: from, end: Timestamp::MAX });
    }

    /// Observes again.
    pub(crate) fn close(&mut self, until: Timestamp) {
        if let Some(last) = self.spans.last_mut()
            && last.end == Timestamp::MAX
        {
            last.end = until.max(last.start);
        }
    }

    /// The clock was set, and observing begins again. Epochs that were sealed before must not be
    /// taken for those that get the same numbers now.
    pub(crate) fn begin_again(&mut self, now: Timestamp, sealed_before: Option<Span>) {
        // Those before the first era ended at a time that means nothing any more.
        self.spans.retain(|span| span.start != Timestamp::MIN);
        self.add(Span { start: Timestamp::MIN, end: now });
        if let Some(span) = sealed_before {
            self.add(span);
        }
    }

    /// Whether something of an epoch may be missing. What was in flight at its ends is known only
    /// if the point observed for the guard before its start and after its end.
    pub(crate) fn tears(&self, sealed: &Sealed) -> bool {
        let epoch = sealed.rule.span_of(sealed.epoch);
        let start = epoch.start + sealed.shift - sealed.guard;
        let end = epoch.end + sealed.shift + sealed.guard;
        self.spans.iter().any(|gap| gap.start < end && start < gap.end)
    }
}

#[cfg(test)]
mod tests {
    use twixt_measure::{Meter, MeterConfig};
    use twixt_model::{Delay, EpochRule, PointId};
    use twixt_synopsis::{Purpose, find};

    use super::*;

    fn at(nanos: i64) -> Timestamp {
        Timestamp::from_nanos(nanos)
    }

    /// Which of the epochs 0 to 9, of 1000 ns with a guard of 100 ns, are torn.
    fn torn(gaps: &Gaps) -> String {
        let config = MeterConfig {
            guard: Delay::from_nanos(100),
            ..MeterConfig::new(PointId("p".to_owned()), EpochRule::every(1000).unwrap())
        };
        let lda = find(Purpose::Delay, "lda").unwrap();
        let mut meter = Meter::new(config, (lda.start)(&Default::default()).unwrap()).unwrap();
        meter.advance(at(0));
        meter.advance(at(10_000));
        let sealed = std::iter::from_fn(|| meter.poll());
        sealed.map(|sealed| if gaps.tears(&sealed) { 'x' } else { '.' }).collect()
    }

    #[test]
    fn epochs_beside_a_gap_are_torn_if_the_guard_reaches_into_it() {
        let mut gaps = Gaps::until(at(1500));
        assert_eq!(torn(&gaps), "xx........");
        gaps.open(at(7950));
        assert_eq!(torn(&gaps), "xx.....xxx", "the end of epoch 7 is doubtful");
        gaps.close(at(8050));
        assert_eq!(torn(&gaps), "xx.....xx.");
        assert_eq!(torn(&Gaps::until(at(1950))), "xxx.......", "so is the start of epoch 2");
        assert_eq!(torn(&Gaps::until(Timestamp::MIN)), "..........");
    }

    #[test]
    fn too_many_gaps_become_one() {
        let mut gaps = Gaps::until(Timestamp::MIN);
        for gap in 0..500 {
            gaps.add(Span { start: at(gap), end: at(gap) });
        }
        assert_eq!(gaps.spans.len(), GAPS_MAX);
        assert_eq!(torn(&gaps), "x.........");
    }
}
