//! `twixt delay --rtp`: RTP streams between two captures, and how calls sound.

use std::collections::BTreeMap;

use serde::Serialize;
use twixt_model::{Codec, Crossing, Crossings, Delay, Estimate, FlowKey, Playout, Scope};
use twixt_offline::{Files, Measured, PairMeasured, Plan, rtp_streams};
use twixt_wire::RtpStream;

use super::Args;
use crate::output::{self, ScopeColumns, SegmentDocument, Table, TableFormat, UNKNOWN, units};
use crate::remarks::Terminal;

/// A stream, in all machine formats.
#[derive(Serialize)]
struct StreamRow {
    #[serde(flatten)]
    segment: Option<SegmentDocument>,
    scope: String,
    /// Hexadecimal, as tools show it.
    ssrc: String,
    payload_type: u8,
    /// By which impairments the score is computed; `null` without a score.
    codec: Option<&'static str>,
    /// Whether the payload type does not say which codec it is.
    codec_assumed: bool,
    packets: u64,
    lost: Option<u64>,
    mean_ns: Option<i64>,
    jitter_ns: Option<i64>,
    /// Fixed delay on the segment with which the stream sounds best, waiting in the jitter buffer included.
    playout_ns: Option<i64>,
    /// Packets that come later than that.
    late: Option<u64>,
    r_factor: Option<f64>,
    /// What it may be by what is known of the clocks.
    r_factor_low: Option<f64>,
    r_factor_high: Option<f64>,
    mos: Option<f64>,
    reason: Option<String>,
    #[serde(flatten)]
    columns: ScopeColumns,
}

/// The streams that go downstream, worst first.
fn rows(plan: &Plan, files: Files<'_>, measured: &Measured) -> anyhow::Result<Vec<StreamRow>> {
    let concluded = &measured.concluded[0];
    let by_flow: BTreeMap<FlowKey, &Estimate> = concluded
        .estimates
        .iter()
        .filter_map(|estimate| match estimate.scope {
            Scope::Flow(key) => Some((key, estimate)),
            _ => None,
        })
        .collect();
    let streams = rtp_streams(plan, files.upstream, &Terminal)?;
    let measured_streams =
        streams.iter().filter_map(|stream| Some((stream, *by_flow.get(&stream.key)?)));
    let mut rows: Vec<StreamRow> =
        measured_streams.map(|(stream, estimate)| row(stream, estimate, measured)).collect();
    // Those without a score last.
    rows.sort_by(|one, other| {
        let key = |row: &StreamRow| row.r_factor.unwrap_or(f64::INFINITY);
        key(one).total_cmp(&key(other))
    });
    Ok(rows)
}

/// Prints the streams of all segments. Returns how many there are.
pub(super) fn print(args: &Args, plan: &Plan, measured: &PairMeasured) -> anyhow::Result<usize> {
    let mut documents = Vec::new();
    for segment in &measured.segments {
        let files = segment.files(args.pair.files());
        let streams = rows(plan, files, segment)?;
        documents.push(Document { segment: files.into(), streams });
    }
    let found = documents.iter().map(|document| document.streams.len()).sum();
    match (args.format, args.format.rows()) {
        (_, Some(format)) => output::rows(format, documents.into_iter().flat_map(Document::named))?,
        (TableFormat::Json, _) => output::json(&Streams { segments: documents })?,
        _ if found == 0 => {}
        _ => {
            let report = |document: Document| {
                let SegmentDocument { upstream, downstream } = &document.segment;
                let streams = report(&document.streams, args.rows_shown);
                format!("{upstream} → {downstream}\n\n{streams}")
            };
            output::text(&documents.into_iter().map(report).collect::<Vec<_>>().join("\n"))?;
        }
    }
    Ok(found)
}

/// `twixt delay --rtp -F json`.
#[derive(Serialize)]
struct Streams {
    segments: Vec<Document>,
}

/// The streams along a segment.
#[derive(Serialize)]
struct Document {
    segment: SegmentDocument,
    streams: Vec<StreamRow>,
}

impl Document {
    /// Rows that say which segment they are of.
    fn named(self) -> impl Iterator<Item = StreamRow> {
        let Self { segment, streams } = self;
        streams.into_iter().map(move |row| StreamRow { segment: Some(segment.clone()), ..row })
    }
}

/// The table of streams, and why some have no score.
fn report(rows: &[StreamRow], most: usize) -> String {
    let headings = [
        "RTP stream",
        "SSRC",
        "type",
        "packets",
        "lost",
        "mean",
        "jitter",
        "playout",
        "late",
        "R",
        "MOS",
    ];
    let mut table =
        Table::new(&headings).expending(&["jitter", "late", "mean", "playout", "packets", "type"]);
    let duration = |ns: Option<i64>| ns.map_or(UNKNOWN.to_owned(), |ns| units::duration(ns as f64));
    let number = |value: Option<f64>, decimals: usize| {
        value.map_or(UNKNOWN.to_owned(), |value| format!("{value:.decimals$}"))
    };
    for row in rows.iter().take(most) {
        table.row(vec![
            row.scope.clone(),
            row.ssrc.clone(),
            format!(
                "{}{}",
                row.payload_type,
                row.codec.map_or(String::new(), |name| format!(" {name}"))
            ),
            units::count(row.packets),
            row.lost.map_or(UNKNOWN.to_owned(), |lost| lost_share(lost, row.packets)),
            duration(row.mean_ns),
            duration(row.jitter_ns),
            duration(row.playout_ns),
            row.late.map_or(UNKNOWN.to_owned(), units::count),
            row.range(),
            number(row.mos, 2),
        ]);
    }
    let more = rows.len().saturating_sub(most);
    let more = (more > 0).then(|| {
        format!("… and {} more; --rows-shown shows more, -F csv all", units::count(more as u64))
    });
    let mut reasons: BTreeMap<&str, Vec<&StreamRow>> = BTreeMap::new();
    for row in rows.iter().take(most) {
        row.reason.iter().for_each(|reason| reasons.entry(reason).or_default().push(row));
    }
    let reasons = reasons.into_iter().map(|(reason, rows)| match rows.as_slice() {
        [row] => format!("{UNKNOWN} {} {}: {reason}", row.scope, row.ssrc),
        rows => format!("{UNKNOWN} {} streams: {reason}", units::count(rows.len() as u64)),
    });
    let lines: Vec<String> = more.into_iter().chain(reasons).collect();
    format!("{table}{}{}", lines.join("\n"), if lines.is_empty() { "" } else { "\n" })
}

impl StreamRow {
    /// The rating, with what it may be if that differs by a whole number.
    fn range(&self) -> String {
        let Some(rating) = self.r_factor else { return UNKNOWN.to_owned() };
        match (self.r_factor_low, self.r_factor_high) {
            (Some(low), Some(high)) if high - low >= 1.0 => {
                format!("{rating:.0} ({low:.0}–{high:.0})")
            }
            _ => format!("{rating:.1}"),
        }
    }
}

fn lost_share(lost: u64, packets: u64) -> String {
    match lost {
        0 => "0".to_owned(),
        lost => format!(
            "{} ({})",
            units::count(lost),
            units::percent(lost as f64 / packets.max(1) as f64)
        ),
    }
}

fn row(stream: &RtpStream, estimate: &Estimate, measured: &Measured) -> StreamRow {
    let scored = scored(stream, estimate, measured);
    let (codec, playout) = match &scored {
        Ok((codec, playout)) => (Some(*codec), Some(*playout)),
        Err(_) => (None, None),
    };
    let bounds = playout.zip(codec).and_then(|(playout, codec)| {
        let clock = measured.clock?;
        let (offset, error) = (clock.offset.as_nanos(), clock.error_bound?.as_nanos());
        let offset = if measured.corrected { 0 } else { offset };
        let later = [error - offset, -error - offset].map(Delay::from_nanos);
        Some(later.map(|later| playout.rating_if_later(later, codec).0))
    });
    let is_one_way = measured.clock.is_none_or(|clock| clock.error_bound.is_none());
    let reason = match &scored {
        Err(reason) => Some(reason.clone()),
        Ok((codec, _)) => notes(stream, codec, is_one_way),
    };
    StreamRow {
        segment: None,
        scope: stream.key.to_string(),
        ssrc: format!("0x{:08x}", stream.ssrc),
        payload_type: stream.payload_type,
        codec: codec.map(|codec| codec.name),
        codec_assumed: codec.is_some() && stream.payload_type >= FIRST_DYNAMIC,
        packets: estimate.evidence.packets,
        lost: estimate.evidence.lost,
        mean_ns: estimate.delay.map(|delay| delay.mean().as_nanos()),
        jitter_ns: estimate.jitter_ns().map(|ns| ns.round() as i64),
        playout_ns: playout.map(|playout| playout.delay.as_nanos()),
        late: playout.map(|playout| playout.late),
        r_factor: playout.map(|playout| playout.rating.0),
        r_factor_low: bounds.map(|[low, _]| low),
        r_factor_high: bounds.map(|[_, high]| high),
        mos: playout.map(|playout| playout.rating.mean_opinion_score()),
        reason,
        columns: (&stream.key).into(),
    }
}

/// The first payload type that ends of a call agree upon (RFC 3551).
const FIRST_DYNAMIC: u8 = 96;
const VIDEO_HZ: u32 = 90_000;

/// What is assumed for a score.
fn notes(stream: &RtpStream, codec: &Codec, is_one_way: bool) -> Option<String> {
    let dynamic = (stream.payload_type >= FIRST_DYNAMIC).then(|| {
        format!("payload type {} is dynamic: scored as {}", stream.payload_type, codec.name)
    });
    let clocks = is_one_way.then(|| "the clocks are assumed synchronised".to_owned());
    let notes: Vec<String> = dynamic.into_iter().chain(clocks).collect();
    (!notes.is_empty()).then(|| notes.join("; "))
}

/// The codec that the score is for, and how it sounds; or why there is no score.
fn scored(
    stream: &RtpStream,
    estimate: &Estimate,
    measured: &Measured,
) -> Result<(Codec, Playout), String> {
    if stream.shares_flow {
        return Err("no score: several streams share the flow".to_owned());
    }
    let codec = codec_of(stream)?;
    let clock_hz = if stream.payload_type < FIRST_DYNAMIC { Some(8_000) } else { stream.clock_hz };
    let frame_ns = clock_hz.map(|hz| i64::from(stream.step) * 1_000_000_000 / i64::from(hz));
    let frame = frame_ns.filter(|ns| (1_000_000..=200_000_000).contains(ns));
    let frame = frame.ok_or("no score: it is not known how much speech a packet carries")?;
    if estimate.evidence.lost.is_none() {
        return Err("no score: loss is unknown".to_owned());
    }
    let differ = measured.clock.filter(|clock| {
        let bound = clock.error_bound.unwrap_or(Delay::ZERO).as_nanos();
        !measured.corrected && clock.offset.as_nanos().abs() > bound
    });
    if let Some(clock) = differ {
        let offset = units::duration(clock.offset.as_nanos().unsigned_abs() as f64);
        return Err(format!("no score: the clocks differ by {offset}; use --clock correct"));
    }
    let packets =
        estimate.crossings.as_deref().map_or(&[][..], |Crossings { packets, .. }| packets);
    let playout = Playout::best(packets, Delay::from_nanos(frame), codec);
    let playout = playout.ok_or("no score: no delay is known")?;
    match packets.iter().filter_map(Crossing::delay).any(|delay| delay < Delay::ZERO) {
        true => Err("no score: delays are negative, so the clocks differ".to_owned()),
        false => Ok((codec, playout)),
    }
}

/// By the payload type (RFC 3551, table 4), or by the clock of the timestamps.
fn codec_of(stream: &RtpStream) -> Result<Codec, String> {
    let unknown = |name: &str| Err(format!("no score: G.113 has no impairment by loss for {name}"));
    match stream.payload_type {
        0 | 8 => Ok(Codec::G711),
        4 => Ok(Codec::G723),
        18 => Ok(Codec::G729),
        3 => unknown("GSM full rate"),
        9 => unknown("G.722, which is wideband"),
        15 => unknown("G.728"),
        25.. if stream.payload_type < FIRST_DYNAMIC => {
            Err("no score: it is video, and the E-model is for speech".to_owned())
        }
        FIRST_DYNAMIC.. => match stream.clock_hz {
            Some(VIDEO_HZ) => Err("no score: by its clock it is video".to_owned()),
            Some(_) => Ok(Codec::G711),
            None => Err("no score: neither codec nor clock is known".to_owned()),
        },
        other => unknown(&format!("payload type {other}")),
    }
}
