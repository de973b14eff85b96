//! What a view is made of: answers as they come.

use crate::course::Courses;
use crate::known::{CellName, TopEstimate};

/// An answer, or that there was none.
#[derive(Clone, Debug, PartialEq)]
pub enum News {
    /// All segments.
    Segments {
        /// What the time comes to, of every cell and algorithm.
        totals: Vec<TopEstimate>,
        /// Their means over time.
        courses: Courses,
        /// The time that was asked for.
        span_ns: (i64, i64),
        /// What is missing, if something is.
        remark: Option<String>,
    },
    /// How delays of one cell are distributed over time.
    Heat {
        /// Which one.
        cell: CellName,
        /// The picture, or why there is none.
        answer: Result<HeatMap, String>,
    },
    /// The flows of one cell.
    Flows {
        /// Which one.
        cell: CellName,
        /// The flows.
        flows: Vec<TopEstimate>,
        /// Why flows are missing, if some are.
        remark: Option<String>,
    },
    /// What one point saw.
    Point(PointSeen),
    /// No answer.
    Failed(String),
}

/// Packets by delay and time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HeatMap {
    /// The time that was asked for.
    pub span_ns: (i64, i64),
    /// Bucket n holds delays from 2^(n 2^-scale) ns up to the next bound.
    pub scale: u8,
    /// In order of time.
    pub columns: Vec<HeatColumn>,
}

/// The delays of an interval of time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HeatColumn {
    /// When it begins.
    pub start_ns: i64,
    /// When it ends.
    pub end_ns: i64,
    /// Number of the first bucket.
    pub first: i32,
    /// Packets in that bucket and the following ones.
    pub packets: Vec<f64>,
}

/// What one point saw up to now.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PointSeen {
    /// Packets that were measured.
    pub packets: u64,
    /// Frames that were not.
    pub skipped: u64,
    /// Frames that the kernel lost, if known.
    pub dropped: Option<u64>,
    /// Round trips by kind.
    pub kinds: Vec<KindLine>,
    /// The largest flows.
    pub flows: Vec<PointLine>,
    /// Why no more comes.
    pub ended: Option<String>,
}

/// Round trips of one kind.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct KindLine {
    /// The kind, and the part of it.
    pub name: String,
    /// Round trips that were measured.
    pub measured: u64,
    /// Mean, half the width of its interval, if known, and the 50th, 95th and 99th percentile; `None`
    /// where none was measured.
    pub times_ns: Option<(f64, Option<f64>, [Option<i64>; 3])>,
}

/// A large flow.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PointLine {
    /// The flow.
    pub name: String,
    /// Packets, as the algorithm estimates them.
    pub packets: u64,
    /// Packets that it certainly had.
    pub packets_at_least: u64,
    /// Bytes.
    pub bytes: u64,
}
