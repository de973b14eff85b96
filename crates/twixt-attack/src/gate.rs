//! A few fixed cells that every change is tested with.

use crate::attack::Attack;
use crate::campaign::Campaign;
use crate::grid::GridCell;
use crate::known::{KNOWN_RED, KnownRed};
use crate::report::AttackReport;

/// Seeds of each cell of the gate.
pub const GATE_SEEDS: u64 = 5;

/// Cells that hold, or that show what [`KNOWN_RED`] lists. With `GATE_SEEDS` they take less than two
/// minutes on two cores.
const CELLS: [[&str; 6]; 9] = [
    ["100", "equal", "default", "exponential", "none", "none"],
    ["1000", "pareto", "default", "bimodal", "2%", "none"],
    ["10", "elephant", "quarter", "queue", "gilbert", "none"],
    ["400", "equal", "quarter", "broken", "none", "none"],
    ["30", "pareto", "fourfold", "pareto", "30%", "none"],
    ["250", "pareto", "default", "route", "one-flow", "none"],
    ["100", "pareto", "default", "route", "2%", "50%"],
    ["1", "equal", "default", "exponential", "one-flow", "none"],
    ["3", "equal", "fourfold", "queue", "30%", "10%"],
];

/// The cells of the gate.
#[must_use]
pub fn gate_cells() -> Vec<GridCell> {
    CELLS.into_iter().map(GridCell::named).collect()
}

/// Attacks with the cells of the gate: what is red and not known, and what is known and not red.
///
/// # Errors
///
/// If the program cannot be run.
pub fn gate(attack: &Attack, threads: usize) -> anyhow::Result<Vec<String>> {
    let cells = gate_cells();
    let chosen = (0..cells.len()).collect();
    let campaign = Campaign { attack, cells: &cells, chosen, seeds: 0..GATE_SEEDS, threads };
    let outcomes = campaign.run(None)?;
    let report = AttackReport::new(&cells, &attack.questions, &outcomes);
    let mut seen = vec![false; KNOWN_RED.len()];
    let mut problems = Vec::new();
    for class in report.red_classes() {
        for (cell, figures) in &class.cells {
            let explains =
                |known: &KnownRed| known.explains(&class.question, class.kind, cells[*cell]);
            match KNOWN_RED.iter().position(explains) {
                Some(known) => seen[known] = true,
                None => problems.push(format!(
                    "red: {}, {}: {figures} ({})",
                    class.question,
                    class.kind.name(),
                    cells[*cell]
                )),
            }
        }
    }
    let asked = |known: &&KnownRed| attack.questions.iter().any(|one| one.name() == known.question);
    let green = KNOWN_RED.iter().zip(seen).filter(|(known, seen)| !seen && asked(known));
    problems.extend(green.map(|(known, _)| {
        let KnownRed { question, kind, reason, .. } = known;
        format!("green, but listed as known: {question}, {} ({reason})", kind.name())
    }));
    Ok(problems)
}
