//! The demo in words, bars and a table. Every number in it was computed.

use twixt_model::quantity::Nanoseconds;
use twixt_model::{DelayEstimate, Estimate, Timestamp};

use super::chart::{self, Row};
use super::scenario::Scenario;
use super::{DemoMeasured, EPOCH_NS, loss};
use crate::output::{Table, units};

/// Shown where nothing is known.
const UNKNOWN: &str = "–";
/// Flows shown.
const FLOWS_SHOWN: usize = 5;
/// Flows with fewer packets are not compared: a few unlucky packets say little.
const FLOW_PACKETS_MIN: u64 = 100;

const ALGORITHMS: &str = "\
Two algorithms are compared. The exact referee keeps every packet at both points and
matches it individually. LDA only sums times in a few thousand cells; if none of a
cell's packets was lost, the difference of the two sums is their delay. (Bars: LDA.)
";

const NEXT: &str = "\
What to try next:

  # a pair of captures with a busy queue between them, and the true delays of every flow
  twixt simulate --out /tmp/twixt --delay droptail:drain=1300mbit,queue=5000
  # what happened to all packets, and to each flow
  twixt delay /tmp/twixt/upstream.pcap /tmp/twixt/downstream.pcap
  twixt delay /tmp/twixt/upstream.pcap /tmp/twixt/downstream.pcap --by flow
  # how close LDA comes to the referee
  twixt verify /tmp/twixt/upstream.pcap /tmp/twixt/downstream.pcap --algorithm lda
  # then two captures of your own
  twixt delay --help
";

/// All of it.
pub(super) fn report(scenario: &Scenario, found: &DemoMeasured) -> String {
    [
        scenario.words(),
        format!("{ALGORITHMS}\nMean delay in every {}:\n", Nanoseconds(EPOCH_NS)),
        series(found),
        congestion(found),
        format!("The whole run:\n\n{}", comparison(found)),
        verdict(found),
        flows(found),
        NEXT.to_owned(),
    ]
    .join("\n")
}

fn series(found: &DemoMeasured) -> String {
    let (exact, lda) = (&found.exact_series.estimates, &found.lda_series.estimates);
    let start = exact.first().map(|estimate| estimate.span.start).unwrap_or_default();
    let rows: Vec<Row> = lda
        .iter()
        .zip(exact)
        .map(|(lda, exact)| Row {
            label: elapsed(start, lda.span.start),
            value: lda.delay.map(|delay| delay.mean_ns()),
            cells: vec![mean(lda), mean(exact), loss(exact).map_or_else(unknown, units::percent)],
        })
        .collect();
    chart::draw(&["time", "", "LDA", "exact", "lost"], &rows)
}

/// When the queue was full, in words.
fn congestion(found: &DemoMeasured) -> String {
    let congested = found.congested();
    let (Some(first), Some(last)) = (congested.first(), congested.last()) else {
        return "The queue never overflowed.\n".to_owned();
    };
    let start = found.lda_series.estimates.first().map_or(first.span.start, |all| all.span.start);
    let end = Timestamp::from_nanos(last.span.start.as_nanos() + EPOCH_NS);
    format!(
        "First packets wait longer, then the queue is full and packets are lost: the segment \
         is\ncongested from {} to {}.\n",
        elapsed(start, first.span.start),
        elapsed(start, end)
    )
}

fn comparison(found: &DemoMeasured) -> Table {
    let exact = found.exact.estimates.first();
    let lda = found.lda.estimates.first();
    let mut table = Table::new(&["", "exact", "LDA", "error"]);
    let mut row = |name: &str, shown: &dyn Fn(&Estimate) -> String, error: String| {
        let cell = |estimate: Option<&Estimate>| estimate.map_or_else(unknown, shown);
        table.row(vec![name.to_owned(), cell(exact), cell(lda), error]);
    };
    let error = |value: &dyn Fn(&Estimate) -> Option<f64>| {
        error(exact.and_then(value), lda.and_then(value)).map_or_else(unknown, units::percent)
    };
    row(
        "packets",
        &|all| units::count(all.evidence.packets),
        error(&|all| Some(all.evidence.packets as f64)),
    );
    row("lost", &|all| all.evidence.lost.map_or_else(unknown, units::count), error(&loss));
    row("mean ± 95 %", &mean_with_interval, error(&|all| Some(all.delay?.mean_ns())));
    row("deviation", &deviation, error(&|all| all.delay?.deviation_ns));
    let (exact_bytes, lda_bytes) = (found.exact.state_bytes, found.lda.state_bytes);
    table.row(vec![
        "state per point".to_owned(),
        units::bytes(exact_bytes),
        units::bytes(lda_bytes),
        String::new(),
    ]);
    table
}

/// What the table means, in words.
fn verdict(found: &DemoMeasured) -> String {
    let delay = |estimates: &[Estimate]| estimates.first().and_then(|all| all.delay);
    let (Some(exact), Some(lda)) = (delay(&found.exact.estimates), delay(&found.lda.estimates))
    else {
        return "There is not enough data to compare.\n".to_owned();
    };
    let times = found.exact.state_bytes / found.lda.state_bytes.max(1);
    let covered = match covers(&lda, exact.mean_ns()) {
        Some(true) => "The true mean lies within the interval that LDA states.",
        Some(false) => {
            "The true mean lies outside the interval that LDA states, as happens once in twenty."
        }
        None => "LDA states no interval here.",
    };
    format!(
        "LDA needs 1/{times} of the referee's memory, however many packets there are.\n{covered}\n"
    )
}

fn covers(delay: &DelayEstimate, mean_ns: f64) -> Option<bool> {
    Some((delay.mean_ns() - mean_ns).abs() <= delay.half_width_ns?)
}

/// The flows that suffered most.
fn flows(found: &DemoMeasured) -> String {
    let large = |flow: &&Estimate| flow.evidence.packets >= FLOW_PACKETS_MIN;
    let mut worst: Vec<&Estimate> = found.flows.estimates.iter().filter(large).collect();
    worst.sort_by_key(|flow| std::cmp::Reverse(flow.delay.map(|delay| delay.mean())));
    let mut table = Table::new(&["flow", "packets", "lost", "mean"]);
    for flow in worst.iter().take(FLOWS_SHOWN) {
        table.row(vec![
            flow.scope.to_string(),
            units::count(flow.evidence.packets),
            loss(flow).map_or_else(unknown, units::percent),
            mean(flow),
        ]);
    }
    format!(
        "The flows of {FLOW_PACKETS_MIN} packets or more that waited longest (exact):\n\n{table}"
    )
}

fn mean(estimate: &Estimate) -> String {
    estimate.delay.map_or_else(unknown, |delay| units::duration(delay.mean_ns()))
}

fn mean_with_interval(estimate: &Estimate) -> String {
    match estimate.delay.and_then(|delay| delay.half_width_ns) {
        None | Some(0.0) => mean(estimate),
        Some(half_ns) => format!("{} ± {}", mean(estimate), units::duration(half_ns)),
    }
}

fn deviation(estimate: &Estimate) -> String {
    let deviation_ns = estimate.delay.and_then(|delay| delay.deviation_ns);
    deviation_ns.map_or_else(unknown, units::duration)
}

/// How far `found` is from `truth`, relative to it.
fn error(truth: Option<f64>, found: Option<f64>) -> Option<f64> {
    let (truth, found) = (truth?, found?);
    if truth == found { Some(0.0) } else { Some((found - truth).abs() / truth.abs()) }
}

/// Time since the start, to a tenth of a second.
fn elapsed(start: Timestamp, time: Timestamp) -> String {
    format!("{:.1} s", (time - start).as_nanos() as f64 / 1e9)
}

fn unknown() -> String {
    UNKNOWN.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_relative_to_the_truth() {
        assert_eq!(error(Some(8.0), Some(10.0)), Some(0.25));
        assert_eq!(error(Some(-8.0), Some(-6.0)), Some(0.25));
        assert_eq!(error(Some(0.0), Some(0.0)), Some(0.0));
        assert_eq!(error(None, Some(1.0)), None);
    }

    #[test]
    fn the_referee_agrees_with_the_truth_of_the_simulation() {
        let simulation = Scenario::new(1).simulate().unwrap();
        let found = DemoMeasured::measure(&simulation).unwrap();
        let truth = simulation.truth();
        let exact = &found.exact.estimates[0];
        assert_eq!(exact.evidence.packets, truth.all.evidence.packets);
        assert_eq!(exact.evidence.lost, truth.all.evidence.lost);
        assert_eq!(exact.delay.unwrap().mean(), truth.all.delay.unwrap().mean());
        assert_eq!(found.flows.estimates.len(), truth.flows.len());
        // Cut into epochs, nothing gets lost between them.
        let sum = |each: fn(&Estimate) -> u64| -> u64 {
            found.exact_series.estimates.iter().map(each).sum()
        };
        assert_eq!(sum(|epoch| epoch.evidence.packets), truth.all.evidence.packets);
        assert_eq!(sum(|epoch| epoch.evidence.lost.unwrap()), truth.all.evidence.lost.unwrap());
        assert_eq!(found.segment().verdict, "congested");
    }
}
