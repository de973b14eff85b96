//! How long a browser works at the pages of a large network. Figures to read, not limits to hold:
//! they are of this machine and of what else it does.

use std::path::Path;

use twixt_collector::ESTIMATES_FOLDER;
use twixt_history::{DelayPart, History, HistoryConfig, Quantile, Row, SeriesKey, moment_text};
use twixt_model::{Histogram, Timestamp};
use twixt_synopsis::Purpose;
use twixt_testing::{check_in_browser, require};

use crate::api::ask_until;
use crate::epochs::{Agent, DELAY_NS, body, epoch_now};
use crate::running::{Running, config};

const SEGMENTS: i64 = 200;
const MINUTES: i64 = 24 * 60;
pub(crate) const MINUTE_NS: i64 = 60_000_000_000;
const FLOWS: u64 = 10_000;

/// A day of minutes of 200 segments, and a segment with 10,000 flows.
#[test]
#[ignore = "takes minutes, and prints figures"]
fn a_browser_shows_a_large_network() {
    require!(browser);
    let folder = tempfile::tempdir().unwrap();
    let now = Timestamp::from_nanos(epoch_now() * crate::epochs::EPOCH_NS);
    store_a_day(&folder.path().join(ESTIMATES_FOLDER), now);
    let collector = Running::start(config(folder.path()));
    let first = epoch_now() - 20;
    for agent in [Agent::at("up"), Agent::at("down").after(DELAY_NS)] {
        let agent = agent.keeping(Purpose::Delay, "exact").of_flows(FLOWS);
        collector.send(&body(&agent.seal(first, 10))).counts();
    }
    ask_until(&collector, "/v1/estimates?segment=up:down&step=hour", |document| {
        document["completeness"]["epochs"].as_i64() >= Some(8)
    });
    let url = format!("http://{}", collector.addresses.listen);
    // The browser takes its time on a busy machine, and the epochs stay where they are.
    let moment = |epoch: i64| moment_text(Timestamp::from_nanos(epoch * crate::epochs::EPOCH_NS));
    let (start, end) = (moment(first), moment(first + 10));
    let times = [("TWIXT_START", start.as_str()), ("TWIXT_END", end.as_str())];
    println!("{}", check_in_browser("large.spec.ts", &url, &times));
}

fn store_a_day(folder: &Path, now: Timestamp) {
    let history = History::open(folder, HistoryConfig::default()).unwrap();
    let last = now.as_nanos() / MINUTE_NS - 1;
    for minute in last - MINUTES..last {
        for segment in 0..SEGMENTS {
            history.append(&[row(segment, minute)], now).unwrap();
        }
    }
}

/// Delays that differ by segment and by time of day.
fn row(segment: i64, minute: i64) -> Row {
    let base_ns = 1_000_000 + 20_000 * segment + 1_000 * (minute % 60) * (segment % 7);
    let [upstream, downstream] = [format!("r{segment:03}-out"), format!("r{:03}-in", segment + 1)];
    row_of([&upstream, &downstream], (MINUTE_NS, minute), base_ns, (minute % 5) as u64)
}

/// An epoch of a segment: 60 000 packets, of which so many were lost, and delays from this one on.
pub(crate) fn row_of(
    [upstream, downstream]: [&str; 2],
    (epoch_ns, epoch): (i64, i64),
    base_ns: i64,
    lost: u64,
) -> Row {
    let mut histogram = Histogram::new(Histogram::BUCKETS_MIN);
    (0..100).for_each(|number| histogram.add(base_ns + number * number * 300, 1.0));
    let known = |value_ns: i64| Quantile {
        value_ns: Some(value_ns),
        low_ns: Some(value_ns - 20_000),
        high_ns: Some(value_ns + 30_000),
    };
    let series = SeriesKey {
        upstream: upstream.to_owned(),
        downstream: downstream.to_owned(),
        class: String::new(),
        algorithm: "sample".to_owned(),
        domain: "lab".to_owned(),
        epoch_ns,
    };
    Row {
        packets: Some(60_000),
        used: Some(100),
        lost: Some(lost),
        delay: Some(DelayPart {
            count: 100,
            sum_ns: i128::from(100 * base_ns),
            squares_ns2: Some(1e12),
            half_width_ns: Some(5e3),
            min_ns: Some(base_ns),
            quantiles: [500_000, 2_400_000, 2_900_000, 3_000_000].map(|more| known(base_ns + more)),
            max_ns: Some(base_ns + 3_000_000),
            histogram: Some(twixt_history::histogram::encode(&histogram)),
            steps: None,
        }),
        clock_error_ns: Some(500),
        ..Row::untold(series, epoch)
    }
}
