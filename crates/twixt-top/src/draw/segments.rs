//! Segments with a heat map of the selected one, and flows.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::text::Line;
use unicode_width::UnicodeWidthStr;

use super::lines::{Side, TableLine, head, sorted_head};
use super::{Palette, draw_lines, first_shown, heat};
use crate::columns::{Column, OF_FLOWS, OF_SEGMENTS, fitting};
use crate::course::letters;
use crate::figure;
use crate::known::{CellName, KnownLine, KnownValue};
use crate::plain::plain;
use crate::state::{Table, TopState};

/// A heat map needs this much, and the table above it as well.
const HEAT_LINES_MIN: u16 = 6;
const TABLE_LINES_MIN: u16 = 8;

pub(super) fn draw_segments(frame: &mut Frame<'_>, state: &TopState, area: Rect, palette: Palette) {
    if state.segments.len() == 0 {
        let text = "the collector has no segments: no two points have sent epochs yet";
        draw_lines(frame, area, vec![Line::from(text)]);
        return;
    }
    let has_heat = area.height >= TABLE_LINES_MIN + 1 + HEAT_LINES_MIN;
    let heat_lines = if has_heat { (area.height * 2 / 5).max(HEAT_LINES_MIN) } else { 0 };
    let [table, reason, picture] = Layout::vertical([
        Constraint::Min(0),
        Constraint::Length(1),
        Constraint::Length(heat_lines),
    ])
    .areas(area);
    let columns = fitting(OF_SEGMENTS, usize::from(area.width), state.segments.name_columns);
    let lines = Lines { columns, state, palette };
    draw_lines(frame, table, lines.table(&state.segments, table));
    let selected = state.segments.selected(&state.filter);
    draw_lines(frame, reason, vec![reason_line(selected, area.width)]);
    if has_heat && let Some(line) = selected {
        let answer = state.heat.as_ref().filter(|(cell, _)| *cell == line.cell);
        heat::draw_heat(frame, picture, answer.map(|(_, answer)| answer.as_ref()), palette);
    }
}

pub(super) fn draw_flows(
    frame: &mut Frame<'_>,
    state: &TopState,
    cell: &CellName,
    area: Rect,
    palette: Palette,
) {
    let answer = state.flows_answer.as_ref().filter(|answer| answer.cell == *cell);
    if answer.is_none() {
        draw_lines(frame, area, vec![Line::from("asking for flows: epochs are paired again")]);
        return;
    }
    if state.flows.len() == 0 {
        let why = answer.and_then(|answer| answer.remark.as_deref()).unwrap_or("no flow was seen");
        draw_lines(frame, area, vec![Line::from(plain(why, usize::from(area.width)))]);
        return;
    }
    let [table, reason] = Layout::vertical([Constraint::Min(0), Constraint::Length(1)]).areas(area);
    let columns = fitting(OF_FLOWS, usize::from(area.width), 0);
    let lines = Lines { columns, state, palette };
    draw_lines(frame, table, lines.table(&state.flows, table));
    let selected = state.flows.selected(&state.filter);
    draw_lines(frame, reason, vec![reason_line(selected, area.width)]);
}

/// How the lines of a table look.
struct Lines<'a> {
    columns: Vec<(Column, usize)>,
    state: &'a TopState,
    palette: Palette,
}

impl Lines<'_> {
    fn table(&self, table: &Table<KnownLine>, area: Rect) -> Vec<Line<'static>> {
        let (shown, place) = table.shown(&self.state.filter);
        let height = usize::from(area.height).saturating_sub(1);
        let mut lines = vec![self.heads(table.sort)];
        let visible = shown.iter().enumerate().skip(first_shown(place, height)).take(height);
        lines.extend(visible.map(|(at, line)| self.line(line, at == place)));
        if shown.is_empty() {
            lines.push(Line::from("no name has this in it: Esc shows all"));
        }
        lines
    }

    fn heads(&self, sort: Column) -> Line<'static> {
        let mut line = TableLine::default();
        for &(column, width) in &self.columns {
            let style = if column == sort { sorted_head() } else { head() };
            line.add(column.title(), width, side(column), style);
        }
        line.finish(false)
    }

    fn line(&self, of: &KnownLine, is_selected: bool) -> Line<'static> {
        let mut line = TableLine::default();
        for &(column, width) in &self.columns {
            let (text, style) = self.cell(of, column, width);
            line.add(&text, width, side(column), style);
        }
        line.finish(is_selected)
    }

    fn cell(&self, of: &KnownLine, column: Column, width: usize) -> (String, Style) {
        let delay = |known: &KnownValue| {
            let text = known.value.map_or(figure::UNKNOWN.to_owned(), figure::short);
            (text, weak(known))
        };
        match column {
            Column::Name => (name(of, width), Style::new()),
            Column::Flow => (of.scope.clone(), Style::new()),
            Column::Class => (of.cell.class.clone(), Style::new()),
            Column::Mean => {
                let mean = of.mean.value.map(|ns| figure::with_interval(ns, of.mean.half_width));
                (mean.unwrap_or_else(|| figure::UNKNOWN.to_owned()), weak(&of.mean))
            }
            Column::P50 => delay(&of.p50),
            Column::P95 => delay(&of.p95),
            Column::P99 => delay(&of.p99),
            Column::Loss => {
                let half_width = of.loss.half_width.unwrap_or(0.0);
                let share = of.loss.value.map(|share| figure::share_within(share, half_width));
                let text = share.unwrap_or_else(|| figure::UNKNOWN.to_owned());
                let is_certain = of.loss.value.is_some_and(|share| share > 0.0) && !of.loss.is_weak;
                (text, if is_certain { self.palette.alarm() } else { weak(&of.loss) })
            }
            Column::Packets => {
                (of.packets.map_or(figure::UNKNOWN.to_owned(), figure::amount), Style::new())
            }
            Column::Course => {
                let means = self.state.courses.means(&of.cell, self.state.span_ns, width);
                (letters(&means), Style::new())
            }
        }
    }
}

/// The segment. Both points keep a part of a narrow column.
fn name(of: &KnownLine, width: usize) -> String {
    let room = width.saturating_sub(3);
    let downstream = plain(&of.cell.downstream, room);
    let upstream = plain(&of.cell.upstream, (room / 2).max(room - downstream.width()));
    format!("{upstream} > {}", plain(&downstream, room.saturating_sub(upstream.width())))
}

fn weak(known: &KnownValue) -> Style {
    match known.is_weak || known.value.is_none() {
        true => Style::new().add_modifier(Modifier::DIM),
        false => Style::new(),
    }
}

const fn side(column: Column) -> Side {
    match column {
        Column::Name | Column::Flow | Column::Class | Column::Course => Side::Left,
        _ => Side::Right,
    }
}

/// What the selected line rests on, or why something of it is unknown.
fn reason_line(selected: Option<&KnownLine>, width: u16) -> Line<'static> {
    let Some(of) = selected else { return Line::default() };
    let text = match &of.reason {
        Some(reason) => format!("{UNKNOWN_MARK} {reason}"),
        None => format!("by {}", of.algorithm),
    };
    let style = Style::new().add_modifier(Modifier::DIM);
    Line::styled(plain(&text, usize::from(width)), style)
}

const UNKNOWN_MARK: &str = "unknown or weak:";
