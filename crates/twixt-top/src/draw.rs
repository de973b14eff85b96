//! Draws the state. Names from outside pass through [`plain`] first.

mod heat;
mod help;
mod lines;
mod point;
mod segments;

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Paragraph, Wrap};
use unicode_width::UnicodeWidthStr;

use crate::figure;
use crate::plain::plain;
use crate::state::{TopState, View};

/// The smallest terminal.
const WIDTH_MIN: u16 = 44;
const HEIGHT_MIN: u16 = 10;

/// Columns of a text that may take several lines.
const REASON_MAX: usize = 1_000;

/// Which colours the terminal has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Palette {
    /// 256 colours.
    Colours,
    /// None: brightness and letters only.
    Plain,
}

impl Palette {
    /// What is wrong.
    fn alarm(self) -> Style {
        match self {
            Self::Colours => Style::new().fg(Color::Red).add_modifier(Modifier::BOLD),
            Self::Plain => Style::new().add_modifier(Modifier::BOLD),
        }
    }
}

/// Shows the state as it is now.
pub fn draw(frame: &mut Frame<'_>, state: &TopState, now_ns: i64, palette: Palette) {
    let area = frame.area();
    if area.width < WIDTH_MIN || area.height < HEIGHT_MIN {
        let text = format!(
            "terminal too small: {}x{}, at least {WIDTH_MIN}x{HEIGHT_MIN} needed",
            area.width, area.height
        );
        frame.render_widget(Paragraph::new(text).wrap(Wrap { trim: true }), area);
        return;
    }
    let [first, second, body, last] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(1),
        Constraint::Min(0),
        Constraint::Length(1),
    ])
    .areas(area);
    frame.render_widget(Paragraph::new(source_line(state, now_ns, palette, area.width)), first);
    frame.render_widget(Paragraph::new(order_line(state, area.width)), second);
    frame.render_widget(Paragraph::new(key_line(state, area.width)), last);
    if state.shows_help {
        frame.render_widget(Paragraph::new(help::lines(&state.view)), body);
        return;
    }
    match &state.view {
        _ if state.answered_ns.is_none() => {
            frame.render_widget(Paragraph::new(waiting(state)).wrap(Wrap { trim: true }), body);
        }
        View::Segments => segments::draw_segments(frame, state, body, palette),
        View::Flows(cell) => segments::draw_flows(frame, state, cell, body, palette),
        View::Point { .. } => point::draw_point(frame, state, body),
    }
}

/// What answers, and since when it does not.
fn source_line(state: &TopState, now_ns: i64, palette: Palette, width: u16) -> Line<'static> {
    let width = usize::from(width);
    let time = figure::time_of_day(now_ns);
    let name = plain(&state.source, width / 2 - 12);
    let bold = Style::new().add_modifier(Modifier::BOLD);
    let mut spans = vec![Span::styled("twixt top", bold), Span::raw(format!("  {name}  "))];
    let left = width.saturating_sub("twixt top    ".len() + name.width());
    match (&state.failed, state.answered_ns) {
        (Some(reason), Some(since_ns)) => {
            let since = figure::time_of_day(since_ns);
            let age = figure::age(now_ns.saturating_sub(since_ns));
            let text = format!("values of {since}, {age} ago: {reason}");
            spans.push(Span::styled(plain(&text, left), palette.alarm()));
        }
        (Some(reason), None) => {
            spans.push(Span::styled(plain(&format!("no answer: {reason}"), left), palette.alarm()));
        }
        (None, _) => spans.push(Span::raw(format!("{time} UTC"))),
    }
    Line::from(spans)
}

/// Before the first answer; a reason is not cut here, since it says what to do.
fn waiting(state: &TopState) -> Vec<Line<'static>> {
    let wanted = format!("waiting for the first answer of {}", plain(&state.source, REASON_MAX));
    let reason =
        state.failed.as_ref().map(|reason| plain(&format!("no answer: {reason}"), REASON_MAX));
    [Some(wanted), reason].into_iter().flatten().map(Line::from).collect()
}

/// What is shown, in which order.
fn order_line(state: &TopState, width: u16) -> Line<'static> {
    if state.answered_ns.is_none() {
        return Line::default();
    }
    let (sort, is_reversed, shown, all) = state.focus();
    let mut parts = Vec::new();
    if let View::Flows(cell) = &state.view {
        let [upstream, downstream, class] =
            [&cell.upstream, &cell.downstream, &cell.class].map(|name| plain(name, 24));
        parts.push(format!("flows of {upstream} > {downstream} {class}").trim_end().to_owned());
    }
    if state.view == View::Segments {
        let length_ns = state.span_ns.1.saturating_sub(state.span_ns.0);
        parts.push(format!("last {}", figure::age(length_ns)));
    }
    let direction = if is_reversed { ", reversed" } else { "" };
    parts.push(format!("{shown} of {all} by {}{direction}", sort.title()));
    if state.is_typing {
        parts.push(format!("filter: {}_", plain(&state.filter, 30)));
    } else if !state.filter.is_empty() {
        parts.push(format!("filter: {}", plain(&state.filter, 30)));
    }
    let remark = match &state.view {
        View::Segments => state.remark.as_ref(),
        View::Flows(_) => state.flows_answer.as_ref().and_then(|answer| answer.remark.as_ref()),
        View::Point { .. } => None,
    };
    parts.extend(remark.cloned());
    Line::from(plain(&parts.join(" · "), usize::from(width)))
}

fn key_line(state: &TopState, width: u16) -> Line<'static> {
    let text = match (&state.view, state.is_typing) {
        (_, true) => "type a part of a name · Enter keeps it · Esc drops it",
        (View::Segments, _) => {
            "? help · q quit · Enter flows · s sort · o order · / filter · r refresh"
        }
        (View::Flows(_), _) => {
            "? help · q quit · Esc segments · s sort · o order · / filter · r refresh"
        }
        (View::Point { .. }, _) => {
            "? help · q quit · Tab other table · s sort · o order · / filter"
        }
    };
    Line::styled(plain(text, usize::from(width)), Style::new().add_modifier(Modifier::DIM))
}

/// The lines around the selected one that fit.
fn first_shown(selected: usize, height: usize) -> usize {
    selected.saturating_sub(height.saturating_sub(1))
}

/// Lines from the top of an area; it may have fewer.
fn draw_lines(frame: &mut Frame<'_>, area: Rect, lines: Vec<Line<'static>>) {
    frame.render_widget(Paragraph::new(lines), area);
}

#[cfg(test)]
mod tests;
