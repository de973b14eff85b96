//! The summary in words. Every number in it was computed.

use std::net::SocketAddr;

use twixt_demo::{
    DemoSummary, DetectorConfig, FoundIncident, IncidentKind, IncidentOutcome, Injected, ROUTES,
    SUMMARY_SECONDS, SegmentSummary, TrafficCount,
};
use twixt_model::{Delay, Segment, Timestamp};

use super::spark::spark;
use crate::output::{Table, UNKNOWN, units};

const MAP: &str = "
  ams ──▶ fra ──▶ zrh ──▶ mil
   │               ▲
   ▼               │
  bru ──────────▶ par
";

/// What to do when it has ended.
pub(super) const NEXT: &str = "
What to try next:

  # a pair of captures with a busy queue between them, and the true delays of every flow
  twixt simulate --out /tmp/twixt --delay droptail:drain=1300mbit,queue=5000
  # what happened to all packets, and to each flow
  twixt delay /tmp/twixt/upstream.pcap /tmp/twixt/downstream.pcap
  twixt delay /tmp/twixt/upstream.pcap /tmp/twixt/downstream.pcap --by flow
  # how close LDA, of bounded size, comes to the referee, which keeps every packet
  twixt verify /tmp/twixt/upstream.pcap /tmp/twixt/downstream.pcap --algorithm lda
  # then two captures of your own
  twixt delay --help
";

/// Network, segments, and what was found.
pub(super) fn summary(summary: &DemoSummary) -> String {
    [
        network(summary.traffic, summary.point_bytes),
        format!("What the collector knows of these {SUMMARY_SECONDS} s:\n"),
        segments(&summary.segments).to_string(),
        incidents(summary),
        promise(&summary.detector),
    ]
    .join("\n")
}

/// How to ask a demo that goes on.
pub(super) fn how_to_ask(address: SocketAddr) -> String {
    format!(
        "
The network goes on at the pace of the clock, with further incidents. Open the dashboard in a
browser, or ask the collector from another terminal:

  http://{address}
  twixt query --collector http://{address} --step epoch --start -10s
  twixt query --collector http://{address} --segment zrh-mil:mil-zrh --class voice
  curl http://{address}/v1/segments

Incidents are reported here as they are found; Ctrl-C ends the demo and removes its files.

"
    )
}

/// A line for an incident that was just found.
pub(super) fn news(found: &FoundIncident, started: Timestamp) -> String {
    let since = started + Delay::from_nanos((found.start_s * 1e9) as i64);
    let what = match found.kind {
        IncidentKind::Queue => "packets wait",
        IncidentKind::Loss => "packets are lost",
    };
    let place = place(&found.segment, found.class.as_deref());
    format!("{}  {}: {what}, {place}\n", units::moment(since), found.kind.name())
}

fn network(traffic: TrafficCount, point_bytes: u64) -> String {
    let routes: Vec<String> = ROUTES.iter().map(|route| route.join(" ▶ ")).collect();
    format!(
        "A simulated network of six routers with three routes:\n{MAP}\n  {}\n\n\
         In {SUMMARY_SECONDS} s {} packets of {} flows entered it, in three classes; every class \
         has a queue of\nits own on every link, and lines lose and reorder a few packets. Points at \
         both ends of every\nlink observe the packets: ams-fra where ams sends to fra, before the \
         queue, and fra-ams where\nfra receives them. Each keeps {} per class and second.\n",
        routes.join(", "),
        units::count(traffic.packets),
        units::count(traffic.flows),
        units::bytes(point_bytes),
    )
}

fn segments(summaries: &[SegmentSummary]) -> Table {
    let mut table = Table::new(&["segment", "class", "mean", "p99", "loss", "verdict"]);
    let duration = |nanos: Option<i64>| nanos.map_or_else(unknown, |of| units::duration(of as f64));
    for summary in summaries {
        table.row(vec![
            summary.segment.to_string(),
            summary.class.to_owned(),
            duration(summary.mean_ns),
            duration(summary.p99_ns),
            summary.loss.map_or_else(unknown, units::percent),
            summary.verdict.map_or_else(unknown, |verdict| verdict.name().to_owned()),
        ]);
    }
    table
}

fn incidents(summary: &DemoSummary) -> String {
    if summary.incidents.is_empty() {
        return "Nothing was injected, and nothing was found.\n".to_owned();
    }
    let shown = summary.incidents.iter().map(|outcome| incident(outcome, &summary.segments));
    format!("What was injected, and what was found:\n\n{}", shown.collect::<String>())
}

fn incident(outcome: &IncidentOutcome, segments: &[SegmentSummary]) -> String {
    let kind = outcome.kind.name();
    let injected = outcome.injected.as_ref().map_or_else(|| "nothing".to_owned(), injected);
    let found = outcome.found.as_ref().map_or_else(|| "nothing".to_owned(), found);
    let mut text = format!("{kind:<6} injected  {injected}\n       found     {found}\n");
    let place = outcome.found.as_ref().map(|found| (&found.segment, &found.class));
    if outcome.kind == IncidentKind::Queue
        && let Some((segment, Some(class))) = place
        && let Some(own) =
            segments.iter().find(|of| of.segment == *segment && of.class == class.as_str())
    {
        text += &format!("       delay by second  {}\n", spark(&own.means_ns));
    }
    text
}

fn injected(injected: &Injected) -> String {
    let Injected { segment, class, start_s, end_s, .. } = injected;
    format!("{}, from {start_s:.1} s to {end_s:.1} s", place(segment, *class))
}

fn found(found: &FoundIncident) -> String {
    let until = match found.end_s {
        Some(end_s) => format!("to {end_s} s"),
        None => "on".to_owned(),
    };
    let place = place(&found.segment, found.class.as_deref());
    format!("{place}, from {} s {until}; {}", found.start_s, confidence(found.confidence))
}

fn place(segment: &Segment, class: Option<&str>) -> String {
    match class {
        Some(class) => format!("{segment}, {class}"),
        None => format!("{segment}, all classes"),
    }
}

fn confidence(confidence: f64) -> String {
    match confidence > 0.9999 {
        true => "confidence above 99.99 %".to_owned(),
        false => format!("confidence {}", units::percent(confidence)),
    }
}

/// What the verdicts rest on.
fn promise(detector: &DetectorConfig) -> String {
    format!(
        "Verdicts come from the collector's estimates alone: each second of a segment's class is \
         compared\nwith its own past. Of {} tests in all, the probability that any raises a false \
         alarm is at\nmost {}.\n",
        units::count(detector.tests),
        units::percent(detector.false_alarms),
    )
}

fn unknown() -> String {
    UNKNOWN.to_owned()
}
