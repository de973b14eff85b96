//! From frame to frame through a part of a data file, without an index, and past damage.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use crate::format::{HEAD_BYTES, Head, MARK};

/// How much is read at once when the next mark is searched.
const PIECE_BYTES: usize = 1 << 16;

/// A data file, and how much of it was read.
#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) file: File,
    pub(crate) read_bytes: u64,
}

impl Source {
    pub(crate) const fn new(file: File) -> Self {
        Self { file, read_bytes: 0 }
    }

    /// Fills the buffer; whether there was enough to fill it.
    pub(crate) fn fill(&mut self, buffer: &mut [u8], place: u64) -> io::Result<bool> {
        match self.file.read_exact_at(buffer, place) {
            Ok(()) => {
                self.read_bytes += buffer.len() as u64;
                Ok(true)
            }
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// The head at a place, if there is one.
    pub(crate) fn head_at(&mut self, place: u64) -> io::Result<Option<Head>> {
        let mut bytes = [0; HEAD_BYTES];
        Ok(self.fill(&mut bytes, place)?.then(|| Head::from_bytes(&bytes, place)).flatten())
    }
}

/// What comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// A frame with a sound head, all of it within the part.
    Frame { place: u64, head: Head },
    /// Bytes that are no frame; with the head of one that reaches too far.
    Damaged { place: u64, bytes: u64, head: Option<Head> },
    /// The part is over.
    End,
}

/// Walks through a part of a file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Walk {
    next: u64,
    limit: u64,
}

impl Walk {
    /// From a place up to, but not including, `limit`.
    pub(crate) const fn new(start: u64, limit: u64) -> Self {
        Self { next: start, limit }
    }

    /// How far it came.
    pub(crate) const fn place(&self) -> u64 {
        self.next
    }

    /// Where the part ends.
    pub(crate) const fn limit(&self) -> u64 {
        self.limit
    }

    pub(crate) fn step(&mut self, source: &mut Source) -> io::Result<Step> {
        let place = self.next;
        if place >= self.limit {
            return Ok(Step::End);
        }
        let head = source.head_at(place)?;
        if let Some(head) = head
            && head.frame_bytes() <= self.limit - place
        {
            self.next = place + head.frame_bytes();
            return Ok(Step::Frame { place, head });
        }
        self.next = self.search(source, place + 1)?;
        Ok(Step::Damaged { place, bytes: self.next - place, head })
    }

    /// The place of the next sound head; the limit, if there is none. Holds one piece.
    fn search(&self, source: &mut Source, from: u64) -> io::Result<u64> {
        let mut piece = vec![0; PIECE_BYTES];
        let mut start = from;
        while start.saturating_add(HEAD_BYTES as u64) <= self.limit {
            let length = (self.limit - start).min(PIECE_BYTES as u64) as usize;
            let piece = &mut piece[..length];
            if !source.fill(piece, start)? {
                break;
            }
            // Heads that begin near the end of the piece are looked at in the next.
            for at in 0..=length - HEAD_BYTES {
                if piece[at..].starts_with(&MARK) {
                    let bytes = piece[at..].first_chunk().expect("the loop ends before");
                    let place = start + at as u64;
                    if Head::from_bytes(bytes, place).is_some() {
                        return Ok(place);
                    }
                }
            }
            start += (length - HEAD_BYTES + 1) as u64;
        }
        Ok(self.limit)
    }
}
