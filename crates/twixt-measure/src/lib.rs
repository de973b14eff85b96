//! Observations to sealed epochs ([`Meter`]), sealed epochs to estimates ([`Pairing`]), and the
//! bytes between the two.
//!
//! Nothing here opens a file or a socket, starts a thread or asks a clock: time comes with the
//! packets or is set with `advance`, and results are fetched with `poll`.

pub mod clock;
mod cut;
mod file;
#[cfg(test)]
mod fixtures;
mod marker;
mod message;
mod meter;
mod pairing;
mod sealed;
mod stash;
mod stream;
pub mod survey;
mod tally;

pub use file::{
    FILE_HEADER, FileError, FileTail, RECORD_BYTES_MAX, RECORD_HEADER_BYTES, RecordReader, Records,
    frame_record, record_header, records_of,
};
pub use marker::{MARKER_BYTES, Marker};
pub use message::EPOCH_NS_MIN;
pub use meter::{
    Cutting, EMPTY_EPOCHS_MAX, Meter, MeterConfig, MeterCounts, MeterError, OPEN_EPOCHS_MAX,
};
pub use pairing::{
    Pairing, PairingConfig, PairingCounts, PairingError, PairingEvent, PointSummary,
    QuestionTemplate, RUNS_MAX, Remedy, UnpairedReason, WAITING_EPOCHS_MAX,
};
pub use sealed::{CutKind, Sealed, SealedMismatch};
pub use stash::{STASH_LIMIT, Stash};
pub use stream::Stream;
pub use tally::{SKIP_REASON_BYTES_MAX, SKIP_REASONS_MAX, Tally};
