//! What was claimed and what came out, for people and for programs.

use serde::Serialize;
use twixt_evaluate::{EXPERIMENTS, Experiment, Judged, Value, Verdict};

use super::Evaluated;
use crate::output::Table;

/// `twixt evaluate -F json`.
#[derive(Serialize)]
pub(super) struct Document {
    pub(super) experiments: Vec<ExperimentDocument>,
}

#[derive(Serialize)]
pub(super) struct ExperimentDocument {
    name: &'static str,
    paper: &'static str,
    seeds: u64,
    claims: Vec<ClaimDocument>,
}

#[derive(Clone, Serialize)]
struct ClaimDocument {
    claim: &'static str,
    published: &'static str,
    measured: Option<f64>,
    spread: Option<f64>,
    verdict: &'static str,
    note: &'static str,
}

/// One claim on a line.
#[derive(Serialize)]
pub(super) struct Row {
    name: &'static str,
    #[serde(flatten)]
    claim: ClaimDocument,
}

impl Document {
    pub(super) fn of(evaluated: &[Evaluated]) -> Self {
        let experiment = |run: &Evaluated| ExperimentDocument {
            name: run.experiment.name,
            paper: run.experiment.paper,
            seeds: run.seeds,
            claims: run.experiment.judge(&run.summary).iter().map(ClaimDocument::of).collect(),
        };
        Self { experiments: evaluated.iter().map(experiment).collect() }
    }

    pub(super) fn rows(&self) -> impl Iterator<Item = Row> + '_ {
        self.experiments.iter().flat_map(|experiment| {
            let name = experiment.name;
            experiment.claims.iter().map(move |claim| Row { name, claim: claim.clone() })
        })
    }
}

impl ClaimDocument {
    fn of(judged: &Judged) -> Self {
        Self {
            claim: judged.claim.claim,
            published: judged.claim.published,
            measured: judged.measured.map(|value| value.mean),
            spread: judged.measured.map(|value| value.spread),
            verdict: judged.verdict.name(),
            note: judged.claim.note,
        }
    }
}

/// The names of all experiments, each with its source and what it varies below.
pub(super) fn list() -> String {
    let entry = |experiment: &&Experiment| {
        let Experiment { name, paper, about, .. } = experiment;
        format!("{name}\n{}\n{}\n", wrapped(paper, "    "), wrapped(about, "        "))
    };
    EXPERIMENTS.iter().map(entry).collect()
}

/// Longest line of wrapped text.
const LINE_LETTERS_MAX: usize = 96;

/// Text in lines that terminals show whole, each behind an indent.
fn wrapped(text: &str, indent: &str) -> String {
    let mut lines = String::from(indent);
    let mut letters = indent.len();
    for (index, word) in text.split(' ').enumerate() {
        let length = word.chars().count() + 1;
        if index > 0 && letters + length > LINE_LETTERS_MAX {
            lines.push('\n');
            lines.push_str(indent);
            letters = indent.len();
        } else if index > 0 {
            lines.push(' ');
        }
        lines.push_str(word);
        letters += length;
    }
    lines
}

/// One table per experiment, and how many claims hold.
pub(super) fn text(evaluated: &[Evaluated]) -> String {
    let mut text = String::new();
    let mut counts = [0_usize; 3];
    for run in evaluated {
        let (experiment, seeds) = (run.experiment, run.seeds);
        text += &format!("{} ({}; seeds 1 to {seeds})\n", experiment.name, experiment.paper);
        let mut table = Table::new(&["claim", "published", "measured", "verdict"]);
        let mut notes = String::new();
        for judged in experiment.judge(&run.summary) {
            counts[judged.verdict as usize] += 1;
            table.row(vec![
                judged.claim.claim.to_owned(),
                judged.claim.published.to_owned(),
                shown_like(judged.measured, judged.claim.published),
                judged.verdict.name().to_owned(),
            ]);
            if judged.verdict != Verdict::Pass && !judged.claim.note.is_empty() {
                notes += &format!("  {}: {}\n", judged.claim.claim, judged.claim.note);
            }
        }
        text += &format!("{table}{notes}\n");
    }
    let [pass, differs, cannot] = counts;
    text + &format!("{pass} claims hold, {differs} differ, {cannot} cannot be rerun here\n")
}

/// What was measured, in per cent where the published result is a percentage, with the spread over
/// seeds where there are several.
pub(super) fn shown_like(measured: Option<Value>, published: &str) -> String {
    let Some(value) = measured else { return "–".to_owned() };
    let (shown, unit): (fn(f64) -> String, &str) = match is_percentage(published) {
        true => (|share| format!("{:.2}", 100.0 * share), " %"),
        false => (digits, ""),
    };
    match value.trials > 1 {
        true => format!("{} ± {}{unit}", shown(value.mean), shown(value.spread)),
        false => format!("{}{unit}", shown(value.mean)),
    }
}

/// Whether a published result is one percentage and words that bound it. A share of flows within a
/// share of error has two; what is told in a sentence is none.
fn is_percentage(published: &str) -> bool {
    const BOUNDS: [&str; 8] = ["almost", "and", "at", "e", "least", "less", "most", "to"];
    let mut words = published.split(|letter: char| !letter.is_alphabetic());
    let is_bound = |word: &str| word.is_empty() || BOUNDS.contains(&word);
    published.matches('%').count() == 1 && words.all(is_bound)
}

fn digits(number: f64) -> String {
    let magnitude = number.abs();
    match magnitude {
        0.0 => "0".to_owned(),
        1e6.. => format!("{number:.2e}"),
        1000.0.. => format!("{number:.0}"),
        100.0.. => format!("{number:.1}"),
        1.0.. => format!("{number:.2}"),
        0.001.. => format!("{number:.4}"),
        _ => format!("{number:.2e}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn like_is_compared_with_like() {
        let value = Value { mean: 0.0028, spread: 0.0001, trials: 1 };
        assert_eq!(shown_like(Some(value), "< 0.3 %"), "0.28 %");
        assert_eq!(shown_like(Some(value), "about 1"), "0.0028");
        for published in ["within 5 % for 95 % of flows", "stable from 1 % on (CHIC)", "–"] {
            assert_eq!(shown_like(Some(value), published), "0.0028");
        }
        assert_eq!(shown_like(Some(value), "0.4 % and less"), "0.28 %");
        assert_eq!(shown_like(Some(value), "e⁻³ = 5.0 %"), "0.28 %");
        let several = Value { trials: 5, ..value };
        assert_eq!(shown_like(Some(several), "< 0.3 %"), "0.28 ± 0.01 %");
        assert_eq!(shown_like(None, "11 %"), "–");
    }
}
