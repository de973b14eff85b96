//! What is known to be red today, and why. The only list of it.
//!
//! The gate fails if anything else becomes red, and also if a class in this list is green: a change that mends
//! an estimator deletes its rows here.

use crate::grid::{FACTORS, GridCell};
use crate::verdict::FaultKind;

/// A class of answers that are known to be wrong.
#[derive(Debug)]
pub struct KnownRed {
    /// The name of the question.
    pub question: &'static str,
    /// What is wrong.
    pub kind: FaultKind,
    /// Levels with which it is wrong, such as `repeats 50%`: a cell that has one of them may be red.
    /// None: any cell.
    pub levels: &'static [&'static str],
    /// Why it is wrong.
    pub reason: &'static str,
}

/// All of them.
pub const KNOWN_RED: &[KnownRed] = &[];

/// The first entry for this question and kind of fault.
#[must_use]
pub fn known_red(question: &str, kind: FaultKind) -> Option<&'static KnownRed> {
    KNOWN_RED.iter().find(|known| known.question == question && known.kind == kind)
}

impl KnownRed {
    /// Whether it explains this fault in this cell.
    #[must_use]
    pub fn explains(&self, question: &str, kind: FaultKind, cell: GridCell) -> bool {
        let is_here = |level: &&str| has_level(cell, level);
        self.question == question
            && self.kind == kind
            && (self.levels.is_empty() || self.levels.iter().any(is_here))
    }
}

fn has_level(cell: GridCell, name: &str) -> bool {
    let levels = FACTORS.iter().zip(cell.levels);
    levels
        .into_iter()
        .any(|(factor, level)| name.split_once(' ') == Some((factor.name, factor.levels[level])))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::question::{DelayQuestion, delay_questions};

    #[test]
    fn known_classes_name_questions_and_levels_that_exist() {
        let questions: Vec<String> =
            delay_questions(None).iter().map(DelayQuestion::name).collect();
        let levels: Vec<String> = FACTORS
            .iter()
            .flat_map(|factor| factor.levels.iter().map(|level| format!("{} {level}", factor.name)))
            .collect();
        for known in KNOWN_RED {
            assert!(questions.iter().any(|name| name == known.question), "{known:?}");
            assert!(
                known.levels.iter().all(|&level| levels.iter().any(|name| name == level)),
                "{known:?}"
            );
        }
    }

    #[test]
    fn a_class_explains_cells_with_its_levels() {
        let levels = &["repeats 10%", "repeats 50%"];
        let known =
            KnownRed { question: "exact by all", kind: FaultKind::Certain, levels, reason: "" };
        let explains = |repeats| {
            let cell = GridCell::named(["1", "equal", "default", "queue", "none", repeats]);
            known.explains("exact by all", FaultKind::Certain, cell)
        };
        assert!(explains("50%") && explains("10%") && !explains("none"));
    }
}
