//! What is in a store.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Serialize;
use twixt_measure::Stream;
use twixt_model::{Span, Timestamp};
use twixt_store::{Depth, Found, Log, Options, Query, Report};

use crate::command::query::DamageDocument;
use crate::exit::{Exit, note};
use crate::output::{self, Format, Table, units};

/// Reads all of it, and so finds all damage.
pub(super) fn run(path: &Path, format: Format) -> anyhow::Result<Exit> {
    let log = Log::open(path, Options::default());
    let mut scan = log.scan(Query::all().to_depth(Depth::Checks))?;
    let mut points: BTreeMap<String, PointContents> = BTreeMap::new();
    for found in scan.by_ref() {
        points.entry(found.point.clone()).or_default().add(&found);
    }
    let report = scan.report();
    if points.is_empty() && report.is_whole() {
        anyhow::bail!("{}: a directory, but not a store: it has no records", path.display());
    }
    let document = StoreDocument::new(path, points, report);
    match format {
        Format::Json => output::json(&document)?,
        _ => {
            output::text(&document.table())?;
            for damage in &report.damages {
                note(damage);
            }
            if report.unfinished_bytes > 0 {
                let bytes = units::bytes(report.unfinished_bytes);
                note(format_args!("{bytes} at the end of a file are an unfinished record"));
            }
        }
    }
    Ok(Exit::Done.or_partial(!report.is_whole()))
}

/// What a point stored.
#[derive(Default)]
struct PointContents {
    days: BTreeMap<String, u64>,
    families: BTreeMap<String, Contents>,
}

#[derive(Default)]
struct Contents {
    classes: BTreeMap<String, u64>,
    records: u64,
    stored_bytes: u64,
    payload_bytes: u64,
    span: Option<Span>,
}

impl PointContents {
    fn add(&mut self, found: &Found) {
        *self.days.entry(found.day.to_string()).or_default() += 1;
        let (family, class) = match found.stream.parse::<Stream>() {
            Ok(stream) => (stream.family(), stream.class),
            Err(()) => (found.stream.clone(), String::new()),
        };
        let contents = self.families.entry(family).or_default();
        *contents.classes.entry(class).or_default() += 1;
        contents.records += 1;
        contents.stored_bytes += found.stored_bytes;
        contents.payload_bytes += found.payload_bytes;
        let span = contents.span.map_or(found.span, |span| span.union(found.span));
        contents.span = Some(span);
    }
}

/// `twixt info -F json` of a store.
#[derive(Serialize)]
struct StoreDocument {
    store: String,
    format: &'static str,
    points: Vec<PointDocument>,
    damaged: Vec<DamageDocument>,
    damaged_bytes: u64,
    unfinished_bytes: u64,
    unindexed_bytes: u64,
}

#[derive(Serialize)]
struct PointDocument {
    point: String,
    days: Vec<String>,
    streams: Vec<StreamDocument>,
}

#[derive(Serialize)]
struct StreamDocument {
    stream: String,
    classes: Vec<String>,
    records: u64,
    stored_bytes: u64,
    payload_bytes: u64,
    start_ns: Option<i64>,
    end_ns: Option<i64>,
}

impl StoreDocument {
    fn new(path: &Path, points: BTreeMap<String, PointContents>, report: &Report) -> Self {
        let stream = |(stream, contents): (String, Contents)| StreamDocument {
            stream,
            classes: contents.classes.into_keys().collect(),
            records: contents.records,
            stored_bytes: contents.stored_bytes,
            payload_bytes: contents.payload_bytes,
            start_ns: contents.span.map(|span| span.start.as_nanos()),
            end_ns: contents.span.map(|span| span.end.as_nanos()),
        };
        let point = |(point, contents): (String, PointContents)| PointDocument {
            point,
            days: contents.days.into_keys().collect(),
            streams: contents.families.into_iter().map(stream).collect(),
        };
        Self {
            store: path.display().to_string(),
            format: "store",
            points: points.into_iter().map(point).collect(),
            damaged: report.damages.iter().map(DamageDocument::from).collect(),
            damaged_bytes: report.damaged_bytes,
            unfinished_bytes: report.unfinished_bytes,
            unindexed_bytes: report.unindexed_bytes,
        }
    }

    fn table(&self) -> String {
        let mut table = Table::new(&[
            "point",
            "stream",
            "records",
            "days",
            "bytes",
            "unpacked",
            "first (UTC)",
            "last (UTC)",
        ]);
        let moment = |nanos: Option<i64>| {
            nanos.map_or_else(String::new, |nanos| units::moment(Timestamp::from_nanos(nanos)))
        };
        for point in &self.points {
            for stream in &point.streams {
                table.row(vec![
                    point.point.clone(),
                    stream.stream.clone(),
                    units::count(stream.records),
                    units::count(point.days.len() as u64),
                    units::bytes(stream.stored_bytes),
                    units::bytes(stream.payload_bytes),
                    moment(stream.start_ns),
                    moment(stream.end_ns),
                ]);
            }
        }
        format!("store      {}\n\n{table}", self.store)
    }
}
