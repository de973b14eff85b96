//! What is in an incident bundle.

use std::path::Path;

use serde::Serialize;
use twixt_collector::bundle::{BundleEpochsDocument, ManifestDocument};
use twixt_model::Timestamp;

use crate::bundle::manifest_of;
use crate::exit::Exit;
use crate::output::{self, Format, UNKNOWN, units};

/// Reads all of it, and so finds all damage.
pub(super) fn run(path: &Path, format: Format) -> anyhow::Result<Exit> {
    let manifest = manifest_of(path)?;
    match format {
        Format::Json => {
            let file = path.display().to_string();
            output::json(&BundleDocument { file, format: "bundle", manifest: &manifest })?;
        }
        _ => output::text(&report(path, &manifest))?,
    }
    Ok(Exit::Done)
}

/// `twixt info -F json` of an incident bundle.
#[derive(Serialize)]
struct BundleDocument<'a> {
    file: String,
    format: &'static str,
    #[serde(flatten)]
    manifest: &'a ManifestDocument,
}

fn report(path: &Path, manifest: &ManifestDocument) -> String {
    let segment = &manifest.segment;
    let moment = |nanos: i64| units::moment(Timestamp::from_nanos(nanos));
    let rows = manifest.estimates;
    let rows = [(rows.epochs, "epochs"), (rows.minutes, "minutes"), (rows.hours, "hours")];
    let rows = rows.map(|(count, of)| format!("{} {of}", units::count(count)));
    let raw = |point: &str, of: BundleEpochsDocument| {
        let epochs = units::counted(of.epochs, "raw epoch", "raw epochs");
        format!("{epochs} of {point} ({})", units::bytes(of.bytes))
    };
    let lines = [
        ("bundle", path.display().to_string()),
        ("segment", format!("{} > {}", segment.upstream, segment.downstream)),
        (
            "time",
            format!("{} to {} UTC", moment(manifest.range.start_ns), moment(manifest.range.end_ns)),
        ),
        ("written", written(manifest)),
        ("classes", named(&manifest.classes)),
        ("algorithms", named(&manifest.algorithms)),
        ("estimates", format!("rows of {}", rows.join(", "))),
        ("epochs", raw(&segment.upstream, manifest.upstream)),
        ("", raw(&segment.downstream, manifest.downstream)),
    ];
    let clocks = manifest.clocks.iter().map(|clock| ("clocks", clock_line(clock)));
    let left_out = manifest.left_out.iter().map(|text| ("left out", text.clone()));
    let problems = manifest.problems.iter().map(|text| ("unreadable", text.clone()));
    let lines = lines.into_iter().chain(clocks).chain(left_out).chain(problems);
    lines.map(|(name, text)| format!("{name:<11}{text}\n")).collect()
}

fn written(manifest: &ManifestDocument) -> String {
    let writer = &manifest.written_by;
    let host = writer.host.as_ref().map_or(String::new(), |host| format!(" on {host}"));
    let reader = match &writer.reader {
        Some(reader) => format!(", for {reader}"),
        None => ", from a collector's directory".to_owned(),
    };
    let time = units::moment(Timestamp::from_nanos(manifest.written_ns));
    format!("{time} UTC by twixt {}{host}{reader}", writer.version)
}

/// Names, of which one may be empty.
fn named(names: &[String]) -> String {
    let names = names.iter().map(|name| if name.is_empty() { "all traffic" } else { name });
    let names: Vec<&str> = names.collect();
    if names.is_empty() { UNKNOWN.to_owned() } else { names.join(", ") }
}

fn clock_line(clock: &twixt_collector::api::ClockDocument) -> String {
    let bound = |bound_ns: Option<i64>| {
        bound_ns.map_or_else(|| "unknown".to_owned(), |bound| units::duration(bound as f64))
    };
    let class = if clock.class.is_empty() { "all traffic" } else { &clock.class };
    format!(
        "{class}, {}: difference at most {} ({} {}, {} {})",
        clock.algorithm,
        bound(clock.error_ns),
        clock.upstream.point,
        clock.upstream.time_source,
        clock.downstream.point,
        clock.downstream.time_source,
    )
}
