//! A dashboard for Grafana, of what a collector's `/metrics` say of segments.
//!
//! Plain JSON of Grafana's classic dashboard model: a variable for the data source, so that it can
//! be imported anywhere; variables for segments, classes and algorithms; and panels, each a line
//! of `PANELS`.

use serde_json::{Value, json};

/// The version of the dashboard model that is written. Grafana brings older ones up to date.
const SCHEMA_VERSION: u32 = 39;
/// Columns of Grafana's grid.
const GRID_COLUMNS: u32 = 24;
const PANEL_COLUMNS: u32 = 12;
const PANEL_ROWS: u32 = 8;
/// What is shown, of everything that the variables choose.
const CHOSEN: &str = r#"segment=~"$segment",class=~"$class",algorithm=~"$algorithm""#;
/// Clocks are those of points, whatever the algorithm.
const CHOSEN_CLOCKS: &str = r#"segment=~"$segment",class=~"$class""#;
const SERIES: &str = "domain, segment, class, algorithm";

/// One panel.
struct Panel {
    title: &'static str,
    description: &'static str,
    /// As Grafana calls it.
    unit: &'static str,
    /// Expressions, and what the lines are called behind the segment's name.
    lines: Vec<(String, &'static str)>,
}

/// The dashboard.
pub(super) fn dashboard() -> Value {
    let panels: Vec<Value> =
        panels().iter().enumerate().map(|(index, panel)| panel.to_json(index as u32)).collect();
    json!({
        "uid": "twixt-segments",
        "title": "twixt: segments",
        "description": "Delay, loss and clocks between observation points, as twixt's collector sees them",
        "tags": ["twixt"],
        "schemaVersion": SCHEMA_VERSION,
        "version": 1,
        "editable": true,
        "graphTooltip": 1,
        "timezone": "browser",
        "refresh": "30s",
        "time": { "from": "now-6h", "to": "now" },
        "annotations": { "list": [] },
        "links": [],
        "templating": { "list": variables() },
        "panels": panels,
    })
}

fn panels() -> Vec<Panel> {
    let mut panels = of_packets();
    panels.extend(of_measuring());
    panels
}

/// What happens to packets.
fn of_packets() -> Vec<Panel> {
    vec![
        Panel {
            title: "Delay: percentiles",
            description: "Of all packets, from samples; within a bucket of the histogram",
            unit: "s",
            lines: vec![(quantile(0.5), "p50"), (quantile(0.95), "p95"), (quantile(0.99), "p99")],
        },
        Panel {
            title: "Delay: mean and deviation",
            description: "Of the last epoch before each scrape",
            unit: "s",
            lines: vec![
                (plain("twixt_segment_mean_delay_seconds"), "mean"),
                (plain("twixt_segment_delay_deviation_seconds"), "deviation"),
            ],
        },
        Panel {
            title: "Loss",
            description: "Share of packets that the network lost, of those whose fate is known",
            unit: "percentunit",
            lines: vec![(
                ratio("twixt_segment_lost_packets_total", "twixt_segment_loss_known_packets_total"),
                "",
            )],
        },
        Panel {
            title: "Packets",
            description: "Packets that upstream counted, and those that estimates rest on",
            unit: "pps",
            lines: vec![
                (rate("twixt_segment_packets_total"), "counted"),
                (rate("twixt_segment_measured_packets_total"), "measured"),
            ],
        },
    ]
}

/// How well that is known.
fn of_measuring() -> Vec<Panel> {
    vec![
        Panel {
            title: "Epochs: gaps",
            description: "Epochs per second of which something, and of which nothing is known",
            unit: "short",
            lines: vec![
                (rate("twixt_segment_epochs_total"), "known"),
                (rate("twixt_segment_gap_epochs_total"), "gaps"),
            ],
        },
        Panel {
            title: "Clocks",
            description: "What the downstream clock is ahead by where packets both ways tell, how far that can be off, and the bound that the points state",
            unit: "s",
            lines: vec![
                (clock("twixt_segment_clock_offset_seconds"), "offset"),
                (clock("twixt_segment_clock_offset_bound_seconds"), "offset bound"),
                (plain("twixt_segment_clock_error_bound_seconds"), "stated bound"),
            ],
        },
        Panel {
            title: "Age of the last epoch",
            description: "Grows while nothing comes",
            unit: "s",
            lines: vec![(
                format!("time() - {}", plain("twixt_segment_last_epoch_timestamp_seconds")),
                "",
            )],
        },
        Panel {
            title: "Alerts of the collector",
            description: "Alerts on series, by how they stand",
            unit: "short",
            lines: vec![("sum by (state) (twixt_collector_alerts)".to_owned(), "{{state}}")],
        },
    ]
}

fn plain(metric: &str) -> String {
    format!("{metric}{{{CHOSEN}}}")
}

/// As [`plain`], of metrics that know no algorithm.
fn clock(metric: &str) -> String {
    format!("{metric}{{{CHOSEN_CLOCKS}}}")
}

fn rate(metric: &str) -> String {
    format!("sum by ({SERIES}) (rate({metric}{{{CHOSEN}}}[$__rate_interval]))")
}

fn ratio(part: &str, whole: &str) -> String {
    format!("{} / {}", rate(part), rate(whole))
}

fn quantile(share: f64) -> String {
    let buckets = "twixt_segment_delay_seconds_bucket";
    let rate = format!("rate({buckets}{{{CHOSEN}}}[$__rate_interval])");
    format!("histogram_quantile({share}, sum by (le, {SERIES}) ({rate}))")
}

impl Panel {
    fn to_json(&self, index: u32) -> Value {
        let per_row = GRID_COLUMNS / PANEL_COLUMNS;
        let targets: Vec<Value> =
            self.lines.iter().zip('A'..='Z').map(|(line, name)| target(line, name)).collect();
        json!({
            "id": index + 1,
            "type": "timeseries",
            "title": self.title,
            "description": self.description,
            "datasource": source(),
            "gridPos": {
                "x": index % per_row * PANEL_COLUMNS,
                "y": index / per_row * PANEL_ROWS,
                "w": PANEL_COLUMNS,
                "h": PANEL_ROWS,
            },
            "fieldConfig": {
                "defaults": { "unit": self.unit, "custom": { "spanNulls": false } },
                "overrides": [],
            },
            "options": {
                "legend": { "displayMode": "list", "placement": "bottom", "showLegend": true, "calcs": [] },
                "tooltip": { "mode": "multi", "sort": "desc" },
            },
            "targets": targets,
        })
    }
}

fn target((expression, name): &(String, &'static str), reference: char) -> Value {
    let legend = match *name {
        name if name.starts_with("{{") => name.to_owned(),
        name => format!("{{{{segment}}}} {{{{class}}}} {{{{algorithm}}}} {name}").trim().to_owned(),
    };
    json!({
        "refId": reference.to_string(),
        "datasource": source(),
        "expr": expression,
        "legendFormat": legend,
        "range": true,
    })
}

/// Chosen by a variable: who imports it has a Prometheus of some name.
fn source() -> Value {
    json!({ "type": "prometheus", "uid": "${datasource}" })
}

fn variables() -> Vec<Value> {
    let data_source = json!({
        "name": "datasource",
        "label": "Data source",
        "type": "datasource",
        "query": "prometheus",
        "refresh": 1,
        "hide": 0,
        "multi": false,
        "includeAll": false,
    });
    let labels = ["segment", "class", "algorithm"].map(|label| {
        let query = format!("label_values(twixt_segment_epochs_total, {label})");
        json!({
            "name": label,
            "type": "query",
            "datasource": source(),
            "query": { "query": query, "refId": label },
            "refresh": 2,
            "sort": 1,
            "hide": 0,
            "multi": true,
            "includeAll": true,
            // Without classes the label is empty, which no list of values has.
            "allValue": ".*",
            "current": { "text": ["All"], "value": ["$__all"] },
        })
    });
    [data_source].into_iter().chain(labels).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::{Path, PathBuf};

    use super::*;

    fn page(name: &str) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference").join(name)
    }

    /// Set `TWIXT_BLESS` to write the file anew.
    #[test]
    fn the_dashboard_is_the_one_in_the_documentation() {
        let path = page("grafana.json");
        let text = serde_json::to_string_pretty(&dashboard()).unwrap() + "\n";
        if std::env::var_os("TWIXT_BLESS").is_some() {
            std::fs::write(&path, &text).unwrap();
        }
        assert_eq!(std::fs::read_to_string(path).unwrap(), text);
    }

    #[test]
    fn panels_fit_the_grid_and_each_other() {
        let dashboard = dashboard();
        let mut ids = BTreeSet::new();
        let mut cells = BTreeSet::new();
        for panel in dashboard["panels"].as_array().unwrap() {
            assert!(ids.insert(panel["id"].as_u64().unwrap()), "ids are unique");
            let at = |name: &str| panel["gridPos"][name].as_u64().unwrap();
            assert!(at("x") + at("w") <= u64::from(GRID_COLUMNS));
            for (x, y) in (at("x")..at("x") + at("w"))
                .flat_map(|x| (at("y")..at("y") + at("h")).map(move |y| (x, y)))
            {
                assert!(cells.insert((x, y)), "panels overlap at {x}, {y}");
            }
            let targets = panel["targets"].as_array().unwrap();
            let references: BTreeSet<&str> =
                targets.iter().map(|target| target["refId"].as_str().unwrap()).collect();
            assert!(!targets.is_empty() && references.len() == targets.len());
        }
    }

    #[test]
    fn every_metric_is_one_that_a_collector_has() {
        let known = std::fs::read_to_string(page("metrics.md")).unwrap();
        let text = dashboard().to_string();
        let is_name = |char: char| char.is_ascii_alphanumeric() || char == '_';
        let names: BTreeSet<&str> = text
            .split(|char| !is_name(char))
            .filter(|word| word.starts_with("twixt_"))
            .map(|word| word.strip_suffix("_bucket").unwrap_or(word))
            .collect();
        assert!(names.len() > 10, "{names:?}");
        for name in names {
            assert!(known.contains(&format!("| `{name}`")), "{name} is not in metrics.md");
        }
    }
}
