//! What one asks of a log, and what one gets.

use std::collections::HashSet;

use twixt_model::{Epoch, Span, Timestamp};

use crate::day::Day;
use crate::format::checksum;
use crate::report::{Cause, Damage};

/// Which records, and how much of them.
#[derive(Clone, Debug)]
pub struct Query {
    pub(crate) span: Span,
    pub(crate) point: Option<String>,
    streams: Option<Streams>,
    pub(crate) depth: Depth,
}

/// Streams that are asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Streams {
    names: HashSet<String>,
    /// Of the names: what the index knows.
    hashes: HashSet<u64>,
}

/// How much of a record is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Depth {
    /// All but the payload, whose damage stays unnoticed.
    Heads,
    /// The payload is checked, but not handed over.
    Checks,
    /// The payload is handed over.
    #[default]
    Payloads,
}

impl Query {
    /// All records.
    #[must_use]
    pub fn all() -> Self {
        Self::between(Span { start: Timestamp::MIN, end: Timestamp::MAX })
    }

    /// Records whose interval of time overlaps `span`.
    #[must_use]
    pub fn between(span: Span) -> Self {
        Self { span, point: None, streams: None, depth: Depth::Payloads }
    }

    /// Of one point only.
    #[must_use]
    pub fn at_point(self, point: &str) -> Self {
        Self { point: Some(point.to_owned()), ..self }
    }

    /// Of some streams only.
    #[must_use]
    pub fn of_streams<'a>(self, streams: impl IntoIterator<Item = &'a str>) -> Self {
        let names: HashSet<String> = streams.into_iter().map(str::to_owned).collect();
        let hashes = names.iter().map(|name| checksum(name.as_bytes())).collect();
        Self { streams: Some(Streams { names, hashes }), ..self }
    }

    /// How much of each record to read.
    #[must_use]
    pub fn to_depth(self, depth: Depth) -> Self {
        Self { depth, ..self }
    }

    pub(crate) fn overlaps(&self, span: Span) -> bool {
        span.start <= self.span.end && self.span.start <= span.end
    }

    /// Whether a record is asked for, by what heads and index say of it.
    pub(crate) fn wants(&self, span: Span, stream_hash: u64) -> bool {
        let is_hash = |streams: &Streams| streams.hashes.contains(&stream_hash);
        self.overlaps(span) && self.streams.as_ref().is_none_or(is_hash)
    }

    /// Whether a stream is asked for: two names may have one hash.
    pub(crate) fn wants_stream(&self, name: &str) -> bool {
        self.streams.as_ref().is_none_or(|streams| streams.names.contains(name))
    }
}

/// A record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The point.
    pub point: String,
    /// The stream of that point.
    pub stream: String,
    /// First and last time.
    pub span: Span,
    /// Number of the epoch.
    pub epoch: Epoch,
    /// What was stored; empty unless asked for.
    pub payload: Vec<u8>,
    /// Bytes of the payload.
    pub payload_bytes: u64,
    /// Bytes that the record takes in the file.
    pub stored_bytes: u64,
    /// The day of its file.
    pub day: Day,
    /// Which of the day's files.
    pub(crate) part: u32,
    /// Where in the file it is.
    pub(crate) place: u64,
}

impl Found {
    /// The record as damage: it could be read, but what is in it is no good.
    #[must_use]
    pub fn damage(&self, problem: &str) -> Damage {
        Damage {
            point: self.point.clone(),
            day: self.day,
            part: self.part,
            place: self.place,
            bytes: self.stored_bytes,
            cause: Cause::Unreadable(problem.to_owned()),
            span: Some(self.span),
            epoch: Some(self.epoch),
        }
    }
}
