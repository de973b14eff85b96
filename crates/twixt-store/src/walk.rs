//! From frame to frame through a part of a data file, without an index, and past damage.

use std::io;

use crate::disk::DiskFile;

/// How much is read at once when the next mark is searched.
const PIECE_BYTES: usize = 1 << 16;

/// Heads are no longer than this.
const HEAD_BYTES_MAX: usize = 64;

/// The head of a frame. It has a mark, by which it is found, and a checksum that is valid at one
/// place of the file only.
pub(crate) trait FrameHead: Copy {
    const MARK: [u8; 4];
    const BYTES: usize; // at most HEAD_BYTES_MAX

    /// The head at a place of the file; `None` if these bytes are none. There are `BYTES` of them.
    fn from_bytes(bytes: &[u8], place: u64) -> Option<Self>;

    /// Bytes of the whole frame.
    fn frame_bytes(&self) -> u64;
}

/// A data file, and how much of it was read.
#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) file: Box<dyn DiskFile>,
    pub(crate) read_bytes: u64,
}

impl Source {
    pub(crate) fn new(file: Box<dyn DiskFile>) -> Self {
        Self { file, read_bytes: 0 }
    }

    /// Fills the buffer; whether there was enough to fill it.
    pub(crate) fn fill(&mut self, buffer: &mut [u8], place: u64) -> io::Result<bool> {
        let is_filled = self.file.fill_at(buffer, place)?;
        self.read_bytes += if is_filled { buffer.len() as u64 } else { 0 };
        Ok(is_filled)
    }

    /// The head at a place, if there is one.
    pub(crate) fn head_at<H: FrameHead>(&mut self, place: u64) -> io::Result<Option<H>> {
        let mut bytes = [0; HEAD_BYTES_MAX];
        let bytes = &mut bytes[..H::BYTES];
        Ok(self.fill(bytes, place)?.then(|| H::from_bytes(bytes, place)).flatten())
    }
}

/// What comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step<H> {
    /// A frame with a sound head, all of it within the part.
    Frame { place: u64, head: H },
    /// Bytes that are no frame; with the head of one that reaches too far.
    Damaged { place: u64, bytes: u64, head: Option<H> },
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

    pub(crate) fn step<H: FrameHead>(&mut self, source: &mut Source) -> io::Result<Step<H>> {
        let place = self.next;
        if place >= self.limit {
            return Ok(Step::End);
        }
        let head = source.head_at::<H>(place)?;
        if let Some(head) = head
            && head.frame_bytes() <= self.limit - place
        {
            self.next = place + head.frame_bytes();
            return Ok(Step::Frame { place, head });
        }
        self.next = self.search::<H>(source, place + 1)?;
        Ok(Step::Damaged { place, bytes: self.next - place, head })
    }

    /// The place of the next sound head; the limit, if there is none. Holds one piece.
    fn search<H: FrameHead>(&self, source: &mut Source, from: u64) -> io::Result<u64> {
        let mut piece = vec![0; PIECE_BYTES];
        let mut start = from;
        while start.saturating_add(H::BYTES as u64) <= self.limit {
            let length = (self.limit - start).min(PIECE_BYTES as u64) as usize;
            let piece = &mut piece[..length];
            if !source.fill(piece, start)? {
                break;
            }
            // Heads that begin near the end of the piece are looked at in the next.
            for at in 0..=length - H::BYTES {
                let place = start + at as u64;
                let bytes = &piece[at..at + H::BYTES];
                if bytes.starts_with(&H::MARK) && H::from_bytes(bytes, place).is_some() {
                    return Ok(place);
                }
            }
            start += (length - H::BYTES + 1) as u64;
        }
        Ok(self.limit)
    }
}
