//! What is in a bundle: for people, for programs, and for those who open it.

use serde::{Deserialize, Serialize};
use twixt_history::{SeriesKey, moment_text};
use twixt_model::{PointId, Segment, Span, Timestamp, check_name, is_hidden};
use utoipa::ToSchema;

use super::configuration::ConfigurationDocument;
use super::{BundleError, LISTED_MAX, SERIES_MAX, SPAN_MAX};
use crate::api::{ClockDocument, MomentRange, SegmentDocument};

/// Longest text that a manifest lists.
const TEXT_MAX: usize = 4_096;

/// What is in an incident bundle.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ManifestDocument {
    /// Who wrote it.
    pub written_by: BundleWriterDocument,
    /// When it was written, RFC 3339.
    pub written: String,
    /// When it was written, nanoseconds since 1970.
    pub written_ns: i64,
    /// The segment.
    pub segment: SegmentNameDocument,
    /// The time that was asked for. Rows and epochs that overlap with it are in the bundle.
    pub range: MomentRange,
    /// Classes of traffic; one without a name is empty.
    pub classes: Vec<String>,
    /// Algorithms of the estimates.
    pub algorithms: Vec<String>,
    /// Segment, class and algorithm of the estimates, and the part of the time for which something
    /// is stored.
    pub series: Vec<SegmentDocument>,
    /// Rows of estimates.
    pub estimates: BundleCountsDocument,
    /// Raw epochs of the upstream point.
    pub upstream: BundleEpochsDocument,
    /// Raw epochs of the downstream point.
    pub downstream: BundleEpochsDocument,
    /// The clocks in the last epoch of each series.
    pub clocks: Vec<ClockDocument>,
    /// How the collector was configured; null if the bundle was made from its directory.
    pub configuration: Option<ConfigurationDocument>,
    /// What was left out because there is too much of it.
    pub left_out: Vec<String>,
    /// What could not be read.
    pub problems: Vec<String>,
}

/// Who wrote a bundle.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BundleWriterDocument {
    /// Release of twixt.
    pub version: String,
    /// Name of the machine; null if unknown.
    pub host: Option<String>,
    /// Name of the reader that asked a collector for it; null if the bundle was made from a directory.
    pub reader: Option<String>,
}

/// The names of the points of a segment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SegmentNameDocument {
    /// The point that packets pass first.
    pub upstream: String,
    /// The point that packets pass second.
    pub downstream: String,
}

/// Rows of estimates by their length.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BundleCountsDocument {
    /// Rows of epochs, of all scopes.
    pub epochs: u64,
    /// Rows of minutes.
    pub minutes: u64,
    /// Rows of hours.
    pub hours: u64,
}

/// Raw epochs of a point.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BundleEpochsDocument {
    /// How many.
    pub epochs: u64,
    /// Their bytes, unpacked.
    pub bytes: u64,
}

impl BundleWriterDocument {
    /// This program on this machine.
    #[must_use]
    pub fn here(reader: Option<String>) -> Self {
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").ok();
        let host = host.map(|name| name.trim().to_owned()).filter(|name| check_name(name).is_ok());
        Self { version: env!("CARGO_PKG_VERSION").to_owned(), host, reader }
    }
}

impl ManifestDocument {
    /// The segment that it is of.
    #[must_use]
    pub fn segment(&self) -> Segment {
        let point = |name: &String| PointId(name.clone());
        Segment {
            upstream: point(&self.segment.upstream),
            downstream: point(&self.segment.downstream),
        }
    }

    /// The time that it is of.
    #[must_use]
    pub const fn span(&self) -> Span {
        self.range.span()
    }

    /// Its series, and when something of each is stored.
    pub(super) fn series_spans(&self) -> Vec<(SeriesKey, Span)> {
        let series = self.series.iter();
        series.map(|series| (series_key(series), series.stored.span())).collect()
    }

    /// Reads one that may be hostile.
    pub(super) fn read(bytes: &[u8]) -> Result<Self, BundleError> {
        let mut manifest: Self = serde_json::from_slice(bytes)
            .map_err(|error| BundleError::Content(format!("its manifest: {error}")))?;
        match manifest.problem() {
            Some(problem) => Err(BundleError::content(problem)),
            None => {
                manifest.say_times_again();
                Ok(manifest)
            }
        }
    }

    /// Texts beside numbers are those of the numbers.
    fn say_times_again(&mut self) {
        self.written = moment_text(Timestamp::from_nanos(self.written_ns));
        let clocks = self.clocks.iter_mut().map(|clock| &mut clock.range);
        let series = self.series.iter_mut().map(|series| &mut series.stored);
        for range in clocks.chain(series).chain([&mut self.range]) {
            *range = range.span().into();
        }
    }

    /// What is wrong with it, if something is.
    fn problem(&self) -> Option<&'static str> {
        let span = self.span();
        let is_ordered = |range: &MomentRange| range.start_ns <= range.end_ns;
        let of_segment = |series: &SegmentDocument| {
            series.upstream == self.segment.upstream && series.downstream == self.segment.downstream
        };
        let within = |series: &SegmentDocument| {
            let stored = series.stored.span();
            is_ordered(&series.stored) && span.start <= stored.start && stored.end <= span.end
        };
        let counts =
            [self.series.len(), self.clocks.len(), self.left_out.len(), self.problems.len()];
        match () {
            () if !is_ordered(&self.range) => Some("it ends before it starts"),
            () if is_too_long(span) => Some("its time is too long"),
            () if counts.iter().any(|count| *count > SERIES_MAX) => Some("it lists too much"),
            () if !self.series.iter().all(of_segment) => Some("it has series of other segments"),
            () if !self.series.iter().all(within) => Some("its series lie outside its time"),
            () if self.series.iter().any(|series| series.epoch_ns < 0) => {
                Some("an epoch has no length")
            }
            () if !self.clocks.iter().all(|clock| is_ordered(&clock.range)) => {
                Some("the state of a clock ends before it starts")
            }
            () if !self.has_good_texts() => Some("it has texts that cannot be shown"),
            () => None,
        }
    }

    /// Whether all texts can be shown on a terminal.
    fn has_good_texts(&self) -> bool {
        let SegmentNameDocument { upstream, downstream } = &self.segment;
        let BundleWriterDocument { version, host, reader } = &self.written_by;
        let names = [upstream, downstream].into_iter().all(|name| check_name(name).is_ok());
        let series = self.series.iter().flat_map(|of| [&of.domain, &of.class, &of.algorithm]);
        let clocks = self.clocks.iter().flat_map(|of| {
            let ends = [&of.upstream, &of.downstream];
            let ends = ends.into_iter().flat_map(|end| [&end.point, &end.time_source]);
            [&of.domain, &of.class, &of.algorithm].into_iter().chain(ends)
        });
        let mut others = series
            .chain(clocks)
            .chain(&self.left_out)
            .chain(&self.problems)
            .chain(&self.classes)
            .chain(&self.algorithms)
            .chain(host)
            .chain(reader)
            .chain([version]);
        names && others.all(|text| text.len() <= TEXT_MAX && !text.chars().any(is_hidden))
    }
}

/// Whether a bundle may not cover so much time.
pub(super) fn is_too_long(span: Span) -> bool {
    let length_ns = i128::from(span.end.as_nanos()) - i128::from(span.start.as_nanos());
    length_ns > SPAN_MAX.as_nanos() as i128
}

/// The first of many texts, as they can be shown, and how many more there are.
pub(super) fn listed(texts: Vec<String>) -> Vec<String> {
    let more = texts.len().saturating_sub(LISTED_MAX);
    let shown = texts.into_iter().take(LISTED_MAX).map(|text| {
        text.chars().filter(|character| !is_hidden(*character)).take(TEXT_MAX / 4).collect()
    });
    let mut listed: Vec<String> = shown.collect();
    listed.extend((more > 0).then(|| format!("and {more} more")));
    listed
}

fn series_key(document: &SegmentDocument) -> SeriesKey {
    SeriesKey {
        upstream: document.upstream.clone(),
        downstream: document.downstream.clone(),
        class: document.class.clone(),
        algorithm: document.algorithm.clone(),
        domain: document.domain.clone(),
        epoch_ns: document.epoch_ns,
    }
}
