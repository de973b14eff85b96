//! Synopses as bytes.

use twixt_model::{Span, Timestamp};
use twixt_synopsis::{Conclude, DecodeError, Estimator, Pair, Question, decode, encode};

use crate::{FuzzResult, checksummed};

/// What every encoded synopsis starts with: magic and format version.
const HEADER: &[u8] = b"TWXS\x01";

/// Decodes the bytes twice: as they are, and as what lies between header and checksum, so that
/// the decoders of the algorithms see them. What decodes encodes to the same bytes again.
pub fn synopsis(bytes: &[u8]) -> FuzzResult {
    let wrapped = checksummed([HEADER, bytes].concat());
    FuzzResult::of(survives(bytes).is_ok() | survives(&wrapped).is_ok())
}

fn survives(bytes: &[u8]) -> Result<(), DecodeError> {
    let (algorithm, mut synopsis) =
        decode(bytes).inspect_err(|error| assert!(!error.to_string().is_empty()))?;
    let encoded = encode(synopsis.as_ref());
    let (algorithm_again, again) = decode(&encoded).expect("what we wrote, we read");
    assert!(std::ptr::eq(algorithm, algorithm_again));
    assert_eq!(encode(again.as_ref()), encoded);
    assert_eq!(again.totals(), synopsis.totals());
    let question = Question::about(Span::at(Timestamp::default()));
    match algorithm.estimator {
        Estimator::TwoPoint { estimate, .. } => {
            let pair = Pair { upstream: synopsis.as_ref(), downstream: again.as_ref() };
            estimate(pair, &question).expect("equal configurations compare");
        }
        Estimator::RoundTrip { conclude: Conclude { conclude, .. }, .. } => {
            conclude(synopsis.as_ref(), &question).expect("its own algorithm");
        }
        Estimator::Reorder(Conclude { conclude, .. }) => {
            conclude(synopsis.as_ref(), &question).expect("its own algorithm");
        }
        Estimator::Heavy(Conclude { conclude, .. }) => {
            conclude(synopsis.as_ref(), &question).expect("its own algorithm");
        }
    }
    synopsis.try_merge(again.as_ref()).expect("equal configurations merge");
    Ok(())
}
