//! Sealed epochs as bytes, alone and in files, and what pairing makes of them.

use std::sync::LazyLock;

use twixt_measure::{
    FILE_HEADER, FileError, Pairing, PairingConfig, QuestionTemplate, RecordReader, Sealed,
    frame_record,
};
use twixt_model::{Delay, PointId, Segment};
use twixt_synopsis::{Lda, LdaConfig, Synopsis};

use crate::{FuzzResult, checksummed};

/// What every sealed epoch starts with: magic and format version.
const HEADER: &[u8] = b"TWXM\x02";

/// A small synopsis as the last field of a sealed epoch.
static SYNOPSIS_FIELD: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let config = LdaConfig::new(2, &[1.0]).expect("the sizes are valid");
    let encoded = twixt_synopsis::encode(&Lda::new(&config));
    [&(encoded.len() as u32).to_le_bytes(), encoded.as_slice()].concat()
});

/// Reads the bytes as a sealed epoch, as an epoch file, as the only record of one, and as the
/// fields of a sealed epoch with everything around them right.
pub fn message(bytes: &[u8]) -> FuzzResult {
    let in_file = FILE_HEADER.into_iter().chain(frame_record(bytes).expect("inputs are short"));
    let body = checksummed([HEADER, bytes].concat());
    let fields = checksummed([HEADER, bytes, SYNOPSIS_FIELD.as_slice()].concat());
    FuzzResult::of(
        survives(bytes)
            | survives(&body)
            | survives(&fields)
            | read_file(bytes)
            | read_file(&in_file.collect::<Vec<u8>>()),
    )
}

/// Whether the bytes are a sealed epoch. Its memory is known before it is decoded. What decodes
/// encodes to the same bytes again, and can be merged and paired.
fn survives(bytes: &[u8]) -> bool {
    let decoded_bytes = Sealed::decoded_bytes(bytes);
    let Ok(sealed) = Sealed::from_bytes(bytes) else { return false };
    assert!(decoded_bytes.is_ok_and(|bytes| bytes > 0), "what decodes has a known size");
    let encoded = sealed.to_bytes();
    let mut again = Sealed::from_bytes(&encoded).expect("what we wrote, we read");
    assert_eq!(again.to_bytes(), encoded);
    again.merge(&sealed).expect("equal epochs merge");
    pair(sealed);
    true
}

/// Brings the epoch together with its like of another point.
fn pair(upstream: Sealed) {
    let downstream = Sealed { point: PointId("downstream of all".to_owned()), ..upstream.clone() };
    let segment =
        Segment { upstream: upstream.point.clone(), downstream: downstream.point.clone() };
    let config = PairingConfig {
        segment,
        class: upstream.class.clone(),
        question: QuestionTemplate::default(),
        patience: Delay::ZERO,
    };
    let mut pairing = Pairing::new(config);
    pairing.receive(upstream);
    pairing.receive(downstream);
    pairing.finish();
    while pairing.poll().is_some() {}
}

/// Whether a sealed epoch was read from the file, which comes in two pieces.
fn read_file(bytes: &[u8]) -> bool {
    let mut reader = RecordReader::new();
    let mut found = false;
    let (first, second) = bytes.split_at(bytes.len() / 2);
    for piece in [first, second] {
        reader.feed(piece);
        loop {
            match reader.next_sealed() {
                Ok(Some(_)) => found = true,
                Err(FileError::Record { .. }) => {}
                Ok(None) | Err(_) => break,
            }
        }
    }
    let _ = reader.finish();
    found
}
