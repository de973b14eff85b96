//! `--bundle`: all that is known of a segment and a time, in one file.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, bail};
use tempfile::NamedTempFile;
use twixt_collector::bundle::{
    BundleAsked, BundleError, BundleOrigin, BundleWriterDocument, EstimateSource, ManifestDocument,
    pack,
};
use twixt_collector::{EPOCHS_FOLDER, ESTIMATES_FOLDER};
use twixt_history::{HistoryReader, RowQuestion, Step};
use twixt_model::{Delay, Segment};
use twixt_store::{Log, Options};

use super::super::Args;
use super::asking::Collector;
use crate::args::Moment;
use crate::bundle::{Directory, manifest_of};
use crate::exit::{Exit, no_answer, note, usage};
use crate::output::units;

/// How long a collector may take to pack a bundle and send it.
const PATIENCE: Duration = Duration::from_secs(600);
const HOUR: Delay = Delay::from_nanos(3_600_000_000_000);

pub(super) fn run(args: &Args, path: &Path) -> anyhow::Result<Exit> {
    let segment = segment(args)?;
    // Beside its place, and in it only when it is whole.
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let beside = NamedTempFile::new_in(folder.unwrap_or(Path::new(".")));
    let mut beside = beside.with_context(|| format!("cannot write {}", path.display()))?;
    let source = &args.estimates.source;
    match (&source.running.collector, &source.directory) {
        (Some(url), _) => {
            let about = RowQuestion {
                segment: Some(segment),
                span: args.span()?,
                ..RowQuestion::all(Step::Epoch)
            };
            let collector = Collector::patient(url, &source.running, PATIENCE)?;
            collector.bundle(&about, beside.as_file_mut())?;
        }
        (None, Some(directory)) => {
            write(args, segment, &Directory::open(directory)?, beside.as_file_mut())?;
        }
        (None, None) => return Err(usage("nothing to query: use --collector or --directory")),
    }
    beside.as_file().sync_all().with_context(|| format!("cannot write {}", path.display()))?;
    let manifest = manifest_of(beside.path())?;
    beside.persist(path).with_context(|| format!("cannot write {}", path.display()))?;
    Ok(conclude(path, &manifest))
}

/// The segment; everything else that narrows a query is not for bundles.
fn segment(args: &Args) -> anyhow::Result<Segment> {
    let others = args.estimates.given().find(|name| !["segment", "bundle"].contains(name));
    let others = others.or(args.by.map(|_| "by")).or(args.algorithm.as_ref().map(|_| "algorithm"));
    if let Some(name) = others {
        return Err(usage(format!(
            "--{name} cannot be combined with --bundle, which has all of a segment"
        )));
    }
    let segment = args.estimates.segment.clone();
    segment.ok_or_else(|| usage("--bundle needs --segment"))
}

/// From a collector's directory, or from another bundle.
fn write(args: &Args, segment: Segment, from: &Directory, out: &mut File) -> anyhow::Result<()> {
    let [epochs, estimates] = [EPOCHS_FOLDER, ESTIMATES_FOLDER].map(|name| from.path().join(name));
    if !estimates.is_dir() {
        let shown = from.path().display();
        return Err(no_answer(format!("{shown} is not the directory of a collector")));
    }
    let reader = HistoryReader::open(&estimates);
    let log = Log::open(epochs, Options::default());
    let origin = BundleOrigin {
        writer: BundleWriterDocument::here(None),
        now: Moment::Ago(0).resolve(),
        configuration: match from {
            Directory::There(_) => None,
            Directory::Bundle(bundle) => bundle.manifest.configuration.clone(),
        },
        directory: from.path().to_owned(),
    };
    let asked = BundleAsked { segment, span: super::recent(args, HOUR, from.now())? };
    let packed = pack(EstimateSource::Read(&reader), &log, &asked, origin, BufWriter::new(out));
    match packed {
        Ok((mut out, _)) => Ok(out.flush()?),
        Err(error @ BundleError::Empty) => Err(no_answer(error.to_string())),
        Err(error @ BundleError::TooLong) => Err(usage(error.to_string())),
        Err(error) => bail!(error),
    }
}

fn conclude(path: &Path, manifest: &ManifestDocument) -> Exit {
    let raw = manifest.upstream.epochs.saturating_add(manifest.downstream.epochs);
    note(format_args!(
        "bundle: wrote {}: {} and {}",
        path.display(),
        units::counted(manifest.estimates.epochs, "row of epochs", "rows of epochs"),
        units::counted(raw, "raw epoch", "raw epochs"),
    ));
    manifest.left_out.iter().for_each(|text| note(format_args!("left out: {text}")));
    manifest.problems.iter().for_each(note);
    let is_whole = manifest.left_out.is_empty() && manifest.problems.is_empty();
    Exit::Done.or_partial(!is_whole)
}
