//! Estimates over time: what a collector remembers, and what it answers.
//!
//! A *row* holds what is known of one segment, scope and interval of time. Rows of the hour that is
//! not over lie in a log; when it is over they are *sealed*: written as Parquet, once, with their
//! roll-ups to minutes and hours. Whole files are deleted when they are old.
//!
//! | module | the question it answers |
//! |---|---|
//! | `row`, `column`, `table` | What is known, and what is it called? |
//! | `point_sums` | What is known of one point alone? |
//! | `rollup` | How are rows summed up? |
//! | `file` | How does an hour lie on disk? |
//! | `open` | What of hours that are not sealed? |
//! | `history` | What was there, between then and then? |
//!
//! It knows no algorithm, no network and no clock: the time is handed over.

mod catalogue;
mod column;
mod error;
mod file;
mod folders;
pub mod histogram;
mod history;
mod holes;
mod moment;
mod open;
mod point_sums;
mod question;
mod reader;
mod rebuild;
mod record;
mod retention;
mod rollup;
mod row;
mod seal;
mod step;
mod table;
#[cfg(test)]
mod testing;

pub use catalogue::Catalogue;
pub use column::{Column, Kind};
pub use error::{HistoryError, Unreadable};
pub use file::{schema, to_parquet};
pub use history::{Counts, History, HistoryConfig, UpkeepDone};
pub use moment::{ParseMomentError, moment_text, parse_moment};
pub use point_sums::{FlowRange, HeavySums, PointSums, ReorderSums, RoundTripSums};
pub use question::{Cursor, ParseCursorError, ROWS_MAX, RowAnswer, RowQuestion};
pub use reader::{
    EXCERPT_ROWS_MAX, ExcerptAsked, ExcerptKind, ExcerptPart, ExcerptSummary, HistoryReader,
};
pub use rebuild::{RebuildError, RebuiltFile, rebuild_catalogue};
pub use record::{RecordError, rows_from_bytes, rows_to_bytes};
pub use retention::{HistoryRetention, RemovedFiles};
pub use rollup::{RollUps, SCOPES_MAX, SeriesTotals, rolled_up, totals};
pub use row::{
    DelayPart, DelaySteps, PointMisses, QUANTILE_SHARES, Quantile, Row, SeriesKey, scope_kind,
};
pub use step::{HOUR_NS, Hour, MINUTE_NS, ParseStepError, Step};
pub use table::Table;
