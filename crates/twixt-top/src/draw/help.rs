//! What keys do, and what marks mean.

use ratatui::text::Line;

use crate::state::View;

const KEYS: &[(&str, &str)] = &[
    ("↑ ↓  j k", "one line"),
    ("PgUp PgDn", "ten lines; Home, End: first and last"),
    ("s  o", "sort by the next column; the other way round"),
    ("/", "filter: lines with this text in their names (points,"),
    ("", "classes, flows); Enter keeps it, Esc ends it"),
];
const OF_COLLECTOR: &[(&str, &str)] =
    &[("Enter  Esc", "flows of the selected line, and back"), ("r", "ask again now")];
const OF_POINT: &[(&str, &str)] = &[("Tab", "the other table")];
const COMMON: &[(&str, &str)] = &[("q  Ctrl-C", "quit"), ("", "")];
const MARKS: &[(&str, &str)] = &[
    ("±", "95 % interval of the mean"),
    ("dim", "weak: fewer than 100 packets, or half an interval"),
    ("", "of more than a quarter of the value"),
    ("–", "unknown; below the table stands why"),
];

/// The help of a view.
pub(super) fn lines(view: &View) -> Vec<Line<'static>> {
    let own = match view {
        View::Segments | View::Flows(_) => OF_COLLECTOR,
        View::Point { .. } => OF_POINT,
    };
    let rows = [KEYS, own, COMMON, MARKS].into_iter().flatten();
    rows.map(|(key, meaning)| Line::from(format!("{key:<12}{meaning}"))).collect()
}
