//! Histograms as bytes, in log records and in the column `delay_histogram`.
//!
//! | at | bytes | field |
//! |---|---|---|
//! | 0 | 1 | version: 1 |
//! | 1 | 1 | scale: bounds of buckets are powers of 2^(2^-scale) |
//! | 2 | 2 | zero |
//! | 4 | 4 | most buckets it may have |
//! | 8 | 4 | number of the first bucket, signed |
//! | 12 | 4 | how many buckets follow |
//! | 16 | 8 | values added |
//! | 24 | 8 | smallest, signed |
//! | 32 | 8 | largest, signed |
//! | 40 | 16 × 4 | weight and variance: of values up to 0; sums of weights, values, squares |
//! | 104 | 16 each | weight and variance of each bucket |
//!
//! Integers are little-endian, weights are 64-bit floats.

use twixt_model::{Bucket, Histogram, HistogramState};

const VERSION: u8 = 1;
const HEAD_BYTES: usize = 104;
const BUCKET_BYTES: usize = 16;
/// No histogram that twixt writes has more; one that claims to is damaged.
const BUCKETS_MAX: usize = 1 << 16;

/// Why bytes are no histogram. The file they come from is damaged, or of a newer release.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a histogram: {0}")]
pub struct HistogramError(&'static str);

/// Writes a histogram.
#[must_use]
pub fn encode(histogram: &Histogram) -> Vec<u8> {
    let state = histogram.state();
    let mut bytes = Vec::with_capacity(HEAD_BYTES + BUCKET_BYTES * state.buckets.len());
    bytes.extend_from_slice(&[VERSION, state.scale, 0, 0]);
    bytes.extend_from_slice(&state.buckets_max.to_le_bytes());
    bytes.extend_from_slice(&state.first.to_le_bytes());
    bytes.extend_from_slice(&(state.buckets.len() as u32).to_le_bytes());
    bytes.extend_from_slice(&state.count.to_le_bytes());
    bytes.extend_from_slice(&state.min.to_le_bytes());
    bytes.extend_from_slice(&state.max.to_le_bytes());
    for bucket in [state.nothing].iter().chain(&state.sums).chain(&state.buckets) {
        bytes.extend_from_slice(&bucket.weight.to_le_bytes());
        bytes.extend_from_slice(&bucket.variance.to_le_bytes());
    }
    bytes
}

/// Reads a histogram.
///
/// # Errors
/// When the bytes are none.
pub fn decode(bytes: &[u8]) -> Result<Histogram, HistogramError> {
    let (head, rest) = bytes.split_at_checked(HEAD_BYTES).ok_or(HistogramError("too short"))?;
    let buckets = u32_at(head, 12) as usize;
    if head[0] != VERSION {
        return Err(HistogramError("unknown version"));
    }
    if buckets > BUCKETS_MAX || rest.len() != buckets * BUCKET_BYTES {
        return Err(HistogramError("wrong length"));
    }
    let state = HistogramState {
        scale: head[1],
        buckets_max: u32_at(head, 4).min(BUCKETS_MAX as u32),
        first: u32_at(head, 8) as i32,
        buckets: rest.chunks_exact(BUCKET_BYTES).map(|bucket| bucket_at(bucket, 0)).collect(),
        nothing: bucket_at(head, 40),
        count: u64_at(head, 16),
        min: u64_at(head, 24) as i64,
        max: u64_at(head, 32) as i64,
        sums: [56, 72, 88].map(|at| bucket_at(head, at)),
    };
    Histogram::from_state(state).map_err(HistogramError)
}

fn bucket_at(bytes: &[u8], at: usize) -> Bucket {
    Bucket {
        weight: f64::from_bits(u64_at(bytes, at)),
        variance: f64::from_bits(u64_at(bytes, at + 8)),
    }
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(*bytes[at..].first_chunk().expect("fields lie within the head"))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(*bytes[at..].first_chunk().expect("fields lie within the head"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_is_written_reads_back() {
        let mut histogram = Histogram::new(64);
        for value in [-5, 0, 1, 1_000, 20_000_000, i64::MAX] {
            histogram.add(value, 1.5);
            assert_eq!(decode(&encode(&histogram)).unwrap(), histogram);
        }
        assert_eq!(decode(&encode(&Histogram::new(64))).unwrap().count(), 0);
    }

    proptest! {
        #[test]
        fn strangers_bytes_do_no_harm(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let mut bytes = bytes;
            let _ = decode(&bytes);
            if bytes.len() >= 16 {
                bytes[0] = VERSION;
                let buckets = (bytes.len().saturating_sub(HEAD_BYTES) / BUCKET_BYTES) as u32;
                bytes[12..16].copy_from_slice(&buckets.to_le_bytes());
                if let Ok(histogram) = decode(&bytes) {
                    let _ = histogram.percentile(0.5);
                }
            }
        }
    }
}
