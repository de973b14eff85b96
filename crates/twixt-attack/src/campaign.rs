//! Many cells and seeds, on all processors; what was done is kept, so that a run can be continued.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::ops::Range;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use anyhow::{Context, ensure};
use serde::{Deserialize, Serialize};

use crate::attack::Attack;
use crate::grid::GridCell;
use crate::outcome::AnswerOutcome;
use crate::question::DelayQuestion;
use crate::verdict::CellVerdict;

/// Which cells, which seeds, and how.
#[derive(Debug)]
pub struct Campaign<'a> {
    /// What is asked of which program.
    pub attack: &'a Attack,
    /// The cells; the place of one is its number.
    pub cells: &'a [GridCell],
    /// The numbers of those that are run.
    pub chosen: Vec<usize>,
    /// The seeds of each.
    pub seeds: Range<u64>,
    /// How many programs run at a time.
    pub threads: usize,
}

/// What came of all cells and seeds.
#[derive(Debug, Default)]
pub struct CampaignOutcomes {
    seeds: BTreeMap<(usize, u64), Vec<AnswerOutcome>>,
}

/// A line of the file of outcomes.
#[derive(Serialize, Deserialize)]
struct SeedLine {
    cell: usize,
    levels: [usize; 6],
    seed: u64,
    /// By the name of the question.
    outcomes: Vec<(String, AnswerOutcome)>,
}

impl Campaign<'_> {
    /// Runs all that the file does not have yet, and appends it there. Without a file, runs everything.
    /// All cells of one seed come before the next seed: what is interrupted has all cells.
    ///
    /// # Errors
    ///
    /// If the file is of other cells or questions, or the program cannot be run.
    pub fn run(&self, kept: Option<&Path>) -> anyhow::Result<CampaignOutcomes> {
        let mut outcomes = kept.map_or(Ok(CampaignOutcomes::default()), |path| self.read(path))?;
        let all =
            self.seeds.clone().flat_map(|seed| self.chosen.iter().map(move |&cell| (cell, seed)));
        let jobs: Vec<(usize, u64)> = all.filter(|job| !outcomes.seeds.contains_key(job)).collect();
        let file = kept.map(|path| OpenOptions::new().create(true).append(true).open(path));
        let file = Mutex::new(file.transpose().context("the file of outcomes")?);
        let (next, done) = (AtomicUsize::new(0), Mutex::new(&mut outcomes.seeds));
        let work = || -> anyhow::Result<()> {
            while let Some(&(cell, seed)) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
                let outcomes = self.attack.run(self.cells[cell], seed)?;
                if let Some(file) = file.lock().expect("no thread panicked").as_mut() {
                    writeln!(file, "{}", self.line(cell, seed, &outcomes)?)?;
                }
                done.lock().expect("no thread panicked").insert((cell, seed), outcomes);
            }
            Ok(())
        };
        thread::scope(|scope| {
            let threads: Vec<_> = (0..self.threads.max(1)).map(|_| scope.spawn(work)).collect();
            threads.into_iter().try_for_each(|thread| thread.join().expect("no thread panicked"))
        })?;
        Ok(outcomes)
    }

    fn line(&self, cell: usize, seed: u64, outcomes: &[AnswerOutcome]) -> anyhow::Result<String> {
        let names = self.attack.questions.iter().map(DelayQuestion::name);
        let outcomes = names.zip(outcomes.iter().cloned()).collect();
        let line = SeedLine { cell, levels: self.cells[cell].levels, seed, outcomes };
        Ok(serde_json::to_string(&line)?)
    }

    fn read(&self, path: &Path) -> anyhow::Result<CampaignOutcomes> {
        let Ok(file) = File::open(path) else { return Ok(CampaignOutcomes::default()) };
        let names: Vec<String> = self.attack.questions.iter().map(DelayQuestion::name).collect();
        let mut seeds = BTreeMap::new();
        for line in BufReader::new(file).lines() {
            // A run that was killed may leave half of its last line.
            let Ok(SeedLine { cell, levels, seed, outcomes }) = serde_json::from_str(&line?) else {
                continue;
            };
            let same_cell = self.cells.get(cell).is_some_and(|known| known.levels == levels);
            let same_names = outcomes.iter().map(|(name, _)| name).eq(&names);
            ensure!(same_cell && same_names, "{} is of other cells or questions", path.display());
            if self.chosen.contains(&cell) && self.seeds.contains(&seed) {
                seeds.insert(
                    (cell, seed),
                    outcomes.into_iter().map(|(_, outcome)| outcome).collect(),
                );
            }
        }
        Ok(CampaignOutcomes { seeds })
    }
}

impl CampaignOutcomes {
    /// The numbers of the cells.
    #[must_use]
    pub fn cells(&self) -> BTreeSet<usize> {
        self.seeds.keys().map(|&(cell, _)| cell).collect()
    }

    /// How many seeds were run, of all cells together.
    #[must_use]
    pub fn seeds(&self) -> usize {
        self.seeds.len()
    }

    /// Outcomes of a question, given by its place, in a cell: one for each seed.
    #[must_use]
    pub fn of(&self, cell: usize, question: usize) -> Vec<&AnswerOutcome> {
        self.seeds.range((cell, 0)..=(cell, u64::MAX)).map(|(_, all)| &all[question]).collect()
    }

    /// What they amount to.
    #[must_use]
    pub fn verdict(&self, cell: usize, question: usize) -> CellVerdict {
        CellVerdict::of(&self.of(cell, question))
    }
}

#[cfg(test)]
impl CampaignOutcomes {
    /// Outcomes of one question in cell 0, by seed.
    pub(crate) fn of_seeds(outcomes: impl IntoIterator<Item = AnswerOutcome>) -> Self {
        let seeds = (0..).zip(outcomes).map(|(seed, outcome)| ((0, seed), vec![outcome]));
        Self { seeds: seeds.collect() }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::question::delay_questions;

    /// The program is not there: what is not in the file cannot be run.
    #[test]
    fn what_the_file_has_is_not_run_again() {
        let attack =
            Attack { program: "no/such/twixt".into(), questions: delay_questions(Some("lda")) };
        let cells = [GridCell::named(["1", "equal", "default", "queue", "none", "none"])];
        let campaign =
            Campaign { attack: &attack, cells: &cells, chosen: vec![0], seeds: 0..2, threads: 2 };
        assert!(campaign.run(None).is_err());
        let line = |seed| campaign.line(0, seed, &[AnswerOutcome::default()]).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("outcomes");
        fs::write(&file, format!("{}\n{}\n", line(0), line(1))).unwrap();
        assert_eq!(campaign.run(Some(&file)).unwrap().seeds(), 2);
        // The last line was cut when a run was killed.
        fs::write(&file, format!("{}\n{}", line(0), &line(1)[..40])).unwrap();
        assert!(campaign.run(Some(&file)).is_err());
    }
}
