//! A real Prometheus scrapes a real collector, and its quantiles are ours within a bucket.

use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::Value;
use twixt_engine::EngineEvent;
use twixt_model::{DelaySample, Estimate};
use twixt_testing::{require, wait_for};

use crate::metrics::feed;
use crate::running::{Running, client, config};

/// A Prometheus of our own, ended with us.
struct Prometheus {
    child: Child,
    url: String,
}

impl Prometheus {
    fn start(folder: &Path, target: &str, features: &[&str]) -> Self {
        let file = folder.join("prometheus.yml");
        let text = format!(
            "scrape_configs:\n- job_name: twixt\n  scrape_interval: 500ms\n  scrape_timeout: 400ms\n  \
             static_configs:\n  - targets: [\"{target}\"]\n"
        );
        std::fs::write(&file, text).unwrap();
        // Free a moment ago; Prometheus takes no port 0 that it would tell us of.
        let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let child = Command::new("prometheus")
            .arg(format!("--config.file={}", file.display()))
            .arg(format!("--storage.tsdb.path={}", folder.join("tsdb").display()))
            .arg(format!("--web.listen-address={free}"))
            .args(features)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        Self { child, url: format!("http://{free}") }
    }

    /// The value of an expression that has one, as soon as it has.
    #[track_caller]
    fn value(&self, expression: &str) -> f64 {
        wait_for(expression, || {
            let request = client().get(format!("{}/api/v1/query", self.url));
            let answer = request.query("query", expression).call();
            let text = answer.ok().and_then(|mut answer| answer.body_mut().read_to_string().ok());
            let answer: Value = serde_json::from_str(&text.unwrap_or_default()).unwrap_or_default();
            let value = answer["data"]["result"][0]["value"][1].as_str();
            value.map(|value| value.parse().unwrap()).ok_or(answer.clone())
        })
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// All sampled delays that were reported.
fn sampled(events: &[EngineEvent]) -> DelaySample {
    let mut all = DelaySample::default();
    for event in events {
        if let EngineEvent::Estimated(pair) = event {
            let samples =
                pair.estimates.iter().filter_map(|Estimate { sample, .. }| sample.as_deref());
            samples.for_each(|sample| all.merge(sample));
        }
    }
    all
}

/// Compares quantiles; `metric` is what `histogram_quantile` is asked about, `bucket` the widest
/// ratio of a bucket's bounds.
fn check(features: &[&str], metric: &str, bucket: f64) {
    require!(program "prometheus");
    let folder = tempfile::tempdir().unwrap();
    let collector = Running::start(config(&folder.path().join("collector")));
    feed(&collector, 1_500_000);
    let target = collector.addresses.metrics.unwrap().to_string();
    let prometheus = Prometheus::start(folder.path(), &target, features);
    let ours = sampled(&collector.events());
    assert!(ours.packets().len() >= 500, "{}", ours.packets().len());
    for share in [0.5, 0.9, 0.99] {
        let theirs = prometheus.value(&format!("histogram_quantile({share}, {metric})"));
        let ours = ours.percentile(share).unwrap().time_ns as f64 / 1e9;
        eprintln!("{metric} {share}: {theirs} by Prometheus, {ours} by us");
        let ratio = theirs / ours;
        assert!((1.0 / bucket..=bucket).contains(&ratio), "{theirs} is not {ours}");
    }
    let packets = prometheus.value("sum(twixt_segment_packets_total{algorithm=\"lda\"})");
    assert!(packets >= 500.0, "{packets}");
}

/// Names, units and types as Prometheus' own tool wants them. It reads the older text format, in
/// which counters are called as their values are.
#[test]
fn promtool_finds_no_fault() {
    require!(program "promtool");
    let folder = tempfile::tempdir().unwrap();
    let collector = Running::start(config(folder.path()));
    feed(&collector, 1_500_000);
    let mut child = Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let text = older_format(&collector.metrics());
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), text.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.is_empty(), "{said}");
}

fn older_format(page: &str) -> String {
    let types = page.lines().filter_map(|line| line.strip_prefix("# TYPE "));
    let counters: Vec<&str> = types.filter_map(|line| line.strip_suffix(" counter")).collect();
    let mut text = String::new();
    for line in page.lines().filter(|line| *line != "# EOF" && !line.starts_with("# UNIT")) {
        let words: Vec<&str> = line.splitn(4, ' ').collect();
        text += &match words[..] {
            ["#", kind, name, rest] if counters.contains(&name) => {
                format!("# {kind} {name}_total {rest}\n")
            }
            _ => format!("{line}\n"),
        };
    }
    text
}

#[test]
fn classic_histograms_agree_within_a_bucket() {
    check(&[], "twixt_segment_delay_seconds_bucket", 2.5);
}

#[test]
fn native_histograms_agree_within_a_bucket() {
    let features = ["--enable-feature=native-histograms"];
    check(&features, "twixt_segment_delay_seconds", 2_f64.powf(1.0 / 8.0));
}
