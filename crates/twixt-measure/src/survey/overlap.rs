//! The time that both captures cover. A clock that was set cuts it in pieces, each of which is
//! compared by itself.

use twixt_model::{Delay, Span};

use crate::clock::{ClockPiece, ClockPoint, ClockReport};

use super::compare::{Comparison, DelayRange, quantiles};

/// When both points were capturing, by their clocks, and the delays of packets that went downstream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Overlap {
    /// When the upstream point was capturing.
    pub upstream: Span,
    /// When the downstream point was.
    pub downstream: Span,
    /// Delays of matched packets, or what they would be.
    pub delays: DelayRange,
    /// Their evenly spaced quantiles, ascending.
    pub quantiles: Vec<Delay>,
}

impl Comparison {
    /// All of it, if packets go downstream.
    #[must_use]
    pub fn overlap(&self) -> Option<Overlap> {
        Some(Overlap {
            upstream: self.upstream_frames,
            downstream: self.downstream_frames,
            delays: self.expected_delays()?,
            quantiles: self.downstream_quantiles.clone(),
        })
    }

    /// The pieces between the steps of a clock, with their numbers in the report. Times that a clock
    /// showed twice belong to none: which packet they are of cannot be said. A piece without packets
    /// that went downstream is left out.
    #[must_use]
    pub fn overlaps(&self, report: &ClockReport) -> Vec<(usize, Overlap)> {
        let gaps = report.pieces.windows(2).zip(&report.steps);
        let gaps: Vec<Delay> = gaps.map(|(pieces, step)| gap(pieces, step.step)).collect();
        let piece = |number: usize| {
            let piece = &report.pieces[number];
            let within = |point: &&ClockPoint| {
                piece.upstream.contains(point.time)
                    && piece.downstream.contains(point.time + point.difference)
            };
            let points = self.downstream_points.iter().filter(within);
            let delays: Vec<Delay> = points.map(|point| point.difference).collect();
            let alone = |pick: fn(&ClockPiece) -> Span, frames: Span| {
                let spans: Vec<Span> = report.pieces.iter().map(pick).collect();
                alone(&spans, &gaps, number, frames)
            };
            Some(Overlap {
                upstream: alone(|piece| piece.upstream, self.upstream_frames)?,
                downstream: alone(|piece| piece.downstream, self.downstream_frames)?,
                quantiles: quantiles(&delays),
                delays: DelayRange::of(delays)?,
            })
        };
        (0..report.pieces.len()).filter_map(|number| Some((number, piece(number)?))).collect()
    }
}

/// How long it takes at most from the last packet of a piece to the first of the next, by the clock
/// that was not set: by the one that was, it takes longer, or less than no time, or so much less.
fn gap(pieces: &[ClockPiece], step: Delay) -> Delay {
    const SMALL: Delay = Delay::from_nanos(1_000_000_000);
    let gaps = [
        pieces[1].upstream.start - pieces[0].upstream.end,
        pieces[1].downstream.start - pieces[0].downstream.end,
    ];
    let least = gaps.into_iter().filter(|gap| *gap > Delay::ZERO).min().unwrap_or(Delay::ZERO);
    let size = Delay::from_nanos(step.as_nanos().saturating_abs());
    if size <= SMALL { least + size } else { least }
}

/// What a span has for itself, reaching to the ends of the capture where no other does. Frames of the
/// others go on for as long as the gaps between them: a step is somewhere in there.
fn alone(spans: &[Span], gaps: &[Delay], number: usize, frames: Span) -> Option<Span> {
    let mut span = spans[number];
    let others = || spans.iter().enumerate().filter(|(other, _)| *other != number);
    if others().all(|(_, other)| other.start > span.start) {
        span.start = span.start.min(frames.start);
    }
    if others().all(|(_, other)| other.end < span.end) {
        span.end = span.end.max(frames.end);
    }
    others().try_fold(span, |span, (other, around)| {
        let before = other.checked_sub(1).map_or(Delay::ZERO, |gap| gaps[gap]);
        let after = gaps.get(other).copied().unwrap_or(Delay::ZERO);
        without(span, Span { start: around.start - before, end: around.end + after })
    })
}

/// The longer part of a span that another does not touch.
fn without(span: Span, other: Span) -> Option<Span> {
    const ONE: Delay = Delay::from_nanos(1);
    if other.end < span.start || other.start > span.end {
        return Some(span);
    }
    let before = Span { start: span.start, end: other.start - ONE };
    let after = Span { start: other.end + ONE, end: span.end };
    let length = |span: &Span| span.end - span.start;
    let left = [before, after].into_iter().filter(|span| span.start <= span.end);
    left.max_by_key(length)
}

#[cfg(test)]
mod tests {
    use twixt_model::Timestamp;

    use super::*;

    fn span(start_ns: i64, end_ns: i64) -> Span {
        Span { start: Timestamp::from_nanos(start_ns), end: Timestamp::from_nanos(end_ns) }
    }

    #[track_caller]
    fn check(pieces: &[(i64, i64)], frames: (i64, i64), expected: &[Option<(i64, i64)>]) {
        check_gap(0, pieces, frames, expected);
    }

    #[track_caller]
    fn check_gap(
        gap_ns: i64,
        pieces: &[(i64, i64)],
        frames: (i64, i64),
        expected: &[Option<(i64, i64)>],
    ) {
        let gaps = vec![Delay::from_nanos(gap_ns); pieces.len() - 1];
        let spans: Vec<Span> = pieces.iter().map(|(start, end)| span(*start, *end)).collect();
        let found: Vec<Option<Span>> = (0..spans.len())
            .map(|number| alone(&spans, &gaps, number, span(frames.0, frames.1)))
            .collect();
        let expected: Vec<Option<Span>> =
            expected.iter().map(|piece| piece.map(|(start, end)| span(start, end))).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn times_that_a_clock_showed_twice_belong_to_no_piece() {
        check(&[(5, 90)], (0, 100), &[Some((0, 100))]);
        check(&[(5, 40), (60, 90)], (0, 100), &[Some((0, 40)), Some((60, 100))]);
        // Set back by 30.
        check(&[(5, 50), (20, 90)], (0, 100), &[Some((0, 19)), Some((51, 100))]);
        // Set back to before the first packet.
        check(&[(500, 550), (5, 90)], (0, 560), &[Some((500, 560)), Some((0, 90))]);
        check(&[(5, 90), (5, 90)], (0, 100), &[None, None]);
        // Frames of the first piece go on until 53 at most, those of the second begin at 17.
        check_gap(3, &[(5, 50), (20, 90)], (0, 100), &[Some((0, 16)), Some((54, 100))]);
    }
}
