//! A dashboard for Grafana, of what a collector's `/metrics` say of segments.
//!
//! Plain JSON of Grafana's classic dashboard model: a variable for the data source, so that it can
//! be imported anywhere; variables for segments, classes and algorithms; and panels. Labels without
//! a value, such as the class where none is configured, are in no list of values: hence `allValue`.

/// The dashboard, as it is in the documentation.
pub(super) const DASHBOARD: &str = include_str!("../../../../../docs/reference/grafana.json");

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::{Path, PathBuf};

    use serde_json::Value;

    use super::*;

    /// Columns of Grafana's grid.
    const GRID_COLUMNS: u64 = 24;

    fn page(name: &str) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference").join(name)
    }

    fn dashboard() -> Value {
        serde_json::from_str(DASHBOARD).unwrap()
    }

    #[test]
    fn panels_fit_the_grid_and_each_other() {
        let dashboard = dashboard();
        let mut ids = BTreeSet::new();
        let mut cells = BTreeSet::new();
        for panel in dashboard["panels"].as_array().unwrap() {
            assert!(ids.insert(panel["id"].as_u64().unwrap()), "ids are unique");
            let at = |name: &str| panel["gridPos"][name].as_u64().unwrap();
            assert!(at("x") + at("w") <= GRID_COLUMNS);
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
        let is_name = |char: char| char.is_ascii_alphanumeric() || char == '_';
        let names: BTreeSet<&str> = DASHBOARD
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
