//! Goes through a part of an hour, a record at a time: an hour of many series need not fit into
//! memory.

use std::collections::VecDeque;
use std::path::PathBuf;

use twixt_model::{Segment, Span};
use twixt_store::{Depth, Found, Query, Scan, StoreError};

use super::{HourPart, OpenFolder, SHARDS, shard_of};
use crate::error::{HistoryError, Unreadable};
use crate::record;
use crate::row::Row;
use crate::step::Hour;
use crate::table::Table;

/// Which rows of an open part are asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OpenWanted<'a> {
    /// All when `None`.
    pub(crate) segment: Option<&'a Segment>,
    /// One of [`SHARDS`]; all when `None` and no segment is named.
    pub(crate) shard: Option<u64>,
    /// All when `None`.
    pub(crate) streams: Option<&'a [String]>,
    /// Rows that have a moment in common with it.
    pub(crate) span: Span,
}

impl OpenWanted<'_> {
    /// All of an hour.
    pub(crate) const fn all(hour: Hour) -> Self {
        Self { segment: None, shard: None, streams: None, span: hour.span() }
    }

    fn shards(&self) -> Vec<String> {
        let of_segment =
            self.segment.map(|segment| shard_of(&segment.upstream.0, &segment.downstream.0));
        match self.shard.or(of_segment) {
            Some(shard) => vec![shard.to_string()],
            None => (0..SHARDS).map(|shard| shard.to_string()).collect(),
        }
    }

    fn query(&self, shard: &str, depth: Depth) -> Query {
        let query = Query::between(self.span).at_point(shard).to_depth(depth);
        match self.streams {
            Some(streams) => query.of_streams(streams.iter().map(String::as_str)),
            None => query,
        }
    }
}

/// Records of a part, in the order in which they came.
#[derive(Debug)]
pub(crate) struct PartScan<'a> {
    path: PathBuf,
    table: Table,
    segment: Option<&'a Segment>,
    shards: VecDeque<Scan>,
    problems: Vec<Unreadable>,
    /// What the system could not read may be sound: the first of it.
    unreadable: Option<StoreError>,
}

impl OpenFolder {
    /// Begins to go through a part.
    pub(crate) fn scan<'a>(
        &self,
        part: HourPart,
        wanted: &OpenWanted<'a>,
        depth: Depth,
    ) -> Result<PartScan<'a>, HistoryError> {
        let log = self.log(part);
        let shards = wanted.shards().into_iter().map(|shard| log.scan(wanted.query(&shard, depth)));
        Ok(PartScan {
            path: self.part_path(part),
            table: self.table,
            segment: wanted.segment,
            shards: shards.collect::<Result<_, _>>()?,
            problems: Vec::new(),
            unreadable: None,
        })
    }
}

impl PartScan<'_> {
    /// The rows of the next record that can be read.
    pub(crate) fn next_rows(&mut self) -> Option<Vec<Row>> {
        loop {
            let found = self.next()?;
            match record::decode(self.table, &found.payload) {
                Ok(mut rows) => {
                    rows.retain(|row| self.segment.is_none_or(|of| row.series.is_of(of)));
                    return Some(rows);
                }
                Err(error) => self.note(error.to_string()),
            }
        }
    }

    /// Notes what cannot be used.
    fn note(&mut self, text: String) {
        let problem = Unreadable { path: self.path.clone(), text, is_disk_error: false };
        self.problems.push(problem);
    }

    /// What could not be used of what was gone through.
    pub(crate) fn problems(self) -> Vec<Unreadable> {
        self.problems
    }

    /// The same, for those who must not go on without what the system could not read.
    pub(crate) fn finish(self) -> Result<Vec<Unreadable>, HistoryError> {
        match self.unreadable {
            Some(error) => Err(error.into()),
            None => Ok(self.problems),
        }
    }
}

impl Iterator for PartScan<'_> {
    type Item = Found;

    fn next(&mut self) -> Option<Found> {
        loop {
            if let Some(found) = self.shards.front_mut()?.next() {
                return Some(found);
            }
            let scan = self.shards.pop_front()?;
            // What is unfinished is being written, or was never acknowledged.
            let damages = scan.report().damages.clone();
            damages.iter().for_each(|damage| self.note(damage.to_string()));
            self.unreadable = self.unreadable.take().or(scan.finish().err());
        }
    }
}
