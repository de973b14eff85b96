//! One point: round trips by kind, and the largest flows.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::Style;
use ratatui::text::Line;

use super::lines::{Side, TableLine, head, sorted_head};
use super::{draw_lines, first_shown};
use crate::columns::Column;
use crate::figure;
use crate::news::{KindLine, PointLine};
use crate::plain::plain;
use crate::state::{Table, TopState, View};

/// Columns of round trips, after the kind.
const OF_KINDS: [(Column, &str, usize); 5] = [
    (Column::Packets, "measured", 8),
    (Column::Mean, "mean ± 95 %", 18),
    (Column::P50, "p50", 7),
    (Column::P95, "p95", 7),
    (Column::P99, "p99", 7),
];
/// Columns of flows, after the name.
const OF_POINT: [(&str, usize); 3] = [("packets", 8), ("certain", 8), ("bytes", 8)];

pub(super) fn draw_point(frame: &mut Frame<'_>, state: &TopState, area: Rect) {
    let has_flows = state.view == View::Point { has_flows: true };
    // The kinds have what they need, up to half.
    let kinds = (state.kinds.len() as u16).saturating_add(2).min(area.height / 2);
    let [counts, upper, lower] =
        Layout::vertical([Constraint::Length(1), Constraint::Length(kinds), Constraint::Min(0)])
            .areas(area);
    draw_lines(frame, counts, vec![counts_line(state, area.width)]);
    draw_lines(frame, upper, kind_lines(state, upper, !has_flows));
    draw_lines(frame, lower, flow_lines(state, lower, has_flows));
}

fn counts_line(state: &TopState, width: u16) -> Line<'static> {
    let point = &state.point;
    let mut text = format!("{} packets", figure::amount(point.packets));
    if point.skipped > 0 {
        text += &format!(" · {} skipped", figure::amount(point.skipped));
    }
    if let Some(dropped @ 1..) = point.dropped {
        text += &format!(" · {} dropped by the kernel", figure::amount(dropped));
    }
    if let Some(ended) = &point.ended {
        text += &format!(" · {ended}");
    }
    Line::from(plain(&text, usize::from(width)))
}

fn kind_lines(state: &TopState, area: Rect, has_keys: bool) -> Vec<Line<'static>> {
    let others: usize = OF_KINDS.iter().map(|(_, _, width)| width + 1).sum();
    let name_width = usize::from(area.width).saturating_sub(others).max(16);
    let mut line = TableLine::default();
    line.add("round trips", name_width, Side::Left, heading(state.kinds.sort == Column::Name));
    for (column, title, width) in OF_KINDS {
        line.add(title, width, Side::Right, heading(state.kinds.sort == column));
    }
    let cells = |line: &mut TableLine, of: &KindLine| {
        line.add(&of.name, name_width, Side::Left, Style::new());
        let times = of.times_ns;
        let unknown = || figure::UNKNOWN.to_owned();
        let mean = times.map_or_else(unknown, |(mean, half, _)| figure::with_interval(mean, half));
        let at = |place: usize| {
            let ns = times.and_then(|(_, _, percentiles)| percentiles[place]);
            ns.map_or_else(unknown, |ns| figure::short(ns as f64))
        };
        let texts = [figure::amount(of.measured), mean, at(0), at(1), at(2)];
        for ((_, _, width), text) in OF_KINDS.iter().zip(texts) {
            line.add(&text, *width, Side::Right, Style::new());
        }
    };
    let empty = "no round trip yet: the point must see both directions";
    let head = line.finish(false);
    rows(&state.kinds, (state, area, has_keys), (head, empty), cells)
}

fn flow_lines(state: &TopState, area: Rect, has_keys: bool) -> Vec<Line<'static>> {
    let others: usize = OF_POINT.iter().map(|(_, width)| width + 1).sum();
    let name_width = usize::from(area.width).saturating_sub(others);
    let is_by_name = state.point_flows.sort == Column::Name;
    let mut line = TableLine::default();
    line.add("flows", name_width, Side::Left, heading(is_by_name));
    for (title, width) in OF_POINT {
        line.add(title, width, Side::Right, heading(title == "packets" && !is_by_name));
    }
    let cells = |line: &mut TableLine, of: &PointLine| {
        line.add(&of.name, name_width, Side::Left, Style::new());
        let texts = [of.packets, of.packets_at_least, of.bytes].map(figure::amount);
        for ((_, width), text) in OF_POINT.iter().zip(texts) {
            line.add(&text, *width, Side::Right, Style::new());
        }
    };
    let head = line.finish(false);
    rows(&state.point_flows, (state, area, has_keys), (head, "no packet yet"), cells)
}

/// A head, and the lines around the selected one. Only the table that has the keys marks it.
fn rows<L: crate::state::Line>(
    table: &Table<L>,
    (state, area, has_keys): (&TopState, Rect, bool),
    (head, empty): (Line<'static>, &'static str),
    cells: impl Fn(&mut TableLine, &L),
) -> Vec<Line<'static>> {
    let (shown, place) = table.shown(&state.filter);
    let height = usize::from(area.height).saturating_sub(1);
    let mut lines = vec![head];
    if shown.is_empty() {
        lines.push(Line::from(empty));
    }
    for (at, of) in shown.iter().enumerate().skip(first_shown(place, height)).take(height) {
        let mut line = TableLine::default();
        cells(&mut line, of);
        lines.push(line.finish(has_keys && at == place));
    }
    lines
}

const fn heading(is_sorted: bool) -> Style {
    if is_sorted { sorted_head() } else { head() }
}
