//! What is in an epoch file.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Serialize;
use twixt_measure::Sealed;
use twixt_model::Timestamp;
use twixt_offline::read_epochs;

use crate::exit::Exit;
use crate::output::{self, Format, Table, units};
use crate::remarks::Terminal;

pub(super) fn run(path: &Path, format: Format) -> anyhow::Result<Exit> {
    let mut epochs = Vec::new();
    let partial = read_epochs(path, &Terminal, |sealed| epochs.push(EpochDocument::from(&sealed)))?;
    let document = EpochsDocument { file: path.display().to_string(), format: "epochs", epochs };
    match format {
        Format::Json => output::json(&document)?,
        _ => output::text(&document.report())?,
    }
    Ok(Exit::Done.or_partial(partial))
}

/// `twixt info -F json` of an epoch file.
#[derive(Serialize)]
struct EpochsDocument {
    file: String,
    format: &'static str,
    epochs: Vec<EpochDocument>,
}

#[derive(Serialize)]
struct EpochDocument {
    domain: String,
    point: String,
    class: String,
    run: u64,
    epoch: i64,
    epoch_length_ns: Option<i64>,
    algorithm: &'static str,
    config: toml::Table,
    synopsis_bytes: u64,
    digest: String,
    time_source: &'static str,
    clock_bound_ns: Option<i64>,
    start_ns: Option<i64>,
    end_ns: Option<i64>,
    packets: u64,
    bytes: u64,
    skipped: BTreeMap<String, u64>,
    dropped: u64,
    late: u64,
    missing_max: Option<u64>,
    stash_overflow: u64,
}

impl From<&Sealed> for EpochDocument {
    fn from(sealed: &Sealed) -> Self {
        Self {
            domain: sealed.domain.clone(),
            point: sealed.point.to_string(),
            class: sealed.class.clone(),
            run: sealed.run,
            epoch: sealed.epoch.0,
            epoch_length_ns: sealed.rule.length_ns(),
            algorithm: sealed.synopsis.name(),
            config: sealed.synopsis.config(),
            synopsis_bytes: sealed.synopsis.state_bytes(),
            digest: sealed.digest.to_string(),
            time_source: sealed.time_source.name(),
            clock_bound_ns: sealed.clock_bound.map(twixt_model::Delay::as_nanos),
            start_ns: sealed.seen.map(|seen| seen.start.as_nanos()),
            end_ns: sealed.seen.map(|seen| seen.end.as_nanos()),
            packets: sealed.packets,
            bytes: sealed.synopsis.totals().bytes,
            skipped: sealed
                .tally
                .skipped()
                .map(|(reason, count)| (reason.to_owned(), count))
                .collect(),
            dropped: sealed.tally.dropped,
            late: sealed.tally.late,
            missing_max: sealed.tally.missing_max,
            stash_overflow: sealed.stash_overflow(),
        }
    }
}

impl EpochsDocument {
    fn report(&self) -> String {
        let Some(first) = self.epochs.first() else {
            return format!("{}: an epoch file without epochs\n", self.file);
        };
        let length = match first.epoch_length_ns {
            Some(length) => units::duration(length as f64),
            None => "whole".to_owned(),
        };
        let settings = first.config.to_string().trim_end().replace('\n', ", ");
        let mut report = format!(
            "file       {}\npoint      {}\nepochs     {}, length {length}\nalgorithm  {} ({settings})\ndigest     {}\n\n",
            self.file,
            first.point,
            self.epochs.len(),
            first.algorithm,
            first.digest
        );
        let mut table = Table::new(&[
            "epoch",
            "class",
            "start (UTC)",
            "packets",
            "bytes",
            "skipped",
            "dropped",
            "state",
        ]);
        for epoch in &self.epochs {
            let start = epoch.start_ns.map(|start| units::moment(Timestamp::from_nanos(start)));
            table.row(vec![
                epoch.epoch.to_string(),
                epoch.class.clone(),
                start.unwrap_or_else(|| "–".to_owned()),
                units::count(epoch.packets),
                units::bytes(epoch.bytes),
                units::count(epoch.skipped.values().sum()),
                units::count(epoch.dropped),
                units::bytes(epoch.synopsis_bytes),
            ]);
        }
        report += &table.to_string();
        report
    }
}
