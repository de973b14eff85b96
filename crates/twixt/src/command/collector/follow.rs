//! Estimates on standard output, as they come.

use std::io::{self, Write};

use twixt_collector::EventSink;
use twixt_engine::{EngineEvent, PointEstimate, Series};
use twixt_model::{Estimate, Span};

use super::rows;
use crate::output::{Format, units};

/// Prints events, for people or for programs.
pub(super) struct Following {
    format: Format,
    /// Lines that go out together: a collector that is killed has printed all of them or none, but
    /// for what a full pipe holds up.
    lines: String,
}

/// Prints nothing: metrics and the log tell what there is to tell.
pub(super) struct Quiet;

impl Following {
    pub(super) fn new(format: Format) -> Self {
        Self { format, lines: String::new() }
    }
}

impl EventSink for Following {
    fn take(&mut self, event: &EngineEvent) -> io::Result<()> {
        let lines = match self.format {
            Format::Jsonl => rows::lines(event)?,
            _ => text(event),
        };
        for line in lines {
            self.lines.push_str(&line);
            self.lines.push('\n');
        }
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        let mut out = io::stdout().lock();
        out.write_all(std::mem::take(&mut self.lines).as_bytes())?;
        out.flush()
    }
}

impl EventSink for Quiet {
    fn take(&mut self, _: &EngineEvent) -> io::Result<()> {
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A line for each scope: when, where, what.
fn text(event: &EngineEvent) -> Vec<String> {
    match event {
        EngineEvent::Estimated(pair) => {
            let start = start_of(pair.span, &pair.series);
            pair.estimates.iter().map(|estimate| format!("{start}  {}", shown(estimate))).collect()
        }
        EngineEvent::Summary(summary) => {
            let start = start_of(summary.span, &summary.series);
            let (epochs, gaps) = (summary.epochs, summary.gaps);
            let line = |estimate| {
                format!("{start}  {}  (minute: {epochs} epochs, {gaps} gaps)", shown(estimate))
            };
            summary.estimates.iter().map(line).collect()
        }
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
        None => estimate.reason.clone().unwrap_or_else(|| "delay not known".to_owned()),
    };
    let packets = units::count(estimate.evidence.packets);
    let loss = match estimate.evidence.lost {
        Some(lost) => format!("{} of {packets} lost", units::count(lost)),
        None => format!("{packets} packets, loss not known"),
    };
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
