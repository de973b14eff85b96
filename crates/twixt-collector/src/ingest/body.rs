//! Reads a body, unpacks it, and never holds more of it than is allowed: neither of one body nor
//! of all together.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;

use axum::body::{Body, Bytes};
use hyper::body::{Body as _, Frame};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use zstd::stream::raw::{DParameter, Decoder, InBuffer, Operation, OutBuffer};

use super::answer::Problem;

/// In which memory for bodies is given out.
pub(super) const MEMORY_UNIT_BYTES: usize = 4_096;
/// Memory that unpacking may need beside the result: 2^23 bytes, what zstd promises for every
/// level but its extreme ones.
const WINDOW_LOG_MAX: u32 = 23;
/// Unpacked at once.
const PIECE_BYTES: usize = 16_384;

/// Takes a body piece by piece.
pub(super) struct BodyReader {
    decoder: Option<Decoder<'static>>,
    bytes: Vec<u8>,
    bytes_max: usize,
    memory: Arc<Semaphore>,
    /// Of which this body has so much.
    held: Option<OwnedSemaphorePermit>,
}

impl BodyReader {
    pub(super) fn new(
        is_packed: bool,
        bytes_max: usize,
        memory: Arc<Semaphore>,
    ) -> Result<Self, Problem> {
        let decoder = is_packed.then(bounded_decoder).transpose().map_err(|_| Problem::Failed)?;
        Ok(Self { decoder, bytes: Vec::new(), bytes_max, memory, held: None })
    }

    /// The whole body, and the memory that it takes.
    pub(super) async fn read(
        mut self,
        body: &mut Body,
    ) -> Result<(Vec<u8>, Option<OwnedSemaphorePermit>), Problem> {
        while let Some(frame) = next_frame(body).await {
            if let Ok(piece) = frame.map_err(|_| Problem::Cut)?.into_data() {
                self.push(&piece)?;
            }
        }
        Ok((self.bytes, self.held))
    }

    pub(super) fn push(&mut self, piece: &[u8]) -> Result<(), Problem> {
        let Some(mut decoder) = self.decoder.take() else { return self.extend(piece) };
        let mut input = InBuffer::around(piece);
        let mut unpacked = [0; PIECE_BYTES];
        loop {
            let mut output = OutBuffer::around(unpacked.as_mut_slice());
            let problem = |error: std::io::Error| Problem::Malformed(format!("zstd: {error}"));
            decoder.run(&mut input, &mut output).map_err(problem)?;
            let length = output.pos();
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
        let held = self.held.as_ref().map_or(0, OwnedSemaphorePermit::num_permits);
        let more = length.div_ceil(MEMORY_UNIT_BYTES).saturating_sub(held);
        if more > 0 {
            let more = u32::try_from(more).map_err(|_| Problem::Crowded)?;
            let permit = Arc::clone(&self.memory).try_acquire_many_owned(more);
            let permit = permit.map_err(|_| Problem::Crowded)?;
            match &mut self.held {
                Some(held) => held.merge(permit),
                None => self.held = Some(permit),
            }
        }
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

fn bounded_decoder() -> std::io::Result<Decoder<'static>> {
    let mut decoder = Decoder::new()?;
    decoder.set_parameter(DParameter::WindowLogMax(WINDOW_LOG_MAX))?;
    Ok(decoder)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BYTES_MAX: usize = 100_000;

    fn read(body: &[u8], is_packed: bool, memory_bytes: usize) -> Result<Vec<u8>, Problem> {
        let memory = Arc::new(Semaphore::new(memory_bytes / MEMORY_UNIT_BYTES));
        let mut reader = BodyReader::new(is_packed, BYTES_MAX, Arc::clone(&memory)).unwrap();
        let pushed = body.chunks(1_000).try_for_each(|piece| reader.push(piece));
        assert!(reader.bytes.len() <= BYTES_MAX);
        let bytes = std::mem::take(&mut reader.bytes);
        drop(reader);
        assert_eq!(memory.available_permits(), memory_bytes / MEMORY_UNIT_BYTES, "given back");
        pushed.map(|()| bytes)
    }

    #[track_caller]
    fn check(length: usize, expected: Result<(), Problem>) {
        let body: Vec<u8> = (0..length).map(|index| ((index * index) >> 7) as u8).collect();
        let expected = expected.map(|()| body.clone());
        assert_eq!(read(&body, false, 1 << 20), expected);
        let packed = zstd::encode_all(body.as_slice(), 3).unwrap();
        assert_eq!(read(&packed, true, 1 << 20), expected);
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
        assert_eq!(read(&bomb, true, 1 << 20), Err(Problem::TooLarge { bytes_max: BYTES_MAX }));
    }

    #[test]
    fn memory_of_all_bodies_is_bounded() {
        assert_eq!(read(&[7; 9_000], false, 8_192), Err(Problem::Crowded));
        assert_eq!(read(&[7; 8_000], false, 8_192).unwrap().len(), 8_000);
    }

    #[test]
    fn what_is_not_packed_is_no_surprise() {
        assert!(matches!(read(b"not packed at all", true, 8_192), Err(Problem::Malformed(_))));
    }
}
