//! Why two captures cannot be measured as asked.

use std::io;
use std::path::PathBuf;

use twixt_capture::CaptureError;
use twixt_measure::{FileError, MeterError};
use twixt_model::DigestIdentity;
use twixt_model::quantity::Nanoseconds;
use twixt_synopsis::ConfigError;
use twixt_wire::ObserverError;

/// What kind of failure it is, for exit codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// What was asked makes no sense.
    Usage,
    /// There is not enough in the files to answer.
    NoAnswer,
    /// A file cannot be read.
    Failure,
    /// A person did not want to wait.
    Interrupted,
}

/// Why two captures cannot be measured as asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OfflineError {
    /// The algorithm cannot answer per flow. Use another, or do not split by flow.
    #[error("{algorithm} does not separate flows")]
    NotPerFlow {
        /// Its name.
        algorithm: &'static str,
    },
    /// Flows were to be named by a table that is not kept. Give the algorithm one.
    #[error("{algorithm} keeps no table of large flows")]
    NoTable {
        /// Its name.
        algorithm: &'static str,
    },
    /// Packets are weighed by class, and the named flows have none. Name their classes.
    #[error("packets are weighted by rules, and the list of flows does not name the rules")]
    NoClasses,
    /// A recording has no flow keys. Name the flows.
    #[error("{algorithm} keeps no flow keys")]
    NoFlowKeys {
        /// Its name.
        algorithm: &'static str,
    },
    /// A recording has the keys of large flows only. Ask for those, or name the flows.
    #[error("{algorithm} keeps the keys of large flows only")]
    LargeFlowKeys {
        /// Its name.
        algorithm: &'static str,
    },
    /// Flows would not be recognised. Use the key and hash of the recording.
    #[error("it was recorded with another key or hash ({recorded})")]
    OtherKey {
        /// That of the recording.
        recorded: DigestIdentity,
    },
    /// A sample beside a sample. Ask for one of them.
    #[error("a sample is kept beside another algorithm, not beside itself")]
    SampleTwice,
    /// How large a sample may become depends on the length of an epoch. Choose one.
    #[error("the size of a sample is per second, and the length of an epoch is unknown")]
    SampleWithoutLength,
    /// The sample would hold nothing. Allow more bytes.
    #[error("{bytes} bytes per epoch are too few for a sample")]
    SampleTooSmall {
        /// What an epoch may take.
        bytes: u64,
    },
    /// Packets in flight at the end of an epoch could not be distinguished from lost ones. Use
    /// longer epochs.
    #[error("epochs of {length} are too short for these delays", length = Nanoseconds(*length_ns))]
    EpochsTooShort {
        /// Their length.
        length_ns: i64,
        /// By how much delays of most packets differ.
        spread_ns: i64,
        /// The shortest that would do.
        shortest_ns: i64,
    },
    /// The settings of an algorithm make no sense.
    #[error(transparent)]
    Settings(#[from] ConfigError),
    /// Epochs cannot be cut so.
    #[error(transparent)]
    Meter(#[from] MeterError),
    /// Packets cannot be observed so.
    #[error(transparent)]
    Observer(#[from] ObserverError),
    /// A capture has no packets, or all were skipped.
    #[error("{path}: nothing to measure, {why}", path = path.display())]
    NothingToMeasure {
        /// The capture.
        path: PathBuf,
        /// How many frames were skipped for which reason.
        why: String,
    },
    /// No packet is in both captures. Were they taken on the same path at the same time?
    #[error("the two captures have no packet in common")]
    NothingInCommon,
    /// Packets in common cannot be distinguished from others, so that no delay is certain.
    #[error("all common packets that go downstream look alike")]
    AllAlike,
    /// Every packet in common goes the other way. Swap the captures.
    #[error("all common packets go in the other direction")]
    OtherWayOnly,
    /// The captures were taken one after the other.
    #[error("the two captures do not overlap in time")]
    NoOverlap,
    /// A person wanted no more before anything was measured.
    #[error("interrupted while the captures were compared: nothing was measured yet")]
    Interrupted,
    /// An epoch file is empty.
    #[error("{path}: no epochs", path = path.display())]
    NoEpochs {
        /// The file.
        path: PathBuf,
    },
    /// A capture cannot be read.
    #[error(transparent)]
    Capture(#[from] CaptureError),
    /// The system cannot read a file.
    #[error("cannot read {path}", path = path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The system error.
        source: io::Error,
    },
    /// Packets exceed the memory for them, and there is no room for temporary files. Free some, or name a
    /// directory that has more.
    #[error(
        "cannot keep packets in temporary files in {directory}: free space there, or set TMPDIR to a \
         directory that has more",
        directory = directory.display()
    )]
    TemporaryFile {
        /// Where they lie.
        directory: PathBuf,
        /// The system error.
        source: io::Error,
    },
    /// A file is not what `record` writes.
    #[error("{path}", path = path.display())]
    EpochFile {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        source: FileError,
    },
}

impl OfflineError {
    /// What kind of failure it is.
    #[must_use]
    pub const fn kind(&self) -> ErrorKind {
        match self {
            Self::NothingToMeasure { .. }
            | Self::NothingInCommon
            | Self::AllAlike
            | Self::OtherWayOnly
            | Self::NoOverlap
            | Self::NoEpochs { .. } => ErrorKind::NoAnswer,
            Self::Interrupted => ErrorKind::Interrupted,
            Self::Capture(_)
            | Self::Read { .. }
            | Self::TemporaryFile { .. }
            | Self::EpochFile { .. } => ErrorKind::Failure,
            _ => ErrorKind::Usage,
        }
    }
}
