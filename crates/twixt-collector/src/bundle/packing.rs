//! Packs a bundle: rows hour by hour, raw epochs one by one, and at the end what is in it.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::PathBuf;

use twixt_history::{
    ExcerptAsked, ExcerptKind, ExcerptPart, ExcerptSummary, History, HistoryReader, Row, SeriesKey,
    moment_text, rows_to_bytes,
};
use twixt_measure::{Sealed, Stream};
use twixt_model::{Delay, Scope, Segment, Span, Timestamp};
use twixt_store::{Found, Log, SectionWriter};

use super::epochs::{ChosenEpochs, End, EpochsAsked, RawEpoch};
use super::manifest::{is_too_long, listed};
use super::{
    BundleCountsDocument, BundleEpochsDocument, BundleError, BundleWriterDocument,
    ConfigurationDocument, ManifestDocument, SegmentNameDocument, kind,
};
use crate::api::{ClockDocument, SegmentDocument};
use crate::history::ClockState;

/// Rows of a section.
const SECTION_ROWS: usize = 2_000;

/// What a bundle is of.
#[derive(Clone, Debug)]
pub struct BundleAsked {
    /// The two points.
    pub segment: Segment,
    /// The time.
    pub span: Span,
}

/// Where estimates come from.
#[derive(Clone, Copy, Debug)]
pub enum EstimateSource<'a> {
    /// A history that is being written.
    Written(&'a History),
    /// One that is only read.
    Read(&'a HistoryReader),
}

/// Where a bundle comes from.
#[derive(Clone, Debug)]
pub struct BundleOrigin {
    /// Who writes it.
    pub writer: BundleWriterDocument,
    /// What time it is.
    pub now: Timestamp,
    /// How the collector is configured, if that is known.
    pub configuration: Option<ConfigurationDocument>,
    /// What paths in messages need not show.
    pub directory: PathBuf,
}

/// Writes a bundle.
///
/// # Errors
/// When the time is too long, nothing is stored of it, or files cannot be read or written.
pub fn pack<W: Write>(
    estimates: EstimateSource<'_>,
    log: &Log,
    asked: &BundleAsked,
    origin: BundleOrigin,
    out: W,
) -> Result<(W, ManifestDocument), BundleError> {
    if is_too_long(asked.span) {
        return Err(BundleError::TooLong);
    }
    let mut packing = Packing { out: SectionWriter::new(out)?, latest: BTreeMap::new() };
    let excerpt = ExcerptAsked { segment: asked.segment.clone(), span: asked.span };
    let take = |part: ExcerptPart| packing.add_rows(part);
    let summary = match estimates {
        EstimateSource::Written(history) => history.excerpt(&excerpt, take)?,
        EstimateSource::Read(reader) => reader.excerpt(&excerpt, take)?,
    };
    let mut chosen = packing.epochs_of(asked, &summary).choose(log)?;
    let counts = packing.add_epochs(log, &mut chosen)?;
    if summary.rows == [0; 3] && counts.iter().all(|count| count.epochs == 0) {
        return Err(BundleError::Empty);
    }
    let clocks = packing.clocks(log, &chosen);
    let manifest = manifest(asked, origin, &summary, chosen, counts, clocks);
    let written = serde_json::to_vec(&manifest);
    let written = written.map_err(|error| BundleError::content(error.to_string()))?;
    packing.out.add(kind::MANIFEST, &written)?;
    Ok((packing.out.finish()?, manifest))
}

/// A bundle that is being written.
struct Packing<W> {
    out: SectionWriter<W>,
    /// The last epoch of each series, and all distances of its clocks.
    latest: BTreeMap<SeriesKey, Latest>,
}

#[derive(Default)]
struct Latest {
    row: Row,
    shifts: BTreeSet<i64>,
}

impl<W: Write> Packing<W> {
    fn add_rows(&mut self, part: ExcerptPart) -> Result<(), BundleError> {
        let ExcerptPart { hour, kind, rows } = part;
        let section = match kind {
            ExcerptKind::Sums => kind::SUMS,
            ExcerptKind::Epochs => kind::EPOCH_ROWS,
        };
        let start = hour.span().start.as_nanos().to_le_bytes();
        // An hour without rows is said to have none.
        let none = rows.is_empty().then_some(&rows[..]);
        for rows in none.into_iter().chain(rows.chunks(SECTION_ROWS)) {
            self.out.add(section, &[&start, rows_to_bytes(rows).as_slice()].concat())?;
        }
        if kind == ExcerptKind::Epochs {
            rows.iter().for_each(|row| self.note(row));
        }
        Ok(())
    }

    fn note(&mut self, row: &Row) {
        if row.is_gap() || row.scope != Scope::All.to_string() {
            return;
        }
        let latest = self.latest.entry(row.series.clone()).or_default();
        if let Some(ahead) = row.realigned_epochs.filter(|ahead| *ahead != 0) {
            latest.shifts.insert(ahead.saturating_mul(row.series.epoch_ns));
        }
        if latest.row.epoch.is_none() || latest.row.start_ns <= row.start_ns {
            latest.row = row.clone();
        }
    }

    fn epochs_of<'a>(&self, asked: &'a BundleAsked, summary: &ExcerptSummary) -> EpochsAsked<'a> {
        let lengths_ns = summary.series.iter().map(|(series, _)| series.epoch_ns);
        let shifts = self.latest.values().flat_map(|latest| latest.shifts.iter().copied());
        EpochsAsked {
            segment: &asked.segment,
            span: asked.span,
            longest: Delay::from_nanos(lengths_ns.max().unwrap_or(0)),
            shifts: shifts.collect(),
        }
    }

    /// Those that cannot be read are problems.
    fn add_epochs(
        &mut self,
        log: &Log,
        chosen: &mut ChosenEpochs,
    ) -> Result<[BundleEpochsDocument; 2], BundleError> {
        let mut counts = [BundleEpochsDocument::default(); 2];
        let mut payloads = log.payloads();
        for (end, found) in &chosen.found {
            let payload = match payloads.read(found) {
                Ok(payload) => payload,
                Err(damage) => {
                    chosen.problems.push(damage.to_string());
                    continue;
                }
            };
            let (section, count) = match end {
                End::Upstream => (kind::UPSTREAM, &mut counts[0]),
                End::Downstream => (kind::DOWNSTREAM, &mut counts[1]),
            };
            let (span, epoch) = (found.span, found.epoch);
            let raw = RawEpoch { stream: &found.stream, span, epoch, payload };
            self.out.add(section, &raw.to_bytes())?;
            count.epochs += 1;
            count.bytes += payload.len() as u64;
        }
        Ok(counts)
    }

    /// How clocks were in the last epoch of each series of which both raw epochs are there.
    fn clocks(&self, log: &Log, chosen: &ChosenEpochs) -> Vec<ClockDocument> {
        let document = |(series, latest): (&SeriesKey, &Latest)| {
            let row = &latest.row;
            let ahead = row.realigned_epochs.unwrap_or(0);
            let upstream = sealed(log, chosen, End::Upstream, series, row.epoch?)?;
            let epoch = row.epoch?.saturating_add(ahead);
            let downstream = sealed(log, chosen, End::Downstream, series, epoch)?;
            let ends = [upstream, downstream]
                .map(|sealed| (sealed.time_source, sealed.clock_bound.map(Delay::as_nanos)));
            let error_ns = row.clock_error_ns;
            let state = ClockState { span: row.span(), error_ns, realigned_epochs: ahead, ends };
            Some(ClockDocument::of(series, &state))
        };
        self.latest.iter().filter_map(document).collect()
    }
}

/// An epoch of a series as a point sealed it.
fn sealed(
    log: &Log,
    chosen: &ChosenEpochs,
    end: End,
    series: &SeriesKey,
    epoch: i64,
) -> Option<Sealed> {
    let is_of = |found: &Found| {
        let stream: Option<Stream> = found.stream.parse().ok();
        stream.is_some_and(|stream| {
            stream.algorithm == series.algorithm
                && stream.domain == series.domain
                && stream.class == series.class
        })
    };
    let of_end = chosen.found.iter().filter(|(of, found)| *of == end && found.epoch.0 == epoch);
    let mut of_series = of_end.map(|(_, found)| found).filter(|found| is_of(found));
    let payload = log.payload(of_series.next()?).ok()?;
    Sealed::from_bytes(&payload).ok()
}

fn manifest(
    asked: &BundleAsked,
    origin: BundleOrigin,
    summary: &ExcerptSummary,
    chosen: ChosenEpochs,
    counts: [BundleEpochsDocument; 2],
    clocks: Vec<ClockDocument>,
) -> ManifestDocument {
    let directory = format!("{}/", origin.directory.display());
    let unreadable = summary.problems.iter().map(ToString::to_string);
    let problems = unreadable.chain(chosen.problems);
    let unique = |text: fn(&SeriesKey) -> &String| -> Vec<String> {
        let texts: BTreeSet<&String> = summary.series.iter().map(|(key, _)| text(key)).collect();
        texts.into_iter().cloned().collect()
    };
    let [epochs, minutes, hours] = summary.rows;
    let [upstream, downstream] = counts;
    ManifestDocument {
        written_by: origin.writer,
        written: moment_text(origin.now),
        written_ns: origin.now.as_nanos(),
        segment: SegmentNameDocument {
            upstream: asked.segment.upstream.0.clone(),
            downstream: asked.segment.downstream.0.clone(),
        },
        range: asked.span.into(),
        classes: unique(|key| &key.class),
        algorithms: unique(|key| &key.algorithm),
        series: summary.series.iter().map(|(key, span)| SegmentDocument::of(key, *span)).collect(),
        estimates: BundleCountsDocument { epochs, minutes, hours },
        upstream,
        downstream,
        clocks,
        configuration: origin.configuration,
        left_out: listed(left_out(summary).into_iter().chain(chosen.left_out).collect()),
        problems: listed(problems.map(|problem| problem.replace(&directory, "")).collect()),
    }
}

fn left_out(summary: &ExcerptSummary) -> Vec<String> {
    let most = twixt_history::EXCERPT_ROWS_MAX;
    let text = |what: &str, from: Option<Timestamp>| {
        let from = moment_text(from?);
        Some(format!("{what} from {from} on: a bundle has {most} rows of them at most"))
    };
    let texts = [
        text("estimates of epochs", summary.epochs_end),
        text("minutes and hours", summary.sums_end),
    ];
    texts.into_iter().flatten().collect()
}
