//! What a campaign found, as tables.

use std::collections::BTreeMap;

use crate::campaign::CampaignOutcomes;
use crate::grid::{FACTORS, GridCell};
use crate::known::known_red;
use crate::outcome::median;
use crate::question::DelayQuestion;
use crate::verdict::{CellVerdict, Colour, FaultKind};

/// The page without its tables.
const TEXT: &str = include_str!("report/page.md");
/// Reasons that are shown for each question.
const REASONS_SHOWN: usize = 3;

/// The verdicts of a campaign.
#[derive(Debug)]
pub struct AttackReport<'a> {
    cells: &'a [GridCell],
    questions: &'a [DelayQuestion],
    outcomes: &'a CampaignOutcomes,
    /// By question, then by cell.
    verdicts: Vec<BTreeMap<usize, CellVerdict>>,
}

/// A kind of fault of one question, with the cells that have it.
#[derive(Debug)]
pub struct RedClass {
    /// The name of the question.
    pub question: String,
    /// What is wrong.
    pub kind: FaultKind,
    /// The numbers of the cells, with the figures of each.
    pub cells: Vec<(usize, String)>,
}

impl<'a> AttackReport<'a> {
    /// Judges all outcomes.
    #[must_use]
    pub fn new(
        cells: &'a [GridCell],
        questions: &'a [DelayQuestion],
        outcomes: &'a CampaignOutcomes,
    ) -> Self {
        let of_question = |question| {
            let verdict = |cell| (cell, outcomes.verdict(cell, question));
            outcomes.cells().into_iter().map(verdict).collect()
        };
        let verdicts = (0..questions.len()).map(of_question).collect();
        Self { cells, questions, outcomes, verdicts }
    }

    /// The page on robustness.
    #[must_use]
    pub fn page(&self) -> String {
        let factors: String = (0..FACTORS.len()).map(|factor| self.factor_table(factor)).collect();
        let cells = self.outcomes.cells().len();
        TEXT.replace("{cells}", &cells.to_string())
            .replace("{design}", &self.cells.len().to_string())
            .replace("{seeds}", &(self.outcomes.seeds() / cells.max(1)).to_string())
            .replace("{questions}", &self.question_table())
            .replace("{factors}", &factors)
            .replace("{reasons}", &self.reason_table())
            .replace("{red}", &self.red_table())
    }

    /// A table with a row for each question.
    #[must_use]
    pub fn question_table(&self) -> String {
        let mut table = String::from(
            "| question | red cells, intervals that hold | green | unknown | median error | half width | no interval | error of loss |\n\
             |---|---|---|---|---|---|---|---|\n",
        );
        for (index, question) in self.questions.iter().enumerate() {
            let verdicts = &self.verdicts[index];
            let count = |colour| verdicts.values().filter(|one| one.colour() == colour).count();
            let all = |of: fn(&CellVerdict) -> Option<f64>| -> Vec<f64> {
                verdicts.values().filter_map(of).collect()
            };
            table += &format!(
                "| {} | {} | {} | {} | {} | {} | {} | {} |\n",
                question.name(),
                self.entry(index, |_| true),
                count(Colour::Green),
                count(Colour::Unknown),
                percent(median(all(|one| one.error))),
                percent(median(all(|one| one.width))),
                percent(mean(&all(|one| Some(one.unknown)))),
                percent(mean(&all(|one| one.loss_error))),
            );
        }
        table
    }

    /// The faults that were found, by question and kind.
    #[must_use]
    pub fn red_classes(&self) -> Vec<RedClass> {
        let mut classes: BTreeMap<(usize, FaultKind), Vec<(usize, String)>> = BTreeMap::new();
        for (question, verdicts) in self.verdicts.iter().enumerate() {
            for (&cell, verdict) in verdicts {
                for fault in &verdict.faults {
                    let class = classes.entry((question, fault.kind)).or_default();
                    class.push((cell, fault.figures.clone()));
                }
            }
        }
        let class = |((question, kind), cells): ((usize, FaultKind), _)| RedClass {
            question: self.questions[question].name(),
            kind,
            cells,
        };
        classes.into_iter().map(class).collect()
    }

    /// What is wrong in one cell, with examples.
    #[must_use]
    pub fn cell(&self, cell: usize) -> String {
        let mut text = format!("cell {cell}: {}\n", self.cells[cell]);
        for (index, question) in self.questions.iter().enumerate() {
            let verdict = &self.verdicts[index][&cell];
            text += &format!(
                "{:22} {:7} intervals hold {}, error {}, half width {}, no interval {}, loss off {}\n",
                question.name(),
                verdict.colour(),
                percent(verdict.coverage),
                percent(verdict.error),
                percent(verdict.width),
                percent(Some(verdict.unknown)),
                percent(verdict.loss_error)
            );
            for fault in &verdict.faults {
                text += &format!("  {}: {}\n", fault.kind.name(), fault.figures);
            }
            let outcomes = self.outcomes.of(cell, index);
            for example in outcomes.iter().flat_map(|outcome| outcome.examples.iter().take(2)) {
                text += &format!("    {example}\n");
            }
        }
        text
    }

    /// For each level of a factor: red cells of all, and the share of intervals that hold.
    fn factor_table(&self, factor: usize) -> String {
        let levels = FACTORS[factor].levels;
        let mut table = format!("\n### By {}\n\n| question |", FACTORS[factor].name);
        levels.iter().for_each(|level| table += &format!(" {level} |"));
        table += &format!("\n|---|{}\n", "---|".repeat(levels.len()));
        for (index, question) in self.questions.iter().enumerate() {
            table += &format!("| {} |", question.name());
            for level in 0..levels.len() {
                let is_here = |&cell: &usize| self.cells[cell].levels[factor] == level;
                table += &format!(" {} |", self.entry(index, is_here));
            }
            table.push('\n');
        }
        table
    }

    /// Red cells of those that are selected, and the share of intervals that hold; bold if the cells together
    /// are red.
    fn entry(&self, question: usize, selects: impl Fn(&usize) -> bool) -> String {
        let chosen: Vec<usize> = self.outcomes.cells().into_iter().filter(selects).collect();
        let verdicts = || chosen.iter().map(|cell| &self.verdicts[question][cell]);
        let red = verdicts().filter(|verdict| verdict.colour() == Colour::Red).count();
        let coverages: Vec<f64> = verdicts().filter_map(|verdict| verdict.coverage).collect();
        let text = match mean(&coverages) {
            Some(coverage) => format!("{red}/{}, {:.0} %", chosen.len(), 100.0 * coverage),
            None => format!("{red}/{}", chosen.len()),
        };
        let together: Vec<_> =
            chosen.iter().flat_map(|&cell| self.outcomes.of(cell, question)).collect();
        match CellVerdict::of(&together).colour() {
            Colour::Red => format!("**{text}**"),
            Colour::Green | Colour::Unknown => text,
        }
    }

    fn reason_table(&self) -> String {
        let mut table = String::from("| question | reason | answers |\n|---|---|---|\n");
        for (index, question) in self.questions.iter().enumerate() {
            let mut reasons: BTreeMap<&str, u64> = BTreeMap::new();
            for cell in self.outcomes.cells() {
                for (reason, count) in
                    self.outcomes.of(cell, index).into_iter().flat_map(|one| &one.reasons)
                {
                    *reasons.entry(reason).or_default() += count;
                }
            }
            let mut reasons: Vec<_> = reasons.into_iter().collect();
            reasons.sort_by_key(|&(_, count)| std::cmp::Reverse(count));
            for (reason, count) in reasons.into_iter().take(REASONS_SHOWN) {
                table += &format!("| {} | {reason} | {count} |\n", question.name());
            }
        }
        table
    }

    fn red_table(&self) -> String {
        let mut table = String::from(
            "| question | fault | why | cells | repeat the first with |\n|---|---|---|---|---|\n",
        );
        for RedClass { question, kind, cells } in self.red_classes() {
            let why = known_red(&question, kind).map_or("not examined yet", |known| known.reason);
            let numbers: Vec<String> = cells.iter().map(|(cell, _)| cell.to_string()).collect();
            let algorithm = question.split(['/', ' ']).next().unwrap_or_default();
            let first = cells[0].0;
            table += &format!(
                "| {question} | {} | {why} | {}: {} | `cargo xtask attack --cell {first} --algorithm {algorithm}` |\n",
                kind.name(),
                cells.len(),
                numbers.join(", ")
            );
        }
        table
    }
}

fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

fn percent(share: Option<f64>) -> String {
    share.map_or("–".to_owned(), |share| format!("{:.1} %", 100.0 * share))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::{AnswerOutcome, HeldClaims};
    use crate::question::delay_questions;

    #[test]
    fn the_page_shows_what_is_red_and_how_to_repeat_it() {
        let wrong = AnswerOutcome {
            asked: 1,
            intervals: HeldClaims { all: 1, held: 0 },
            ..AnswerOutcome::default()
        };
        let outcomes = CampaignOutcomes::of_seeds(vec![wrong; 5]);
        let cells = [GridCell::named(["1", "equal", "default", "queue", "none", "none"])];
        let questions = delay_questions(Some("lda"));
        let page = AttackReport::new(&cells, &questions, &outcomes).page();
        for part in [
            "1 of the 1 cells of the design, 5 seeds each",
            "| lda/centred by all | **1/1, 0 %** | 0 | 0 |",
            "`cargo xtask attack --cell 0 --algorithm lda`",
        ] {
            assert!(page.contains(part), "{part} is not in:\n{page}");
        }
        assert!(!page.contains('{'), "{page}");
    }
}
