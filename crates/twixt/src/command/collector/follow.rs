//! Estimates on standard output, as they come.

use std::io::{self, Write};

use twixt_collector::EventSink;
use twixt_engine::{EngineEvent, PointEstimate, Series};
use twixt_history::{Row, SeriesKey};
use twixt_model::{Estimate, LossRange, Span};

use super::rows;
use crate::output::{Format, units};

/// Prints events, for people or for programs.
pub(super) struct Following {
    format: Format,
    /// Lines that go out together: a collector that is killed has printed all of them or none, but
    /// for what a full pipe holds up.
    lines: String,
}

impl Following {
    pub(super) fn new(format: Format) -> Self {
        Self { format, lines: String::new() }
    }

    fn add(&mut self, lines: Vec<String>) {
        for line in lines {
            self.lines.push_str(&line);
            self.lines.push('\n');
        }
    }
}

impl EventSink for Following {
    fn take(&mut self, event: &EngineEvent) -> io::Result<()> {
        let lines = match self.format {
            Format::Jsonl => rows::lines(event)?,
            _ => text(event),
        };
        self.add(lines);
        Ok(())
    }

    fn take_minute(&mut self, rows: &[Row]) -> io::Result<()> {
        let lines = match self.format {
            Format::Jsonl => rows::minute_lines(rows)?,
            _ => rows.iter().map(minute_text).collect(),
        };
        self.add(lines);
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        let mut out = io::stdout().lock();
        out.write_all(std::mem::take(&mut self.lines).as_bytes())?;
        out.flush()
    }
}

/// A line for each scope: when, where, what.
fn text(event: &EngineEvent) -> Vec<String> {
    match event {
        EngineEvent::Estimated(pair) => {
            let start = start_of(pair.span, &pair.series);
            pair.estimates.iter().map(|estimate| format!("{start}  {}", shown(estimate))).collect()
        }
        // Its rows come when they are summed up.
        EngineEvent::MinuteOver(_) => Vec::new(),
        EngineEvent::Gap(gap) => {
            let start = start_of(gap.span, &gap.series);
            let epochs = gap.epochs();
            vec![format!("{start}  gap of {epochs} epoch{}: {}", plural(epochs), gap.reason)]
        }
        EngineEvent::Warning(warning) => vec![format!("warning: {}", warning.text)],
        EngineEvent::Observed(point) => vec![point_text(point)],
        EngineEvent::ObservedSummary(point) => {
            vec![format!("{}  (minute: {} epochs)", point_text(point), point.epochs)]
        }
    }
}

/// What is known of a minute.
fn minute_text(row: &Row) -> String {
    let SeriesKey { upstream, downstream, class, algorithm, .. } = &row.series;
    let class = if class.is_empty() { String::new() } else { format!(" ({class})") };
    let nanos = |nanos: i64| units::duration(nanos as f64);
    let delay = match &row.delay {
        Some(delay) => {
            let [.., p99, _] = delay.quantiles.map(|quantile| quantile.value_ns);
            let tail = p99.map(|p99_ns| format!(", p99 {}", nanos(p99_ns))).unwrap_or_default();
            format!("mean {}{tail}", nanos(delay.mean_ns()))
        }
        None => row.reason.clone().unwrap_or_else(|| "delay unknown".to_owned()),
    };
    format!(
        "{}  {upstream} > {downstream}{class}  {algorithm}  {}: {delay}, {}  (minute: {} epochs, {} \
         gaps)",
        units::moment(row.span().start),
        row.scope,
        loss_text(row.packets.unwrap_or(0), row.loss_range()),
        row.epochs,
        row.gaps
    )
}

fn loss_text(packets: u64, lost: Option<LossRange>) -> String {
    let packets = units::count(packets);
    match lost {
        Some(LossRange { min, max }) => format!("{} of {packets} lost", units::range(min, max)),
        None => format!("{packets} packets, loss unknown"),
    }
}

fn start_of(span: Span, series: &Series) -> String {
    let Series { segment, class, algorithm, .. } = series;
    let class = if class.is_empty() { String::new() } else { format!(" ({class})") };
    format!("{}  {segment}{class}  {algorithm}", units::moment(span.start))
}

/// What is known of delay and loss; what is not says why.
fn shown(estimate: &Estimate) -> String {
    let scope = estimate.scope.to_string();
    let nanos = |nanos: i64| units::duration(nanos as f64);
    let delay = match &estimate.delay {
        Some(delay) => {
            let tail =
                estimate.percentile(0.99).map(|found| format!(", p99 {}", nanos(found.time_ns)));
            format!("mean {}{}", nanos(delay.mean().as_nanos()), tail.unwrap_or_default())
        }
        None => estimate.reason.clone().unwrap_or_else(|| "delay unknown".to_owned()),
    };
    let loss = loss_text(estimate.evidence.packets, estimate.evidence.loss_range());
    format!("{scope}: {delay}, {loss}")
}

fn point_text(point: &PointEstimate) -> String {
    let (when, packets) = (units::moment(point.span.start), units::count(point.counts.packets));
    let purpose = point.purpose.name();
    format!("{when}  {}  {purpose} {}: {packets} packets", point.point, point.algorithm)
}

const fn plural(number: u64) -> &'static str {
    if number == 1 { "" } else { "s" }
}
