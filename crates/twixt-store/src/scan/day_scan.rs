//! The records of one day: by the index where it covers the data, frame by frame where not.

use std::io;

use twixt_model::{Epoch, Span};

use crate::compress;
use crate::day_files::DayFiles;
use crate::disk::{Access, Disk};
use crate::format::{
    DATA_MAGIC, HEAD_BYTES, HEADER_BYTES, Head, HeaderState, IndexEntry, check_header, checksum,
};
use crate::index::IndexReader;
use crate::query::{Depth, Found, Query};
use crate::report::{Cause, Damage, Report};
use crate::walk::{FrameHead, Source, Step, Walk};

#[derive(Debug)]
pub(super) struct DayScan {
    files: DayFiles,
    data: Source,
    data_bytes: u64,
    index: Option<IndexReader>,
    /// An entry that comes after what is walked through.
    held: Option<IndexEntry>,
    /// What lies before was dealt with.
    covered: u64,
    /// A part without an index, or one where the index is wrong about a record.
    walk: Option<(Walk, Option<IndexEntry>)>,
    /// What the report knows of already.
    reported_bytes: (u64, u64),
}

impl DayScan {
    /// Opens a day; `None` if there is nothing in it for the query.
    pub(super) fn open(
        disk: &dyn Disk,
        files: DayFiles,
        query: &Query,
        report: &mut Report,
    ) -> Option<Self> {
        // The index first: what it knows was written before, so the data file must have it.
        let index = IndexReader::open(disk, &files.index);
        let opened = disk
            .open(&files.data, Access::Read)
            .and_then(|file| file.about().map(|found| (file, found.bytes)));
        let (file, data_bytes) = match opened {
            Ok(opened) => opened,
            Err(error) => {
                note_absent(disk, &files, index, &error, query, report);
                return None;
            }
        };
        report.days += 1;
        let data = Source::new(file);
        let covered = HEADER_BYTES as u64;
        let mut scan = Self {
            files,
            data,
            data_bytes,
            index,
            held: None,
            covered,
            walk: None,
            reported_bytes: (0, 0),
        };
        let useful = !scan.is_over_before(query) && scan.check_header(report);
        scan.count_bytes(report);
        useful.then_some(scan)
    }

    /// The next record that is asked for.
    pub(super) fn next(&mut self, query: &Query, report: &mut Report) -> Option<Found> {
        let found = self.advance(query, report);
        self.count_bytes(report);
        found
    }

    fn advance(&mut self, query: &Query, report: &mut Report) -> Option<Found> {
        loop {
            let found = match self.walk.take() {
                Some((walk, hint)) => self.walk_on(walk, hint, query, report),
                None => match self.next_entry() {
                    Some(entry) => self.follow(entry, query, report),
                    None if self.covered < self.data_bytes => {
                        self.walk_to(self.data_bytes, report);
                        None
                    }
                    None => return None,
                },
            };
            if found.is_some() {
                return found;
            }
        }
    }

    fn next_entry(&mut self) -> Option<IndexEntry> {
        self.held.take().or_else(|| self.index.as_mut()?.next_sound())
    }

    /// Whether all records end before the time that is asked for: the last entry knows.
    fn is_over_before(&mut self, query: &Query) -> bool {
        let last = self.index.as_mut().and_then(IndexReader::last);
        last.is_some_and(|last| last.end() == self.data_bytes && last.reach < query.span.start)
    }

    /// Whether the file can be read, whatever its header looks like.
    fn check_header(&mut self, report: &mut Report) -> bool {
        let mut start = [0; HEADER_BYTES];
        let bytes = HEADER_BYTES as u64;
        let (cause, readable) = match self.data.fill(&mut start, 0) {
            Ok(true) => match check_header(&start, DATA_MAGIC) {
                HeaderState::Sound | HeaderState::Unwritten => return true,
                HeaderState::Damaged | HeaderState::Foreign => (Cause::Header, true),
                HeaderState::Newer(found) => (Cause::NewerVersion(found), false),
            },
            Ok(false) if self.index.as_ref().is_none_or(|index| index.count() == 0) => {
                report.unfinished_bytes += self.data_bytes;
                return false;
            }
            Ok(false) => return true,
            Err(error) => (Cause::Unreadable(error.to_string()), false),
        };
        let bytes = if readable { bytes } else { self.data_bytes };
        report.add(self.damage(0, bytes, cause, None));
        readable
    }

    /// Does what the index says; `None` if that gives no record yet, or none at all.
    fn follow(&mut self, entry: IndexEntry, query: &Query, report: &mut Report) -> Option<Found> {
        if entry.place < self.covered {
            return None;
        }
        if entry.place > self.covered && self.covered < self.data_bytes {
            self.walk_to(entry.place.min(self.data_bytes), report);
            self.held = Some(entry);
            return None;
        }
        let wanted = query.wants(entry.span, entry.stream_hash);
        if entry.place >= self.data_bytes {
            if wanted {
                report.add(missing(&self.files, &entry));
            }
            return None;
        }
        self.covered = entry.end().min(self.data_bytes);
        if !wanted {
            return None;
        }
        match self.data.head_at::<Head>(entry.place) {
            Ok(Some(head)) if entry.end() == entry.place + head.frame_bytes() => {
                if entry.end() <= self.data_bytes {
                    return self.read(entry.place, &head, query, report);
                }
            }
            Ok(_) => {}
            Err(error) => {
                let cause = Cause::Unreadable(error.to_string());
                let known = Some((entry.span, entry.epoch));
                report.add(self.damage(entry.place, u64::from(entry.frame_bytes), cause, known));
                return None;
            }
        }
        self.walk = Some((Walk::new(entry.place, self.covered), Some(entry)));
        None
    }

    fn walk_to(&mut self, limit: u64, report: &mut Report) {
        report.unindexed_bytes += limit - self.covered;
        self.walk = Some((Walk::new(self.covered, limit), None));
        self.covered = limit;
    }

    fn walk_on(
        &mut self,
        mut walk: Walk,
        hint: Option<IndexEntry>,
        query: &Query,
        report: &mut Report,
    ) -> Option<Found> {
        match walk.step::<Head>(&mut self.data) {
            Ok(Step::End) => return None,
            Ok(Step::Frame { place, head }) => {
                self.walk = Some((walk, hint));
                if query.wants(head.span, head.stream_hash) {
                    return self.read(place, &head, query, report);
                }
            }
            Ok(Step::Damaged { place, bytes, head }) => {
                self.walk = Some((walk, hint));
                let is_tail = place + bytes == self.data_bytes && hint.is_none();
                let known = head
                    .map(|head| (head.span, head.epoch))
                    .or(hint.map(|entry| (entry.span, entry.epoch)));
                if is_tail {
                    report.unfinished_bytes += bytes;
                } else if known.is_none_or(|(span, _)| query.overlaps(span)) {
                    report.add(self.damage(place, bytes, Cause::Head, known));
                }
            }
            Err(error) => {
                let known = hint.map(|entry| (entry.span, entry.epoch));
                let cause = Cause::Unreadable(error.to_string());
                report.add(self.damage(walk.place(), walk.limit() - walk.place(), cause, known));
            }
        }
        None
    }

    /// The record at a place; `None` if it is damaged, which is noted, or of another stream.
    fn read(
        &mut self,
        place: u64,
        head: &Head,
        query: &Query,
        report: &mut Report,
    ) -> Option<Found> {
        let cause = match read_body(&mut self.data, place, head, query.depth) {
            Ok(Some((stream, _))) if !query.wants_stream(&stream) => return None,
            Ok(Some((stream, payload))) => {
                return Some(Found {
                    point: self.files.point.clone(),
                    stream,
                    span: head.span,
                    epoch: Epoch(head.epoch),
                    payload,
                    payload_bytes: u64::from(head.raw_bytes),
                    stored_bytes: head.frame_bytes(),
                    day: self.files.day,
                    part: self.files.part,
                    place,
                });
            }
            Ok(None) => Cause::Payload,
            Err(error) => Cause::Unreadable(error.to_string()),
        };
        let known = Some((head.span, head.epoch));
        report.add(self.damage(place, head.frame_bytes(), cause, known));
        None
    }

    fn damage(&self, place: u64, bytes: u64, cause: Cause, known: Option<(Span, i64)>) -> Damage {
        Damage {
            point: self.files.point.clone(),
            day: self.files.day,
            part: self.files.part,
            place,
            bytes,
            cause,
            span: known.map(|(span, _)| span),
            epoch: known.map(|(_, epoch)| Epoch(epoch)),
        }
    }

    fn count_bytes(&mut self, report: &mut Report) {
        let index_bytes = self.index.as_ref().map_or(0, IndexReader::read_bytes);
        report.data_bytes += self.data.read_bytes - self.reported_bytes.0;
        report.index_bytes += index_bytes - self.reported_bytes.1;
        self.reported_bytes = (self.data.read_bytes, index_bytes);
    }
}

/// The stream's name and, if asked for, the payload of a frame; `None` if they are damaged. The
/// caller has seen that the file is long enough: so much is allocated.
pub(crate) fn read_body(
    data: &mut Source,
    place: u64,
    head: &Head,
    depth: Depth,
) -> io::Result<Option<(String, Vec<u8>)>> {
    let place = place + HEAD_BYTES as u64;
    let mut stream = vec![0; usize::from(head.stream_bytes)];
    if !data.fill(&mut stream, place)? || checksum(&stream) != head.stream_hash {
        return Ok(None);
    }
    let Ok(stream) = String::from_utf8(stream) else { return Ok(None) };
    if depth == Depth::Heads {
        return Ok(Some((stream, Vec::new())));
    }
    let mut stored = vec![0; head.stored_bytes as usize];
    let place = place + u64::from(head.stream_bytes);
    if !data.fill(&mut stored, place)? || checksum(&stored) != head.payload_checksum {
        return Ok(None);
    }
    Ok(match depth {
        Depth::Payloads => {
            compress::unpack(stored, head.packing, head.raw_bytes).map(|payload| (stream, payload))
        }
        Depth::Heads | Depth::Checks => Some((stream, Vec::new())),
    })
}

/// Notes what an index knows of a data file that cannot be opened.
fn note_absent(
    disk: &dyn Disk,
    files: &DayFiles,
    index: Option<IndexReader>,
    error: &io::Error,
    query: &Query,
    report: &mut Report,
) {
    if error.kind() != io::ErrorKind::NotFound {
        report.add(Damage {
            point: files.point.clone(),
            day: files.day,
            part: files.part,
            place: 0,
            bytes: disk.about(&files.data).map_or(0, |found| found.bytes),
            cause: Cause::Unreadable(error.to_string()),
            span: None,
            epoch: None,
        });
        return;
    }
    let Some(mut index) = index else { return };
    while let Some(entry) = index.next_sound() {
        if query.wants(entry.span, entry.stream_hash) {
            report.add(missing(files, &entry));
        }
    }
    report.index_bytes += index.read_bytes();
}

fn missing(files: &DayFiles, entry: &IndexEntry) -> Damage {
    Damage {
        point: files.point.clone(),
        day: files.day,
        part: files.part,
        place: entry.place,
        bytes: u64::from(entry.frame_bytes),
        cause: Cause::Missing,
        span: Some(entry.span),
        epoch: Some(Epoch(entry.epoch)),
    }
}
