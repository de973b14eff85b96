//! Reads a body, unpacks it, and never holds more of it than is allowed: neither of one body nor
//! of all together.

use std::future::poll_fn;
use std::pin::Pin;

use axum::body::{Body, Bytes};
use hyper::body::{Body as _, Frame};
use zstd::zstd_safe::{DCtx, DParameter, InBuffer, OutBuffer, get_error_name};

use super::answer::Problem;
use crate::budget::HeldBytes;

/// Memory that unpacking may need beside the result: 2^23 bytes, what zstd promises for every
/// level but its extreme ones.
const WINDOW_LOG_MAX: u32 = 23;
/// Unpacked at once.
const PIECE_BYTES: usize = 16_384;

/// Takes a body piece by piece.
pub(crate) struct BodyReader {
    decoder: Option<DCtx<'static>>,
    bytes: Vec<u8>,
    bytes_max: usize,
    /// What the decoder has allocated: its window, above all.
    decoder_bytes: usize,
    /// For the bytes and the decoder.
    memory: HeldBytes,
}

impl BodyReader {
    pub(crate) fn new(
        is_packed: bool,
        bytes_max: usize,
        memory: HeldBytes,
    ) -> Result<Self, Problem> {
        let decoder = match is_packed {
            true => Some(bounded_decoder().ok_or(Problem::Failed)?),
            false => None,
        };
        Ok(Self { decoder, bytes: Vec::new(), bytes_max, decoder_bytes: 0, memory })
    }

    /// The whole body, and the memory that it takes.
    pub(super) async fn read(mut self, body: &mut Body) -> Result<(Vec<u8>, HeldBytes), Problem> {
        while let Some(frame) = next_frame(body).await {
            if let Ok(piece) = frame.map_err(|_| Problem::Cut)?.into_data() {
                self.push(&piece)?;
            }
        }
        Ok(self.finish())
    }

    /// All that was pushed, and the memory that it takes.
    pub(crate) fn finish(mut self) -> (Vec<u8>, HeldBytes) {
        self.memory.shrink_to(self.bytes.capacity() as u64);
        (self.bytes, self.memory)
    }

    pub(crate) fn push(&mut self, piece: &[u8]) -> Result<(), Problem> {
        let Some(mut decoder) = self.decoder.take() else { return self.extend(piece) };
        let mut input = InBuffer::around(piece);
        let mut unpacked = [0; PIECE_BYTES];
        loop {
            let mut output = OutBuffer::around(unpacked.as_mut_slice());
            let unpacking = decoder.decompress_stream(&mut output, &mut input);
            unpacking
                .map_err(|code| Problem::Malformed(format!("zstd: {}", get_error_name(code))))?;
            let length = output.pos();
            self.decoder_bytes = decoder.sizeof();
            self.extend(&unpacked[..length])?;
            if input.pos() == piece.len() && length < PIECE_BYTES {
                break;
            }
        }
        self.decoder = Some(decoder);
        Ok(())
    }

    fn extend(&mut self, bytes: &[u8]) -> Result<(), Problem> {
        let length = self.bytes.len() + bytes.len();
        if length > self.bytes_max {
            return Err(Problem::TooLarge { bytes_max: self.bytes_max });
        }
        let mut capacity = self.bytes.capacity();
        if length > capacity {
            capacity = (2 * capacity).clamp(length, self.bytes_max);
        }
        if !self.memory.try_grow_to((capacity + self.decoder_bytes) as u64) {
            return Err(Problem::Crowded);
        }
        self.bytes.reserve_exact(capacity - self.bytes.len());
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }
}

/// Reads and forgets what is left of a body, up to so many bytes.
pub(super) async fn discard(body: &mut Body, bytes_max: usize) {
    let mut left = bytes_max;
    while left > 0
        && let Some(Ok(frame)) = next_frame(body).await
    {
        left = left.saturating_sub(frame.data_ref().map_or(0, Bytes::len));
    }
}

async fn next_frame(body: &mut Body) -> Option<Result<Frame<Bytes>, axum::Error>> {
    poll_fn(|context| Pin::new(&mut *body).poll_frame(context)).await
}

fn bounded_decoder() -> Option<DCtx<'static>> {
    let mut decoder = DCtx::try_create()?;
    decoder.set_parameter(DParameter::WindowLogMax(WINDOW_LOG_MAX)).ok()?;
    Some(decoder)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::{BudgetMetrics, ByteBudget};

    const BYTES_MAX: usize = 100_000;
    /// Enough for a body and any window.
    const MEMORY_BYTES: u64 = 16 << 20;

    /// With so much memory for one body.
    fn read(body: &[u8], is_packed: bool, memory_bytes: u64) -> Result<Vec<u8>, Problem> {
        let budget = ByteBudget::new(4 * memory_bytes, BudgetMetrics::default());
        let mut reader = BodyReader::new(is_packed, BYTES_MAX, budget.nothing("a")).unwrap();
        let pushed = body.chunks(1_000).try_for_each(|piece| reader.push(piece));
        assert!(reader.bytes.capacity() <= BYTES_MAX);
        let bytes = std::mem::take(&mut reader.bytes);
        drop(reader);
        assert!(budget.nothing("a").try_grow_to(memory_bytes), "all of it is given back");
        pushed.map(|()| bytes)
    }

    #[track_caller]
    fn check(length: usize, expected: Result<(), Problem>) {
        let body: Vec<u8> = (0..length).map(|index| ((index * index) >> 7) as u8).collect();
        let expected = expected.map(|()| body.clone());
        assert_eq!(read(&body, false, MEMORY_BYTES), expected);
        let packed = zstd::encode_all(body.as_slice(), 3).unwrap();
        assert_eq!(read(&packed, true, MEMORY_BYTES), expected);
    }

    #[test]
    fn bodies_are_read_up_to_the_limit() {
        check(0, Ok(()));
        check(1, Ok(()));
        check(BYTES_MAX, Ok(()));
        check(BYTES_MAX + 1, Err(Problem::TooLarge { bytes_max: BYTES_MAX }));
    }

    #[test]
    fn a_bomb_goes_off_small() {
        let bomb = zstd::encode_all(vec![0; 1 << 27].as_slice(), 1).unwrap();
        assert!(bomb.len() < 200_000);
        assert_eq!(
            read(&bomb, true, MEMORY_BYTES),
            Err(Problem::TooLarge { bytes_max: BYTES_MAX })
        );
    }

    #[test]
    fn memory_of_all_bodies_is_bounded() {
        assert_eq!(read(&[7; 9_000], false, 8_192), Err(Problem::Crowded));
        assert_eq!(read(&[7; 8_000], false, 8_192).unwrap().len(), 8_000);
    }

    /// A window of 8 MiB takes memory however little is in it.
    #[test]
    fn the_window_of_the_decoder_counts() {
        let mut packer = zstd::Encoder::new(Vec::new(), 1).unwrap();
        packer.window_log(23).unwrap();
        std::io::Write::write_all(&mut packer, &[7; 1_000]).unwrap();
        let packed = packer.finish().unwrap();
        assert_eq!(read(&packed, true, 1 << 22), Err(Problem::Crowded));
        assert_eq!(read(&packed, true, 1 << 24).unwrap(), [7; 1_000]);
    }

    #[test]
    fn what_is_not_packed_is_no_surprise() {
        assert!(matches!(read(b"not packed at all", true, 8_192), Err(Problem::Malformed(_))));
    }
}
