//! The accuracy page, its plots, and the numbers behind them.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use anyhow::Context;
use twixt_evaluate::Size;

use super::Evaluated;
use super::report::{Document, shown_like};
use crate::plot;

/// Writes page, plots and numbers.
pub(super) fn write(
    folder: &Path,
    size: Size,
    seeds: Option<u64>,
    evaluated: &[Evaluated],
) -> anyhow::Result<()> {
    let stem = stem(size);
    let plots = folder.join(stem);
    fs::create_dir_all(&plots)
        .with_context(|| format!("cannot create directory {}", plots.display()))?;
    for figure in evaluated.iter().flat_map(|run| (run.experiment.figures)(&run.summary)) {
        put(&plots.join(format!("{}.svg", figure.name)), plot::svg(&figure).as_bytes())?;
        put(&plots.join(format!("{}.png", figure.name)), &plot::png(&figure)?)?;
    }
    put(&folder.join(format!("{stem}.md")), page(size, seeds, evaluated).as_bytes())?;
    let numbers = serde_json::to_string_pretty(&Document::of(evaluated))? + "\n";
    put(&folder.join(format!("{stem}.json")), numbers.as_bytes())
}

/// Name of the page, without its ending, and of the folder of its plots.
const fn stem(size: Size) -> &'static str {
    match size {
        Size::Quick => "accuracy-quick",
        Size::Full => "accuracy",
    }
}

fn put(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    fs::write(path, bytes).with_context(|| format!("cannot write {}", path.display()))
}

fn page(size: Size, seeds: Option<u64>, evaluated: &[Evaluated]) -> String {
    let mut page = String::from(match size {
        Size::Quick => {
            "# Accuracy, quick version\n\nThe experiments of [the accuracy page](accuracy.md) \
             with less traffic and fewer seeds, as continuous integration runs them."
        }
        Size::Full => {
            "# Accuracy\n\nThe experiments of the papers, rerun with our implementations: the \
             published result, ours, and the reason where they differ."
        }
    });
    page += " Written by `twixt evaluate`; do not edit. Numbers are means over seeds ± their \
         standard deviation; errors are relative (0.01 is 1 %) unless the claim or a % sign says otherwise.\n";
    let mut section = "";
    for run in evaluated {
        if run.experiment.algorithm != section {
            section = run.experiment.algorithm;
            page += &format!("\n## {section}\n");
        }
        experiment(&mut page, size, seeds, run);
    }
    page
}

fn experiment(page: &mut String, size: Size, seeds: Option<u64>, run: &Evaluated) {
    let experiment = run.experiment;
    let mut line = |text: String| writeln!(page, "{text}").expect("strings take everything");
    line(format!("\n### {}\n", experiment.name));
    line(format!("{}. {}\n", experiment.paper, experiment.about));
    line("| claim | published | measured | verdict | |\n|---|---|---|---|---|".to_owned());
    for judged in experiment.judge(&run.summary) {
        let claim = judged.claim;
        let measured = shown_like(judged.measured, claim.published);
        line(format!(
            "| {} | {} | {measured} | {} | {} |",
            claim.claim,
            claim.published,
            judged.verdict.name(),
            claim.note
        ));
    }
    // Those of a quick run are beside the page, and not in it: the page is a table to compare.
    if size == Size::Full {
        for figure in (experiment.figures)(&run.summary) {
            line(format!("\n![{}]({}/{}.svg)", figure.title, stem(size), figure.name));
        }
    }
    let quick = if size == Size::Quick { " --quick" } else { "" };
    let asked = seeds.map(|seeds| format!(" --seeds {seeds}")).unwrap_or_default();
    let scatter = scatter(run);
    line(format!(
        "\n`twixt evaluate {}{quick}{asked}`, seeds 1 to {}.{scatter}",
        experiment.name, run.seeds
    ));
}

/// Verdicts that might be others with other seeds.
fn scatter(run: &Evaluated) -> String {
    const SURE: f64 = 2.0;
    if run.seeds == 1 {
        return " One seed does not show how far others scatter.".to_owned();
    }
    let judged = run.experiment.judge(&run.summary);
    let unsure: Vec<&str> = judged
        .iter()
        .filter(|judged| judged.standard_errors_to_bound().is_some_and(|errors| errors < SURE))
        .map(|judged| judged.claim.claim)
        .collect();
    match unsure.is_empty() {
        true => " Every verdict is two standard errors or more from its bound.".to_owned(),
        false => format!(
            " Less than two standard errors from their bounds, so that other seeds may judge otherwise: {}.",
            unsure.join("; ")
        ),
    }
}
