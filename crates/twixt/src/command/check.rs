//! `twixt check`: whether a segment or a point is as it should be, for cron and Nagios.

mod judging;
mod line;
mod points;

use std::time::{SystemTime, UNIX_EPOCH};

use serde::Serialize;
use twixt_collector::api::CompletenessDocument;
use twixt_history::{ROWS_MAX, RowQuestion, Step};
use twixt_model::quantity::Nanoseconds;
use twixt_model::{Delay, RoundTripKind, Scope, Segment, Span, Timestamp};

use super::query::estimates::{SourceArgs, segment, totals};
use crate::args::{Limit, LimitMeasure, Threshold};
use crate::exit::{Exit, explained, note, usage};
use crate::output;
use judging::{Finding, State, judge};

/// Nagios gives the numbers 2 and 3 meanings of its own: critical, and unknown.
const NAGIOS_CRITICAL: Exit = Exit::Usage;
const NAGIOS_UNKNOWN: Exit = Exit::Partial;

/// Compare a collector's latest estimates with thresholds, for cron and Nagios
///
/// Ends with 0 if all is well, 10 if a threshold is exceeded, 4 if there is not enough data.
#[derive(clap::Args)]
#[command(group = clap::ArgGroup::new("source").required(true))]
pub(crate) struct Args {
    #[command(flatten)]
    source: SourceArgs,
    /// The segment: names of its points
    #[arg(
        long,
        value_name = "UPSTREAM:DOWNSTREAM",
        value_parser = segment,
        required_unless_present = "point"
    )]
    segment: Option<Segment>,
    /// A point, instead of a segment: its round trips
    #[arg(long, value_name = "POINT", conflicts_with = "segment")]
    point: Option<String>,
    /// With --point: kind of round trips, such as tcp-handshake [default: each]
    #[arg(long, value_name = "KIND", requires = "point")]
    kind: Option<RoundTripKind>,
    /// Class of traffic [default: each class]
    #[arg(long, value_name = "NAME")]
    class: Option<String>,
    /// Algorithm [default: each]
    #[arg(short = 'a', long, value_name = "NAME")]
    algorithm: Option<String>,
    /// Threshold: mean, deviation, p50, p95, p99, p999, jitter (such as 5ms), loss, gaps (such as
    /// 0.1%), with --point also share:50ms=5% (more than 5 % above 50 ms); repeatable
    #[arg(long, value_name = "MEASURE=VALUE", required = true)]
    fail_above: Vec<Limit>,
    /// How far to look back, in whole minutes
    #[arg(long, value_name = "DURATION", default_value = "5m")]
    window: Nanoseconds,
    /// Minimum number of packets, or of round trips, for enough data
    #[arg(long, value_name = "N", default_value_t = 1)]
    minimum_packets: u64,
    /// Exit codes for Nagios: 0, 2 for critical, 3 for unknown
    #[arg(long)]
    nagios: bool,
    /// Output format
    #[arg(short = 'F', long = "format", value_enum, default_value_t)]
    format: CheckFormat,
}

/// `-F`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
enum CheckFormat {
    /// One line, for Nagios
    #[default]
    Human,
    /// One JSON document
    Json,
}

/// `-F json`.
#[derive(Serialize)]
struct CheckDocument<'a> {
    state: State,
    /// `null` of a point.
    upstream: Option<&'a str>,
    downstream: Option<&'a str>,
    /// `null` of a segment.
    point: Option<&'a str>,
    start_ns: i64,
    end_ns: i64,
    epochs: u64,
    gaps: u64,
    findings: &'a [Finding],
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Exit> {
    let checked = args.check();
    match checked {
        Err(error) if args.nagios => {
            output::text(&format!("TWIXT UNKNOWN - {}\n", explained(&error)))?;
            Ok(NAGIOS_UNKNOWN)
        }
        checked => checked,
    }
}

/// What was found.
struct Checked {
    span: Span,
    findings: Vec<Finding>,
    completeness: CompletenessDocument,
}

impl Args {
    fn check(&self) -> anyhow::Result<Exit> {
        let Checked { span, findings, completeness } = match &self.point {
            Some(point) => points::check(self, point)?,
            None => self.check_segment()?,
        };
        completeness.problems.iter().for_each(note);
        let state = findings.iter().map(|finding| finding.state).max().unwrap_or(State::Unknown);
        let segment = self.segment.as_ref();
        match self.format {
            CheckFormat::Human => output::text(&line::of(state, &self.name(), &findings))?,
            CheckFormat::Json => output::json(&CheckDocument {
                state,
                upstream: segment.map(|segment| segment.upstream.0.as_str()),
                downstream: segment.map(|segment| segment.downstream.0.as_str()),
                point: self.point.as_deref(),
                start_ns: span.start.as_nanos(),
                end_ns: span.end.as_nanos(),
                epochs: completeness.epochs,
                gaps: completeness.gaps,
                findings: &findings,
            })?,
        }
        Ok(self.exit(state))
    }

    fn check_segment(&self) -> anyhow::Result<Checked> {
        let thresholds: Vec<Threshold> =
            self.fail_above.iter().map(of_segment).collect::<anyhow::Result<_>>()?;
        let question = RowQuestion { segment: self.segment.clone(), ..self.question()? };
        let document = totals(&self.source, &question)?;
        Ok(Checked {
            span: question.span,
            findings: judge(&document, &thresholds, self.minimum_packets),
            completeness: document.completeness,
        })
    }

    /// The point, or the segment.
    fn name(&self) -> String {
        let segment = || {
            let segment = self.segment.as_ref();
            segment.map(|segment| format!("{}:{}", segment.upstream, segment.downstream))
        };
        self.point.clone().or_else(segment).unwrap_or_default()
    }

    fn question(&self) -> anyhow::Result<RowQuestion> {
        if self.window.0 <= 0 {
            return Err(usage("--window must be positive"));
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let end = Timestamp::from_nanos(i64::try_from(now.as_nanos()).unwrap_or(i64::MAX));
        let start = end - Delay::from_nanos(self.window.0);
        Ok(RowQuestion {
            class: self.class.clone(),
            algorithm: self.algorithm.clone(),
            scope: Some(Scope::All.to_string()),
            span: Span { start, end },
            histograms: true,
            limit: ROWS_MAX,
            ..RowQuestion::all(Step::Minute)
        })
    }

    const fn exit(&self, state: State) -> Exit {
        match (state, self.nagios) {
            (State::Ok, _) => Exit::Done,
            (State::Critical, false) => Exit::Broken,
            (State::Critical, true) => NAGIOS_CRITICAL,
            (State::Unknown, false) => Exit::NoAnswer,
            (State::Unknown, true) => NAGIOS_UNKNOWN,
        }
    }
}

/// A limit on what segments have.
fn of_segment(limit: &Limit) -> anyhow::Result<Threshold> {
    match limit.measure {
        LimitMeasure::Of(measure) => Ok(Threshold { measure, above: limit.above }),
        other => Err(usage(format!("--fail-above: a segment has no {other}; use --point"))),
    }
}
