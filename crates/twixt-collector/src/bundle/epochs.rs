//! The raw epochs of a bundle: which ones, and as bytes of a section.
//!
//! | at | bytes | field |
//! |---|---|---|
//! | 0 | 8 | number of the epoch, signed |
//! | 8 | 8 | first time, signed |
//! | 16 | 8 | last time, signed |
//! | 24 | 2 | bytes of the stream's name |
//! | 26 | | the stream's name, and the sealed epoch |

use std::collections::BTreeSet;

use twixt_model::{Delay, Epoch, Segment, Span, Timestamp};
use twixt_store::{Depth, EpochEntry, Found, Log, Query, SECTION_BYTES_MAX, StoreError};

use super::{EPOCH_BYTES_MAX, EPOCHS_MAX};

const HEAD_BYTES: usize = 26;
/// Downstream's clock may have been at so many whole epochs from upstream's in the time of a bundle.
const SHIFTS_MAX: usize = 16;

/// Which end of the segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum End {
    Upstream,
    Downstream,
}

/// Which epochs are looked for.
#[derive(Clone, Debug)]
pub(super) struct EpochsAsked<'a> {
    pub(super) segment: &'a Segment,
    pub(super) span: Span,
    /// The longest epoch: those before and after help to pair the first and the last.
    pub(super) longest: Delay,
    /// By how much downstream's epochs are later.
    pub(super) shifts: BTreeSet<i64>,
}

/// The epochs of a bundle, by time.
#[derive(Debug, Default)]
pub(super) struct ChosenEpochs {
    pub(super) found: Vec<(End, Found)>,
    pub(super) left_out: Vec<String>,
    pub(super) problems: Vec<String>,
}

impl EpochsAsked<'_> {
    /// Finds them in the log; nothing is read but their heads.
    pub(super) fn choose(&self, log: &Log) -> Result<ChosenEpochs, StoreError> {
        let mut chosen = ChosenEpochs::default();
        let mut gathered = Gathered::default();
        let near =
            Span { start: self.span.start - self.longest, end: self.span.end + self.longest };
        self.gather(log, End::Upstream, near, &mut gathered, &mut chosen)?;
        let shifts = BTreeSet::from([0]).into_iter().chain(self.shifts.iter().copied());
        for shift_ns in shifts.take(SHIFTS_MAX) {
            let shift = Delay::from_nanos(shift_ns);
            let later = Span { start: near.start + shift, end: near.end + shift };
            self.gather(log, End::Downstream, later, &mut gathered, &mut chosen)?;
        }
        if self.shifts.len() >= SHIFTS_MAX {
            chosen.left_out.push(
                "raw epochs of the downstream point: its clock was at too many distances"
                    .to_owned(),
            );
        }
        gathered.finish(&mut chosen);
        Ok(chosen)
    }

    fn gather(
        &self,
        log: &Log,
        end: End,
        span: Span,
        gathered: &mut Gathered,
        chosen: &mut ChosenEpochs,
    ) -> Result<(), StoreError> {
        let Segment { upstream, downstream } = self.segment;
        let point = if end == End::Upstream { upstream } else { downstream };
        let query = Query::between(span).at_point(&point.0).to_depth(Depth::Heads);
        let mut scan = log.scan(query)?;
        scan.by_ref().for_each(|found| gathered.add(end, found));
        chosen.problems.extend(scan.report().damages.iter().map(ToString::to_string));
        Ok(())
    }
}

/// The earliest epochs of those that were added.
#[derive(Debug, Default)]
struct Gathered {
    found: Vec<(End, Found)>, // at most 2 * EPOCHS_MAX
    /// Some were forgotten: the earliest of them.
    forgotten: Option<Timestamp>,
    too_large: u64,
}

impl Gathered {
    fn add(&mut self, end: End, found: Found) {
        let bytes = found.payload_bytes + (HEAD_BYTES + found.stream.len()) as u64;
        if bytes > SECTION_BYTES_MAX as u64 {
            self.too_large += 1;
            return;
        }
        self.found.push((end, found));
        if self.found.len() >= 2 * EPOCHS_MAX {
            self.cut(EPOCHS_MAX);
        }
    }

    /// Keeps the earliest.
    fn cut(&mut self, keep: usize) {
        self.found.sort_by(|one, other| order(one).cmp(&order(other)));
        // Two scans may find the same.
        self.found.dedup_by(|one, other| order(one) == order(other));
        if let Some((_, first)) = self.found.get(keep) {
            let start = first.span.start;
            self.forgotten = Some(self.forgotten.map_or(start, |known| known.min(start)));
        }
        self.found.truncate(keep);
    }

    fn finish(mut self, chosen: &mut ChosenEpochs) {
        self.cut(EPOCHS_MAX);
        let mut bytes_left = EPOCH_BYTES_MAX;
        let fits = |(_, found): &(End, Found)| {
            bytes_left = bytes_left.checked_sub(found.payload_bytes)?;
            Some(())
        };
        let mut fits = fits;
        let fitting = self.found.iter().take_while(|entry| fits(entry).is_some()).count();
        self.cut(fitting);
        if let Some(from) = self.forgotten {
            chosen.left_out.push(format!(
                "raw epochs from {} on: a bundle has {EPOCHS_MAX} of both points at most, and {} MiB",
                twixt_history::moment_text(from),
                EPOCH_BYTES_MAX >> 20,
            ));
        }
        if self.too_large > 0 {
            let (count, most) = (self.too_large, SECTION_BYTES_MAX >> 20);
            chosen.left_out.push(format!("{count} raw epochs that are larger than {most} MiB"));
        }
        chosen.found = self.found;
    }
}

fn order((end, found): &(End, Found)) -> impl Ord + '_ {
    (found.span.start, *end, &found.stream, found.epoch)
}

/// A raw epoch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RawEpoch<'a> {
    pub(super) stream: &'a str,
    pub(super) span: Span,
    pub(super) epoch: Epoch,
    pub(super) payload: &'a [u8],
}

impl<'a> RawEpoch<'a> {
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let (start, end) = (self.span.start.as_nanos(), self.span.end.as_nanos());
        let mut bytes = Vec::with_capacity(HEAD_BYTES + self.stream.len() + self.payload.len());
        for value in [self.epoch.0, start, end] {
            bytes.extend_from_slice(&value.to_le_bytes());
        }
        bytes.extend_from_slice(&(self.stream.len() as u16).to_le_bytes());
        bytes.extend_from_slice(self.stream.as_bytes());
        bytes.extend_from_slice(self.payload);
        bytes
    }

    /// `None` if it is none.
    pub(super) fn from_bytes(bytes: &'a [u8]) -> Option<Self> {
        let (head, rest) = bytes.split_first_chunk::<HEAD_BYTES>()?;
        let integer = |at: usize| head[at..].first_chunk().map(|bytes| i64::from_le_bytes(*bytes));
        let span = Span {
            start: Timestamp::from_nanos(integer(8)?),
            end: Timestamp::from_nanos(integer(16)?),
        };
        let length = usize::from(u16::from_le_bytes([head[24], head[25]]));
        let (stream, payload) = rest.split_at_checked(length)?;
        let stream = std::str::from_utf8(stream).ok()?;
        Some(Self { stream, span, epoch: Epoch(integer(0)?), payload })
    }

    pub(super) const fn entry(&self) -> EpochEntry<'a> {
        EpochEntry { stream: self.stream, span: self.span, epoch: self.epoch }
    }
}
