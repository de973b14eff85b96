//! Messages of IPFIX out of a stream of bytes: a file (RFC 5655) or a TCP connection.

use std::ops::Range;

/// Bytes of a message's version and length.
const PREFIX_BYTES: usize = 4;
const HEADER_BYTES: usize = 16;
const VERSION: [u8; 2] = [0, 10];

/// Whether bytes at the start of a file may be those of IPFIX messages.
#[must_use]
pub fn looks_like_ipfix(start: &[u8]) -> bool {
    start.get(..2) == Some(&VERSION[..])
        && matches!(start.get(2..4), Some(&[high, low]) if usize::from(u16::from_be_bytes([high, low])) >= HEADER_BYTES)
}

/// Whether a datagram may be an export of any version: all its lengths agree with its size.
#[must_use]
pub fn looks_like_export(datagram: &[u8]) -> bool {
    let number = |at: usize| be16(datagram, at).unwrap_or(0);
    match number(0) {
        5 => number(2) > 0 && datagram.len() >= 24 + 48 * number(2),
        9 => sets_fill(datagram, 20),
        10 => number(2) == datagram.len() && sets_fill(datagram, HEADER_BYTES),
        _ => false,
    }
}

/// Whether sets follow each other from `at` to the end, and there is one at least.
fn sets_fill(datagram: &[u8], mut at: usize) -> bool {
    let start = at;
    while let Some(length) = be16(datagram, at + 2) {
        if length < PREFIX_BYTES {
            return false;
        }
        at += length;
    }
    at == datagram.len() && at > start
}

fn be16(bytes: &[u8], at: usize) -> Option<usize> {
    match bytes.get(at..at + 2) {
        Some(&[high, low]) => Some(usize::from(u16::from_be_bytes([high, low]))),
        _ => None,
    }
}

/// How a stream of messages ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SplitEnd {
    /// After a message.
    Clean,
    /// Within one, of which so many bytes are there.
    Torn {
        /// How many.
        bytes: usize,
    },
    /// Where a message should have begun was none: so far from the start of the stream. What
    /// follows cannot be distinguished.
    Lost {
        /// How far.
        offset: u64,
    },
}

/// Cuts a stream of bytes into messages. Never holds more than what it was fed last and one
/// message, which has at most 65 535 bytes.
#[derive(Clone, Debug, Default)]
pub struct MessageSplitter {
    buffer: Vec<u8>,
    consumed: usize,
    /// Of the whole stream.
    offset: u64,
    lost: bool,
}

impl MessageSplitter {
    /// Nothing yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds bytes. Take all messages before adding more.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.buffer.drain(..self.consumed);
        self.consumed = 0;
        if !self.lost {
            self.buffer.extend_from_slice(bytes);
        }
    }

    /// The next whole message.
    pub fn next_message(&mut self) -> Option<&[u8]> {
        let range = self.next_range()?;
        Some(&self.buffer[range])
    }

    /// How the stream ended, if nothing comes any more.
    #[must_use]
    pub fn end(&self) -> SplitEnd {
        match self.buffer.len() - self.consumed {
            _ if self.lost => SplitEnd::Lost { offset: self.offset },
            0 => SplitEnd::Clean,
            bytes => SplitEnd::Torn { bytes },
        }
    }

    fn next_range(&mut self) -> Option<Range<usize>> {
        let left = &self.buffer[self.consumed..];
        let prefix = left.get(..PREFIX_BYTES).filter(|_| !self.lost)?;
        if !looks_like_ipfix(prefix) {
            self.lost = true;
            return None;
        }
        let length = usize::from(u16::from_be_bytes([prefix[2], prefix[3]]));
        if left.len() < length {
            return None;
        }
        let range = self.consumed..self.consumed + length;
        self.consumed = range.end;
        self.offset += length as u64;
        Some(range)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(length: u16) -> Vec<u8> {
        let mut bytes = vec![7; usize::from(length)];
        bytes[..2].copy_from_slice(&VERSION);
        bytes[2..4].copy_from_slice(&length.to_be_bytes());
        bytes
    }

    #[track_caller]
    fn check(stream: &[u8], piece: usize, lengths: &[usize], end: SplitEnd) {
        let mut splitter = MessageSplitter::new();
        let mut found = Vec::new();
        for piece in stream.chunks(piece) {
            splitter.feed(piece);
            while let Some(message) = splitter.next_message() {
                found.push(message.len());
            }
            assert!(splitter.buffer.len() <= 65_535 + piece.len());
        }
        assert_eq!((found.as_slice(), splitter.end()), (lengths, end));
    }

    #[test]
    fn messages_come_out_however_the_bytes_came_in() {
        let stream = [message(16), message(300), message(65_535)].concat();
        for piece in [1, 7, 64, 100_000] {
            check(&stream, piece, &[16, 300, 65_535], SplitEnd::Clean);
        }
        check(&stream[..400], 33, &[16, 300], SplitEnd::Torn { bytes: 84 });
        check(&[], 1, &[], SplitEnd::Clean);
    }

    #[test]
    fn exports_are_told_apart_from_other_datagrams() {
        let ipfix = [&[0, 10, 0, 24][..], &[0; 12], &[1, 0, 0, 8], &[0; 4]].concat();
        assert!(looks_like_export(&ipfix));
        assert!(!looks_like_export(&ipfix[..20]));
        assert!(looks_like_export(&[&[0, 5, 0, 1][..], &[0; 68]].concat()));
        assert!(!looks_like_export(&[&[0, 5, 0, 2][..], &[0; 68]].concat()));
        let netflow9 = [&[0, 9, 0, 1][..], &[0; 16], &[0, 0, 0, 8], &[0; 4]].concat();
        assert!(looks_like_export(&netflow9));
        assert!(!looks_like_export(&netflow9[..26]));
        assert!(!looks_like_export(&[&netflow9[..], &[0; 8]].concat()));
        for other in [&b""[..], b"\0", b"\0\x0a", b"\0\x09\0\x01", b"GET /"] {
            assert!(!looks_like_export(other), "{other:?}");
        }
    }

    #[test]
    fn what_is_no_message_ends_it_with_its_place() {
        let stream = [message(16), b"nonsense".to_vec(), message(16)].concat();
        check(&stream, 5, &[16], SplitEnd::Lost { offset: 16 });
        check(&[0, 10, 0, 3, 0, 0], 2, &[], SplitEnd::Lost { offset: 0 });
    }
}
