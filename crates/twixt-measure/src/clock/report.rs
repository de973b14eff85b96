//! What is known of two clocks, and what it makes of a time.

use twixt_model::{Delay, Span, Timestamp};

use super::drift::SkewDoubt;
use super::pieces::ClockPiece;
use super::skew::Skew;
use super::steps::{ClockStep, LevelShift};
use super::two_way::ClockOffset;

/// What is known of the downstream clock, compared with the upstream one.
#[derive(Clone, Debug, PartialEq)]
pub struct ClockReport {
    /// The interval of upstream time that it rests on.
    pub span: Span,
    /// How much it gains; `None` where that is not known.
    pub skew: Option<Skew>,
    /// Why that is not known.
    pub skew_doubt: Option<SkewDoubt>,
    /// When it was set, oldest first.
    pub steps: Vec<ClockStep>,
    /// Changes of delay that are another path, or may be one.
    pub shifts: Vec<LevelShift>,
    /// How far it was ahead at the start of the interval, and how far what follows from that and from
    /// steps can be off at any time; `None` unless packets went both ways.
    pub offset: Option<ClockOffset>,
    /// The intervals between steps: one more than there are steps.
    pub pieces: Vec<ClockPiece>,
}

impl ClockReport {
    pub(super) fn new(
        span: Span,
        skew: Result<Skew, SkewDoubt>,
        (mut steps, mut pieces): (Vec<ClockStep>, Vec<ClockPiece>),
        shifts: Vec<LevelShift>,
    ) -> Self {
        let rate = skew.ok().filter(Skew::is_sure).map_or(0.0, |skew| skew.ppm / 1e6);
        let mut ahead = Delay::ZERO;
        for number in 0..pieces.len() {
            if let Some(before) = number.checked_sub(1) {
                let Span { start, .. } = pieces[number].upstream;
                let carried = pieces[before].ahead_at(start, rate);
                // The offsets of both sides tell the step better than the packets beside it.
                if let (Some(_), Some(after)) = (pieces[before].offset, pieces[number].offset) {
                    steps[before].step = after.offset - carried;
                }
                ahead = carried + steps[before].step;
            }
            let piece = &mut pieces[number];
            piece.ahead = piece.offset.map_or(ahead, |offset| offset.offset);
        }
        let offset = offset_of(&pieces);
        let skew_doubt = skew.err();
        Self { span, skew: skew.ok(), skew_doubt, steps, shifts, offset, pieces }
    }

    /// How far the downstream clock was ahead when the upstream one showed `time`, by all that is
    /// known; what is not known counts as nothing.
    #[must_use]
    pub fn ahead(&self, time: Timestamp) -> Delay {
        let number = self.steps.iter().filter(|step| step.time <= time).count();
        let piece = self.pieces.get(number).or(self.pieces.last());
        piece.map_or(Delay::ZERO, |piece| piece.ahead_at(time, self.rate()))
    }

    /// What the upstream clock would have shown when the downstream one showed `time`, in the interval
    /// with this number.
    #[must_use]
    pub fn upstream_time(&self, piece: usize, time: Timestamp) -> Timestamp {
        let Some(piece) = self.pieces.get(piece).or(self.pieces.last()) else { return time };
        time - piece.ahead_when(time, self.rate())
    }

    /// Whether there is anything to correct.
    #[must_use]
    pub fn knows_something(&self) -> bool {
        self.offset.is_some() || self.sure_skew().is_some() || !self.steps.is_empty()
    }

    /// The skew, where it differs from none for sure.
    #[must_use]
    pub fn sure_skew(&self) -> Option<Skew> {
        self.skew.filter(Skew::is_sure)
    }

    /// How far what is known can be off at any time: the offset's bound, or without an offset what the
    /// skew's error adds up to.
    #[must_use]
    pub fn doubt(&self) -> Delay {
        // Times are whole nanoseconds, and so is what is taken out of them.
        let rounded = Delay::from_nanos(2);
        let skew = self.sure_skew().map_or(0.0, |skew| skew.error_ppm / 1e6);
        let drifted = share((self.span.end - self.span.start).as_nanos(), skew);
        rounded + self.offset.map_or(drifted, |offset| offset.error_bound)
    }

    /// The same clocks, seen from the other point.
    #[must_use]
    pub fn turned(&self) -> Self {
        let rate = self.rate();
        let there = |time: Timestamp| time + self.ahead(time);
        let skew = self.skew.map(|skew| Skew { ppm: -skew.ppm / (1.0 + skew.ppm / 1e6), ..skew });
        let step = |step: &ClockStep| ClockStep { time: there(step.time), step: -step.step };
        let shift = |shift: &LevelShift| LevelShift {
            time: there(shift.time),
            change: -shift.change,
            downstream: !shift.downstream,
            ..*shift
        };
        let pieces: Vec<ClockPiece> = self.pieces.iter().map(|piece| piece.turned(rate)).collect();
        Self {
            span: Span { start: there(self.span.start), end: there(self.span.end) },
            skew,
            skew_doubt: self.skew_doubt.map(SkewDoubt::turned),
            steps: self.steps.iter().map(step).collect(),
            shifts: self.shifts.iter().map(shift).collect(),
            offset: offset_of(&pieces),
            pieces,
        }
    }

    /// What it gains for sure, of each unit of upstream time.
    fn rate(&self) -> f64 {
        self.sure_skew().map_or(0.0, |skew| skew.ppm / 1e6)
    }
}

impl ClockPiece {
    /// How far the downstream clock is ahead when the upstream one shows `time`.
    fn ahead_at(&self, time: Timestamp, rate: f64) -> Delay {
        self.ahead + share((time - self.upstream.start).as_nanos(), rate)
    }

    /// The same when the downstream one shows `time`.
    fn ahead_when(&self, time: Timestamp, rate: f64) -> Delay {
        let elapsed = time - (self.upstream.start + self.ahead);
        self.ahead + share(elapsed.as_nanos(), rate / (1.0 + rate))
    }

    fn turned(&self, rate: f64) -> Self {
        let ahead = -self.ahead_when(self.downstream.start, rate);
        Self {
            upstream: self.downstream,
            downstream: self.upstream,
            offset: self.offset.map(|offset| ClockOffset { offset: ahead, ..offset }),
            ahead,
        }
    }
}

/// The offset of the first interval, as sure as the least sure of all; `None` if one is not known.
fn offset_of(pieces: &[ClockPiece]) -> Option<ClockOffset> {
    let offsets: Vec<ClockOffset> =
        pieces.iter().map(|piece| piece.offset).collect::<Option<_>>()?;
    let error_bound = offsets.iter().map(|offset| offset.error_bound).max()?;
    Some(ClockOffset { error_bound, ..*offsets.first()? })
}

fn share(elapsed_ns: i64, rate: f64) -> Delay {
    Delay::from_nanos((elapsed_ns as f64 * rate).round() as i64)
}
