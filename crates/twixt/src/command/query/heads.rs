//! Records of one point that a query may need, found but not read.

use twixt_model::Span;
use twixt_store::{Damage, Depth, Found, Log, Query};

use super::Touched;
use crate::exit::usage;

/// Records of a point that one query may need. Their heads are held in memory.
const RECORDS_MAX: usize = 1 << 20;

/// What is stored of an interval of time.
pub(super) struct Heads {
    pub(super) records: Vec<Found>,
    pub(super) damages: Vec<Damage>,
    pub(super) unfinished_bytes: u64,
    pub(super) touched: Touched,
}

impl Heads {
    /// Finds them.
    pub(super) fn find(log: &Log, point: &str, span: Span) -> anyhow::Result<Self> {
        let query = Query::between(span).at_point(point).to_depth(Depth::Heads);
        let mut scan = log.scan(query)?;
        let records: Vec<Found> = scan.by_ref().take(RECORDS_MAX).collect();
        if records.len() >= RECORDS_MAX {
            return Err(usage("too many epochs for one query: narrow it with --start and --end"));
        }
        let report = scan.report();
        let mut touched = Touched::default();
        touched.add_heads(report);
        let (damages, unfinished_bytes) = (report.damages.clone(), report.unfinished_bytes);
        Ok(Self { records, damages, unfinished_bytes, touched })
    }
}
