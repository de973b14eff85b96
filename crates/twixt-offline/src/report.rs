//! Remarks and progress while captures are read. The caller decides how they are shown.

use std::path::PathBuf;

use twixt_capture::Ending;
use twixt_measure::FileError;
use twixt_measure::survey::Method;
use twixt_model::{Delay, Timestamp};

use crate::plan::Recognition;

/// Takes what a person may want to know.
pub trait Reporter: Sync {
    /// A read of so many bytes begins; the end of the returned value is its end.
    fn progress(&self, pass: Pass, total_bytes: u64) -> Box<dyn Progress>;

    /// Takes a remark.
    fn remark(&self, remark: Remark);

    /// Whether a person wants no more, but what was measured so far.
    fn is_enough(&self) -> bool {
        false
    }
}

/// What captures are read for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pass {
    /// The first of two reads: what both have in common.
    Survey,
    /// A read for where TCP segments begin and end.
    Segments,
    /// A read for the times of packets, which some algorithms need.
    Times,
    /// A read for RTP streams.
    Streams,
    /// The second of two reads.
    Measure,
    /// The only read.
    Only,
}

/// Takes how far a read has come, from several threads.
pub trait Progress: Sync {
    /// So many more bytes were read.
    fn advance(&self, bytes: u64);
}

/// What a person should know but did not ask for.
#[derive(Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Remark {
    /// A capture ended before its end. The frames before that were used.
    EndedEarly {
        /// The capture.
        path: PathBuf,
        /// How it ended.
        ending: Ending,
        /// Frames that were read.
        frames: u64,
    },
    /// Packets are cut within their headers and may not be recognised.
    HeadersCut {
        /// The capture.
        path: PathBuf,
        /// How many.
        packets: u64,
    },
    /// Frames are so far out of time order that epochs lack them.
    OutOfOrder {
        /// The capture.
        path: PathBuf,
        /// How many at most.
        frames: u64,
        /// How far a frame is behind the latest before it, at most.
        back: Delay,
    },
    /// Packets came when their epoch was sealed: its loss is wrong by them.
    LatePackets {
        /// The capture.
        path: PathBuf,
        /// How many.
        packets: u64,
    },
    /// One capture is cut shorter than the other: packets are recognised by what both have.
    UnequalCuts {
        /// The one with less of each packet.
        shorter: PathBuf,
        /// The other.
        longer: PathBuf,
        /// By what packets are recognised.
        recognition: Recognition,
    },
    /// Flows are cut into TCP segments differently in both captures: they are compared by byte range.
    OtherSegments {
        /// How many are.
        flows: u64,
        /// How many are not, since there would be too many pieces.
        refused: u64,
        /// In how many both captures hold merged segments of which it is not known how many packets
        /// they were.
        coarse: u64,
    },
    /// Both captures have packets at the same times, to the nanosecond: they are one.
    SameCapture {
        /// The upstream capture.
        upstream: PathBuf,
        /// The downstream one.
        downstream: PathBuf,
    },
    /// Flows of several packets go downstream, and nothing of them was seen there.
    FlowsUnseen {
        /// How many.
        flows: u64,
        /// Of how many that go downstream.
        of: u64,
    },
    /// Packets were sent this way, and none was seen at the other point.
    Outage {
        /// The upstream capture.
        upstream: PathBuf,
        /// The downstream one.
        downstream: PathBuf,
    },
    /// No packet that both captures hold goes this way.
    NothingGoes {
        /// The upstream capture.
        upstream: PathBuf,
        /// The downstream one.
        downstream: PathBuf,
    },
    /// By the user's choice flows go downstream that, by what packets tell, go upstream.
    TowardContradicted {
        /// How many.
        flows: u64,
        /// What tells it.
        by: Method,
    },
    /// A person wanted no more: packets were measured that left upstream before this time.
    EndedByRequest(Timestamp),
    /// Nothing is known of the clocks that could be taken out of delays.
    ClocksUnknown,
    /// Delays are not corrected: one would be negative by so much, which is more than what is known
    /// of the clocks can be off.
    CorrectionRefused(Delay),
    /// How many packets have send times that were not kept, for want of room.
    StampsRefused(u64),
    /// How many packets of UDP belong to flows beyond those among which RTP streams are looked for.
    StreamsRefused(u64),
    /// How many packets belong to flows beyond the number that is distinguished.
    FlowsRefused(u64),
    /// How many packets near the ends of the overlap could not be held back: its ends are not exact.
    HeldRefused(u64),
    /// A record of an epoch file is left out.
    RecordLeftOut {
        /// The file.
        path: PathBuf,
        /// What is wrong with the record.
        error: FileError,
    },
    /// An epoch file ends in an unfinished record.
    RecordUnfinished {
        /// The file.
        path: PathBuf,
        /// How much of the record is there.
        bytes: u64,
        /// Epochs before it.
        records: u64,
    },
    /// An epoch file is damaged. The epochs before that were read.
    EpochsDamaged {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        error: FileError,
        /// Epochs before it.
        records: u64,
    },
}
