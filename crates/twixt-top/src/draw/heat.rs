//! Delay over time as a picture: two rows of the picture in each line of the terminal.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::{Color, Style};
use ratatui::text::{Line, Span};

use super::{Palette, draw_lines};
use crate::figure;
use crate::news::HeatMap;
use crate::plain::plain;

/// From few packets to most of them: colours of the 256 that every terminal has.
const COLOURS: [u8; 8] = [17, 18, 54, 90, 126, 162, 202, 220];
/// No packet, in a time of which some are known: black, so that the brightest is most on a light terminal
/// as well. Times of which nothing is known have the ground of the terminal.
const GROUND: Color = Color::Indexed(16);
/// The same without colours.
const SHADES: [char; 5] = [' ', '░', '▒', '▓', '█'];
/// Columns for the delays at the left.
const LABELS: usize = 8;

/// What is known of a picture: nothing yet, why there is none, or the picture.
type Answer<'a> = Option<Result<&'a HeatMap, &'a String>>;

pub(super) fn draw_heat(frame: &mut Frame<'_>, area: Rect, answer: Answer<'_>, palette: Palette) {
    let width = usize::from(area.width);
    let lines = match answer {
        None => vec![Line::from("delay over time: asking")],
        Some(Err(reason)) => vec![Line::from(plain(&format!("no heat map: {reason}"), width))],
        Some(Ok(map)) => picture(map, width, usize::from(area.height), palette),
    };
    draw_lines(frame, area, lines);
}

fn picture(map: &HeatMap, width: usize, height: usize, palette: Palette) -> Vec<Line<'static>> {
    let lines = height.saturating_sub(1);
    let columns = width.saturating_sub(LABELS + 1);
    let rows = if palette == Palette::Colours { lines * 2 } else { lines };
    let Some(grid) = Grid::of(map, columns, rows) else {
        return vec![Line::from("delay over time: no packets in this time")];
    };
    let label = |line: usize| match line {
        0 => figure::short(grid.high_ns),
        last if last + 1 == lines => figure::short(grid.low_ns),
        _ => String::new(),
    };
    let mut drawn: Vec<Line<'static>> = (0..lines)
        .map(|line| {
            let mut spans = vec![Span::raw(format!("{:>LABELS$} ", label(line)))];
            spans.extend((0..columns).map(|column| match palette {
                Palette::Colours if !grid.is_known[column] => Span::raw(" "),
                Palette::Colours => {
                    pixels(grid.at(column, line * 2), grid.at(column, line * 2 + 1))
                }
                Palette::Plain => Span::raw(shade(grid.at(column, line)).to_string()),
            }));
            Line::from(spans)
        })
        .collect();
    let [start, end] = [map.span_ns.0, map.span_ns.1].map(figure::time_of_day);
    let between = columns.saturating_sub(start.len() + end.len());
    drawn.push(Line::from(format!("{:LABELS$} {start}{}{end}", "", " ".repeat(between))));
    drawn
}

/// Shares of packets by place.
struct Grid {
    shares: Vec<f64>,
    /// Columns of which packets are known.
    is_known: Vec<bool>,
    columns: usize,
    low_ns: f64,
    high_ns: f64,
}

impl Grid {
    fn of(map: &HeatMap, columns: usize, rows: usize) -> Option<Self> {
        let (low, high) = buckets(map)?;
        if columns == 0 || rows == 0 {
            return None;
        }
        let mut shares = vec![0.0; columns * rows];
        let mut is_known = vec![false; columns];
        let length = i128::from(map.span_ns.1) - i128::from(map.span_ns.0);
        let place = |ns: i64| {
            let since = (i128::from(ns) - i128::from(map.span_ns.0)).max(0);
            (since * columns as i128 / length.max(1)).min(columns as i128) as usize
        };
        for column in &map.columns {
            let all: f64 = column.packets.iter().sum();
            let (from, to) = (place(column.start_ns), place(column.end_ns.saturating_add(1)));
            let to = to.max(from + 1).min(columns);
            is_known.iter_mut().take(to).skip(from).for_each(|known| *known = true);
            for (number, packets) in (i64::from(column.first)..).zip(&column.packets) {
                if !(low..=high).contains(&number) || *packets <= 0.0 {
                    continue;
                }
                // The longest delays are at the top.
                let row = ((high - number) as usize * rows) / (high - low + 1) as usize;
                let further = (((high - number + 1) as usize * rows) / (high - low + 1) as usize)
                    .max(row + 1);
                for x in from..to {
                    for y in row..further.min(rows) {
                        shares[y * columns + x] += packets / all;
                    }
                }
            }
        }
        let bound =
            |number: i64| 2.0_f64.powf(number as f64 / f64::from(1_u32 << map.scale.min(20)));
        Some(Self { shares, is_known, columns, low_ns: bound(low), high_ns: bound(high + 1) })
    }

    fn at(&self, column: usize, row: usize) -> f64 {
        self.shares.get(row * self.columns + column).copied().unwrap_or(0.0)
    }
}

/// The first and the last bucket with packets.
fn buckets(map: &HeatMap) -> Option<(i64, i64)> {
    let numbers = map.columns.iter().flat_map(|column| {
        let packets = (i64::from(column.first)..).zip(&column.packets);
        packets.filter(|(_, packets)| **packets > 0.0).map(|(number, _)| number)
    });
    numbers.fold(None, |range, number| match range {
        None => Some((number, number)),
        Some((low, high)) => Some((number.min(low), number.max(high))),
    })
}

/// From 0 (none) to 1 (all packets of a column); rare delays stay visible.
fn level(share: f64, levels: usize) -> usize {
    if share <= 0.0 {
        return 0;
    }
    let visible = 1.0 + share.max(1e-4).log10() / 4.0;
    1 + (visible * (levels - 1) as f64).round() as usize
}

fn pixels(upper: f64, lower: f64) -> Span<'static> {
    let colour = |share: f64| match level(share, COLOURS.len()) {
        0 => None,
        level => Some(Color::Indexed(COLOURS[(level - 1).min(COLOURS.len() - 1)])),
    };
    let ground = Style::new().bg(GROUND);
    match (colour(upper), colour(lower)) {
        (None, None) => Span::styled(" ", ground),
        (Some(upper), None) => Span::styled("▀", ground.fg(upper)),
        (None, Some(lower)) => Span::styled("▄", ground.fg(lower)),
        (Some(upper), Some(lower)) => Span::styled("▀", Style::new().fg(upper).bg(lower)),
    }
}

fn shade(share: f64) -> char {
    SHADES[level(share, SHADES.len() - 1).min(SHADES.len() - 1)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::news::HeatColumn;

    fn map(columns: &[(i64, i32, &[f64])]) -> HeatMap {
        let column = |(start_ns, first, packets): &(i64, i32, &[f64])| HeatColumn {
            start_ns: *start_ns,
            end_ns: start_ns.saturating_add(9),
            first: *first,
            packets: packets.to_vec(),
        };
        HeatMap { span_ns: (0, 30), scale: 0, columns: columns.iter().map(column).collect() }
    }

    #[track_caller]
    fn check(map: &HeatMap, palette: Palette, expected: &[&str]) {
        let lines = picture(map, LABELS + 1 + 3, expected.len() + 1, palette);
        let shown: Vec<String> = lines
            .iter()
            .take(expected.len())
            .map(|line| line.to_string().chars().skip(LABELS + 1).collect())
            .collect();
        assert_eq!(shown, expected);
    }

    #[test]
    fn the_longest_delays_are_at_the_top_and_gaps_are_empty() {
        let two = map(&[(0, 20, &[8.0, 0.0, 0.0, 2.0]), (20, 23, &[1.0])]);
        check(&two, Palette::Plain, &["▓ █", "   ", "   ", "█  "]);
        check(&two, Palette::Colours, &["▀ ▀", "▄  "]);
    }

    #[test]
    fn what_is_known_has_a_ground_of_its_own_and_gaps_that_of_the_terminal() {
        let two = map(&[(0, 20, &[8.0, 0.0, 0.0, 2.0]), (20, 23, &[1.0])]);
        let lines = picture(&two, LABELS + 1 + 3, 3, Palette::Colours);
        let grounds = |line: &Line<'_>| -> Vec<Option<Color>> {
            line.spans.iter().skip(1).map(|span| span.style.bg).collect()
        };
        assert_eq!(grounds(&lines[0]), [Some(GROUND), None, Some(GROUND)]);
    }

    #[test]
    fn nothing_and_anything_are_survived() {
        check(&map(&[]), Palette::Plain, &["r time: no packets in this time"]);
        let far = map(&[(i64::MIN, i32::MIN, &[1.0]), (i64::MAX, i32::MAX, &[f64::NAN, 1.0])]);
        let _ = picture(&far, 80, 20, Palette::Colours);
        let _ = picture(&far, 0, 0, Palette::Plain);
        let late = HeatMap { span_ns: (i64::MAX, i64::MIN), ..far };
        let _ = picture(&late, 80, 20, Palette::Plain);
    }
}
