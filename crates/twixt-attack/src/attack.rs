//! One seed of a cell: its traffic is written, the product is asked, and its answers are judged.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufWriter;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use anyhow::Context;

use crate::capture_file;
use crate::frame::Point;
use crate::grid::GridCell;
use crate::outcome::{AnswerOutcome, Errors, RivalErrors, judge, median};
use crate::product::{Answer, Captures, ask};
use crate::question::DelayQuestion;
use crate::traffic::Traffic;
use crate::truth::Truth;

/// Asks one program these questions.
#[derive(Clone, Debug)]
pub struct Attack {
    /// The program `twixt`.
    pub program: PathBuf,
    /// What it is asked.
    pub questions: Vec<DelayQuestion>,
}

impl Attack {
    /// Attacks with the traffic of a cell and a seed: an outcome for each question.
    ///
    /// # Errors
    ///
    /// If files cannot be written, or the program cannot be started.
    pub fn run(&self, cell: GridCell, seed: u64) -> anyhow::Result<Vec<AnswerOutcome>> {
        let traffic = Traffic::draw(cell, seed);
        let folder = tempfile::tempdir().context("no folder for captures")?;
        let captures = write_captures(&traffic, folder.path())?;
        let mut truths: BTreeMap<(i64, i64), Truth> = BTreeMap::new();
        let mut judged = Vec::new();
        for question in &self.questions {
            let answer = ask(self.program.as_os_str(), &captures, &question.options(cell))?;
            let time_ns = time_of(&answer);
            let key = (*time_ns.start(), *time_ns.end());
            let truth = truths.entry(key).or_insert_with(|| Truth::within(&traffic, &time_ns));
            judged.push(judge(question, &answer, truth));
        }
        self.compare_estimators(&mut judged);
        Ok(judged.into_iter().map(|(outcome, _)| outcome).collect())
    }

    /// Compares each default estimator with the others of its algorithm.
    fn compare_estimators(&self, judged: &mut [(AnswerOutcome, Errors)]) {
        for (index, default) in self.questions.iter().enumerate().filter(|(_, one)| one.is_default)
        {
            let is_rival = |other: &DelayQuestion| {
                !other.is_default
                    && (other.algorithm, other.by_flow) == (default.algorithm, default.by_flow)
            };
            let rivals = (0..judged.len()).filter(|&other| is_rival(&self.questions[other]));
            let errors = rivals.filter_map(|other| compare(&judged[index].1, &judged[other].1));
            judged[index].0.rival = errors.min_by(|one, two| one.other.total_cmp(&two.other));
        }
    }
}

/// Writes what both points see of a cell and a seed into a folder: `upstream.pcap`, `downstream.pcap`.
///
/// # Errors
///
/// If they cannot be written.
pub fn write_cell(cell: GridCell, seed: u64, folder: &Path) -> anyhow::Result<()> {
    write_captures(&Traffic::draw(cell, seed), folder).map(drop)
}

fn write_captures(traffic: &Traffic, folder: &Path) -> anyhow::Result<Captures> {
    let captures = Captures {
        upstream: folder.join("upstream.pcap"),
        downstream: folder.join("downstream.pcap"),
    };
    for (point, path) in
        [(Point::Upstream, &captures.upstream), (Point::Downstream, &captures.downstream)]
    {
        let file = File::create(path).with_context(|| path.display().to_string())?;
        let mut out = BufWriter::new(file);
        capture_file::write(traffic, point, &mut out)?;
        out.into_inner().with_context(|| path.display().to_string())?;
    }
    Ok(captures)
}

fn time_of(answer: &Answer) -> RangeInclusive<i64> {
    match answer {
        Answer::Document(document) => document.time_ns(),
        Answer::Unknown(_) | Answer::Failed(_) => i64::MIN..=i64::MAX,
    }
}

/// Median errors for the scopes that both answer.
fn compare(own: &Errors, other: &Errors) -> Option<RivalErrors> {
    let both: Vec<(f64, f64)> =
        own.iter().filter_map(|(scope, &error)| Some((error, *other.get(scope)?))).collect();
    let own = median(both.iter().map(|errors| errors.0).collect())?;
    Some(RivalErrors { own, other: median(both.iter().map(|errors| errors.1).collect())? })
}
