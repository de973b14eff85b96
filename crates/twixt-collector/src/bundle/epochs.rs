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

#[cfg(test)]
mod tests {
    use twixt_model::PointId;
    use twixt_store::{Durability, Options};

    use super::*;

    const SECOND_NS: i64 = 1_000_000_000;

    /// What a bundle has of a log in which each second has an epoch of so many bytes upstream.
    fn chosen(seconds: i64, bytes: usize) -> ChosenEpochs {
        let folder = tempfile::tempdir().unwrap();
        let log = Log::open(folder.path().to_owned(), Options::default());
        let mut writer = log.writer("up").unwrap();
        let span = |second: i64| Span {
            start: Timestamp::from_nanos(second * SECOND_NS),
            end: Timestamp::from_nanos(second * SECOND_NS + SECOND_NS - 1),
        };
        let payload = vec![0; bytes];
        for second in 0..seconds {
            let entry = EpochEntry { stream: "lda", span: span(second), epoch: Epoch(second) };
            writer.append(&entry, &payload, Durability::Written).unwrap();
        }
        let segment =
            Segment { upstream: PointId("up".to_owned()), downstream: PointId("down".to_owned()) };
        let asked = EpochsAsked {
            segment: &segment,
            span: Span { start: span(0).start, end: span(seconds - 1).end },
            longest: Delay::from_nanos(SECOND_NS),
            shifts: BTreeSet::new(),
        };
        asked.choose(&log).unwrap()
    }

    #[track_caller]
    fn check(chosen: &ChosenEpochs, epochs: usize, left_out: &[&str]) {
        let found: Vec<i64> = chosen.found.iter().map(|(_, found)| found.epoch.0).collect();
        assert_eq!(found, (0..epochs as i64).collect::<Vec<i64>>());
        assert_eq!(chosen.left_out, left_out);
    }

    #[test]
    fn a_bundle_has_the_earliest_of_too_many_epochs() {
        let most = EPOCHS_MAX as i64;
        check(&chosen(most, 1), EPOCHS_MAX, &[]);
        let left_out = "raw epochs from 1970-01-01T13:53:20Z on: a bundle has 50000 of both points at most, \
                        and 256 MiB";
        check(&chosen(most + 1, 1), EPOCHS_MAX, &[left_out]);
        // More than are looked at before the latest are forgotten.
        check(&chosen(2 * most + 1, 1), EPOCHS_MAX, &[left_out]);
    }

    #[test]
    fn a_bundle_has_the_earliest_of_epochs_that_are_too_large_together() {
        let bytes = 10 << 20;
        let fitting = EPOCH_BYTES_MAX as usize / bytes;
        check(&chosen(fitting as i64, bytes), fitting, &[]);
        let left_out = "raw epochs from 1970-01-01T00:00:25Z on: a bundle has 50000 of both points at most, \
                        and 256 MiB";
        check(&chosen(fitting as i64 + 2, bytes), fitting, &[left_out]);
    }

    #[test]
    fn an_epoch_that_fits_no_section_is_left_out() {
        let left_out = format!("2 raw epochs that are larger than {} MiB", SECTION_BYTES_MAX >> 20);
        check(&chosen(2, SECTION_BYTES_MAX), 0, &[&left_out]);
    }
}
