//! Reads from a queue without changing it, but for counting what is damaged.

use std::ops::Range;

use super::chunk::payload_of;
use super::format::RecordHead;
use super::{Chunk, Queue, Queued};
use crate::error::StoreError;
use crate::format::HEADER_BYTES;
use crate::walk::{FrameHead, Step, Walk};

/// The oldest records of a queue that are not confirmed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Peeked {
    /// In order.
    pub records: Vec<Queued>,
    /// Numbers of records that were found damaged just now. They are counted.
    pub damaged: Vec<Range<u64>>,
}

/// Where reading may begin: no record that is not confirmed lies before.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cursor {
    /// The first record of the chunk.
    chunk: u64,
    place: u64,
}

/// What is wanted of a queue, and how much of it is there.
struct Reading {
    records_max: usize,
    bytes_max: usize,
    records: Vec<Queued>,
    bytes: usize,
    missing: Vec<Range<u64>>,
    /// The number that comes next.
    expected: u64,
    cursor: Option<Cursor>,
    is_done: bool,
}

impl Queue {
    /// The oldest records that are not confirmed: at most so many, and of so many bytes together
    /// unless the first has more. Damaged ones are passed over, and counted once.
    ///
    /// # Errors
    /// When the system cannot read. Nothing is counted then, and all can be read later.
    pub fn peek(&mut self, records_max: usize, bytes_max: usize) -> Result<Peeked, StoreError> {
        let mut reading = Reading {
            records_max,
            bytes_max,
            records: Vec::new(),
            bytes: 0,
            missing: Vec::new(),
            expected: self.confirmed,
            cursor: self.cursor,
            is_done: records_max == 0,
        };
        for (at, chunk) in self.chunks.iter().enumerate() {
            let behind = self.chunks.get(at + 1).map_or(self.next, Chunk::first);
            if behind > reading.expected && !reading.is_done {
                reading.read_chunk(self, chunk, behind)?;
            }
        }
        self.cursor = reading.cursor;
        Ok(self.note(reading))
    }

    /// Counts what was found damaged, and confirms what lies before the first sound record.
    fn note(&mut self, reading: Reading) -> Peeked {
        let Reading { records, missing, expected, .. } = reading;
        let damaged: Vec<Range<u64>> =
            missing.into_iter().flat_map(|range| without(range, &self.damaged)).collect();
        self.counts.damaged += damaged.iter().map(|range| range.end - range.start).sum::<u64>();
        self.looked_at = self.looked_at.max(expected);
        self.damaged.extend(damaged.iter().cloned());
        self.damaged.sort_unstable_by_key(|range| range.start);
        let sound = records.first().map_or(expected, |first| first.number);
        // If it cannot be written, they are found damaged again after a restart.
        let _ = self.move_confirmed(sound);
        Peeked { records, damaged }
    }
}

/// A range without those that are known, which are in order.
fn without(range: Range<u64>, known: &[Range<u64>]) -> Vec<Range<u64>> {
    let mut left = Vec::new();
    let mut start = range.start;
    for Range { start: from, end: to } in known {
        left.push(start..range.end.min(*from));
        start = start.max(*to);
    }
    left.push(start..range.end);
    left.retain(|range| !range.is_empty());
    left
}

impl Reading {
    /// Reads on in a chunk, up to the number that the next one begins with.
    fn read_chunk(&mut self, queue: &Queue, chunk: &Chunk, behind: u64) -> Result<(), StoreError> {
        let start = match self.cursor {
            Some(cursor) if cursor.chunk == chunk.first() => cursor.place,
            _ => HEADER_BYTES as u64,
        };
        let mut data = chunk.read(&queue.disk)?;
        let mut walk = Walk::new(start, chunk.bytes());
        while !self.is_done {
            let step = walk.step::<RecordHead>(&mut data).map_err(chunk.reading())?;
            let (place, head) = match step {
                Step::Frame { place, head } if head.number < behind => (place, head),
                // What the next chunk has again, or damage: the numbers tell what is missing.
                Step::Frame { .. } | Step::Damaged { .. } => continue,
                Step::End => break,
            };
            if head.number < self.expected {
                if head.number < queue.confirmed {
                    let place = place + head.frame_bytes();
                    self.cursor = Some(Cursor { chunk: chunk.first(), place });
                }
                continue;
            }
            let payload = payload_of(&mut data, place, &head).map_err(chunk.reading())?;
            self.take(head, payload);
        }
        if !self.is_done {
            self.miss(behind);
        }
        Ok(())
    }

    /// Takes a record, unless it is damaged or too much.
    fn take(&mut self, head: RecordHead, payload: Option<Vec<u8>>) {
        let bytes = payload.as_ref().map_or(0, Vec::len);
        if self.bytes + bytes > self.bytes_max && !self.records.is_empty() {
            self.is_done = true;
            return;
        }
        self.miss(head.number);
        let Some(payload) = payload else { return self.miss(head.number + 1) };
        self.bytes += bytes;
        self.expected = head.number + 1;
        self.records.push(Queued { number: head.number, label: head.label, payload });
        self.is_done = self.records.len() >= self.records_max;
    }

    /// All numbers before this one that were expected are missing.
    fn miss(&mut self, before: u64) {
        if self.expected < before {
            self.missing.push(self.expected..before);
            self.expected = before;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(known: &[(u64, u64)], expected: &[u64]) {
        let known: Vec<Range<u64>> = known.iter().map(|&(start, end)| start..end).collect();
        let left: Vec<u64> = without(3..9, &known).into_iter().flatten().collect();
        assert_eq!(left, expected);
    }

    #[test]
    fn what_is_known_to_be_damaged_is_not_counted_again() {
        check(&[], &[3, 4, 5, 6, 7, 8]);
        check(&[(0, 4), (5, 6), (8, 20)], &[4, 6, 7]);
        check(&[(0, 1), (12, 13)], &[3, 4, 5, 6, 7, 8]);
        check(&[(3, 9)], &[]);
    }
}
