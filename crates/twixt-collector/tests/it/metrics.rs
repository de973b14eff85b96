//! What can be scraped, and the page that says so.

use std::collections::BTreeSet;
use std::net::TcpStream;
use std::path::Path;

use twixt_testing::check_wording;

use crate::epochs::{Agent, DELAY_NS, body, epoch_now};
use crate::running::{Running, client, config};

const EPOCHS: i64 = 12;

/// Sends epochs of sums and of samples of one segment, and waits for both to be estimated.
pub(crate) fn feed(collector: &Running, spread_ns: i64) {
    let first = epoch_now() - EPOCHS;
    for agent in [Agent::at("up"), Agent::at("down").after(DELAY_NS).spread(spread_ns)] {
        for agent in [agent.clone(), agent.sampling()] {
            collector.send(&body(&agent.seal(first, EPOCHS))).counts();
        }
    }
    // The first and the last of each wait for neighbours that never come.
    collector.estimated(2 * (EPOCHS as usize - 2));
}

/// Names as Prometheus knows them, of `# TYPE` lines.
fn scraped_names(text: &str) -> BTreeSet<String> {
    let types = text.lines().filter_map(|line| line.strip_prefix("# TYPE "));
    let name = |line: &str| match line.split_once(' ').unwrap() {
        (name, "counter") => format!("{name}_total"),
        (name, _) => name.to_owned(),
    };
    types.map(name).collect()
}

/// Names in the first columns of the page's tables.
fn documented_names() -> BTreeSet<String> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/metrics.md");
    let text = std::fs::read_to_string(page).unwrap();
    let rows = text.lines().filter_map(|line| line.strip_prefix("| `twixt_"));
    rows.map(|row| format!("twixt_{}", row.split('`').next().unwrap())).collect()
}

#[test]
fn the_page_has_every_metric_and_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = config(folder.path());
    config.domain = Some("lab".to_owned());
    config.limits.connections_per_address_max = 2;
    let collector = Running::start(config);
    let stranger = Agent { domain: "elsewhere", ..Agent::at("up") };
    collector.send(&body(&stranger.seal(epoch_now(), 1)));
    feed(&collector, 1);
    let connect = || TcpStream::connect(collector.addresses.listen).unwrap();
    let mut connections = [connect(), connect(), connect()];
    std::io::Read::read_to_end(&mut connections[2], &mut Vec::new()).unwrap();
    let metrics = collector.metrics();
    assert_eq!(scraped_names(&metrics), documented_names());
    let help = metrics.lines().filter(|line| line.starts_with("# HELP"));
    let help: BTreeSet<String> = help.map(|line| format!("{line}\n")).collect();
    check_wording("collector-metrics", &help.into_iter().collect::<String>());
}

#[test]
fn segments_are_told_apart_and_unknown_is_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let collector = Running::start(config(folder.path()));
    feed(&collector, 1);
    let text = collector.metrics();
    let labels = |algorithm: &str| {
        format!("{{domain=\"lab\",segment=\"up:down\",class=\"\",algorithm=\"{algorithm}\"}}")
    };
    let (lda, sample) = (labels("lda"), labels("sample"));
    let value = |name: &str, labels: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(&format!("{name}{labels} ")));
        line.unwrap_or_else(|| panic!("{name}{labels}: {text}")).parse::<f64>().unwrap()
    };
    // The last epoch may wait for its neighbour still.
    let epochs = value("twixt_segment_epochs_total", &lda);
    assert!((10.0..=12.0).contains(&epochs), "{epochs}");
    assert_eq!(value("twixt_segment_packets_total", &lda), 50.0 * epochs);
    assert_eq!(value("twixt_segment_mean_delay_seconds", &lda), 0.001);
    assert_eq!(value("twixt_segment_lost_packets_total", &sample), 0.0);
    let sampled = value("twixt_segment_delay_seconds_count", &sample);
    assert_eq!(sampled, value("twixt_segment_packets_total", &sample));
    assert_eq!(value("twixt_segment_unshown_epochs_total", ""), 0.0);
    assert!(!text.contains(&format!("twixt_segment_delay_seconds_count{lda}")));
    assert!(!text.contains("twixt_segment_clock_offset_seconds{"), "nothing went back");
}

#[test]
fn who_asks_for_native_histograms_gets_them() {
    let folder = tempfile::tempdir().unwrap();
    let collector = Running::start(config(folder.path()));
    let url = format!("http://{}/metrics", collector.addresses.metrics.unwrap());
    for (accepted, expected) in [
        (
            "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;\
             encoding=delimited;q=0.7,text/plain;q=0.3",
            "application/vnd.google.protobuf",
        ),
        ("application/openmetrics-text;version=1.0.0", "application/openmetrics-text"),
        ("application/vnd.google.protobuf;proto=something.else", "application/openmetrics-text"),
    ] {
        let response = client().get(&url).header("Accept", accepted).call().unwrap();
        let kind = response.headers()["content-type"].to_str().unwrap();
        assert!(kind.starts_with(expected), "{accepted}: {kind}");
    }
}
