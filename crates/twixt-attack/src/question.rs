//! What the product is asked: every algorithm that `delay` has, for all traffic and, where it distinguishes
//! them, for flows. Estimators are what flows are estimated with: each is asked for flows, and the default for
//! all traffic too.

use twixt_synopsis::{ALGORITHMS, Algorithm, Purpose};

use crate::grid::GridCell;

/// One way to ask `twixt delay`.
#[derive(Clone, Debug)]
pub struct DelayQuestion {
    /// The name of the algorithm.
    pub algorithm: &'static str,
    /// Its estimator, if it has several.
    pub estimator: Option<&'static str>,
    /// Whether flows are asked for, or all traffic.
    pub by_flow: bool,
    /// Whether this is the default estimator, beside which there are others to compare it with.
    pub is_default: bool,
    /// What its memory is by default; `None` if it cannot be sized.
    memory_bytes: Option<u64>,
}

/// Every question there is, for one algorithm or for all.
#[must_use]
pub fn delay_questions(algorithm: Option<&str>) -> Vec<DelayQuestion> {
    let chosen = ALGORITHMS.iter().filter(|entry| entry.purpose == Purpose::Delay);
    let chosen = chosen.filter(|entry| algorithm.is_none_or(|name| entry.name == name));
    chosen.flat_map(of_algorithm).collect()
}

fn of_algorithm(entry: &'static Algorithm) -> Vec<DelayQuestion> {
    let mut estimators: Vec<Option<&'static str>> = entry.sound_estimators().map(Some).collect();
    if estimators.is_empty() {
        estimators.push(None);
    }
    let default = DelayQuestion {
        algorithm: entry.name,
        estimator: estimators[0],
        by_flow: false,
        is_default: false,
        memory_bytes: default_bytes(entry),
    };
    let several = estimators.len() > 1;
    let by_flow = estimators.iter().enumerate().map(|(index, &estimator)| DelayQuestion {
        estimator,
        by_flow: true,
        is_default: several && index == 0,
        ..default
    });
    let by_flow = by_flow.filter(|_| entry.per_flow);
    std::iter::once(default.clone()).chain(by_flow).collect()
}

fn default_bytes(entry: &Algorithm) -> Option<u64> {
    let empty = (entry.start)(&toml::Table::new()).expect("defaults are a configuration");
    let bytes = empty.state_bytes();
    (entry.sized)(bytes).map(|_| bytes)
}

impl DelayQuestion {
    /// How it is named in tables, such as `lds/joint by flow`.
    #[must_use]
    pub fn name(&self) -> String {
        let Self { algorithm, estimator, by_flow, .. } = self;
        let scope = if *by_flow { "flow" } else { "all" };
        match estimator {
            Some(estimator) => format!("{algorithm}/{estimator} by {scope}"),
            None => format!("{algorithm} by {scope}"),
        }
    }

    /// What the command line has after the two files.
    pub(crate) fn options(&self, cell: GridCell) -> Vec<String> {
        let mut options = vec![format!("--algorithm={}", self.algorithm)];
        options.extend(self.estimator.map(|name| format!("--estimator={name}")));
        options.push(format!("--by={}", if self.by_flow { "flow" } else { "all" }));
        if let (Some(bytes), Some(times)) = (self.memory_bytes, cell.memory()) {
            options.push(format!("--memory={}", (bytes as f64 * times) as u64));
        }
        options
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_delay_algorithm_is_asked() {
        let questions = delay_questions(None);
        for entry in ALGORITHMS.iter().filter(|entry| entry.purpose == Purpose::Delay) {
            let of = questions.iter().filter(|question| question.algorithm == entry.name);
            let by_flow = if entry.per_flow { entry.sound_estimators().count().max(1) } else { 0 };
            assert_eq!(of.count(), 1 + by_flow, "{}", entry.name);
        }
    }

    #[test]
    fn memory_is_a_multiple_of_the_default() {
        let cell = GridCell::named(["1", "equal", "quarter", "queue", "none", "none"]);
        let options = delay_questions(Some("lds"))[0].options(cell).join(" ");
        assert!(options.starts_with("--algorithm=lds --estimator=joint --by=all --memory="));
        let exact = delay_questions(Some("exact"))[1].options(cell);
        assert_eq!(exact, ["--algorithm=exact", "--by=flow"]);
    }
}
