//! A screen as an SVG. Blocks are drawn as rectangles and texts have the width of their columns, so that the
//! picture looks alike with any font.

use std::fmt::Write;

use serde_json::Value;

/// Pixels of a letter.
const WIDTH: f64 = 8.4;
const HEIGHT: f64 = 18.0;
const EDGE: f64 = 12.0;

/// Colours of a terminal.
pub(super) struct Theme {
    ground: &'static str,
    ink: &'static str,
    dim: &'static str,
    edge: &'static str,
    /// Colour 1: red.
    red: &'static str,
}

pub(super) const LIGHT: Theme =
    Theme { ground: "#ffffff", ink: "#1f2328", dim: "#6e7781", edge: "#d0d7de", red: "#b3261e" };
pub(super) const DARK: Theme =
    Theme { ground: "#0f141b", ink: "#e7edf5", dim: "#8b98a8", edge: "#2a3442", red: "#ff8f85" };

/// A run of letters of one style.
struct Run<'a> {
    text: &'a str,
    ink: String,
    ground: Option<String>,
    is_bold: bool,
    is_underlined: bool,
}

impl Theme {
    fn run<'a>(&self, run: &'a Value) -> Run<'a> {
        let marks = run[3].as_str().unwrap();
        let plain_ink = if marks.contains('d') { self.dim } else { self.ink };
        let ink = run[1].as_u64().map_or(plain_ink.to_owned(), |number| self.colour(number));
        let ground = run[2].as_u64().map(|number| self.colour(number));
        let (ink, ground) = match marks.contains('r') {
            true => (ground.unwrap_or_else(|| self.ground.to_owned()), Some(ink)),
            false => (ink, ground),
        };
        let text = run[0].as_str().unwrap();
        Run { text, ink, ground, is_bold: marks.contains('b'), is_underlined: marks.contains('u') }
    }

    /// A colour of the 256: red, a cube of six levels, and black.
    fn colour(&self, number: u64) -> String {
        const LEVELS: [u8; 6] = [0, 95, 135, 175, 215, 255];
        match number {
            1 | 9 => self.red.to_owned(),
            16..=231 => {
                let level = |place: u64| LEVELS[((number - 16) / place % 6) as usize];
                format!("#{:02x}{:02x}{:02x}", level(36), level(6), level(1))
            }
            _ => self.ink.to_owned(),
        }
    }
}

/// The picture of a screen, as `terminal.py` describes it.
pub(super) fn drawn(lines: &Value, theme: &Theme) -> String {
    let lines = lines.as_array().unwrap();
    let columns = lines.iter().map(letters).max().unwrap_or(0);
    let width = columns as f64 * WIDTH + 2.0 * EDGE;
    let height = lines.len() as f64 * HEIGHT + 2.0 * EDGE;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.1} {height:.1}\" width=\"{width:.0}\" \
         font-family=\"ui-monospace, 'SF Mono', 'DejaVu Sans Mono', monospace\" font-size=\"14\">\n\
         <rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"{}\" stroke=\"{}\"/>\n",
        theme.ground, theme.edge
    );
    for (row, line) in lines.iter().enumerate() {
        let mut column = 0;
        for run in line.as_array().unwrap() {
            let run = theme.run(run);
            add(&mut svg, &run, (column, row));
            column += run.text.chars().count();
        }
    }
    svg + "</svg>\n"
}

fn letters(line: &Value) -> usize {
    line.as_array().unwrap().iter().map(|run| run[0].as_str().unwrap().chars().count()).sum()
}

fn add(svg: &mut String, run: &Run<'_>, (column, row): (usize, usize)) {
    let at = |column: usize| EDGE + column as f64 * WIDTH;
    let (top, length) = (EDGE + row as f64 * HEIGHT, run.text.chars().count());
    if let Some(ground) = &run.ground {
        rectangle(svg, (at(column), top), (length as f64 * WIDTH, HEIGHT), ground);
    }
    if run.is_underlined {
        let length = run.text.trim_end().chars().count();
        rectangle(svg, (at(column), top + HEIGHT - 2.0), (length as f64 * WIDTH, 1.0), &run.ink);
    }
    for (place, letter) in run.text.chars().enumerate() {
        if let Some((from, share)) = block(letter) {
            let size = (WIDTH, share * HEIGHT);
            rectangle(svg, (at(column + place), top + from * HEIGHT), size, &run.ink);
        }
    }
    for (place, words) in words(run.text) {
        let count = words.chars().count();
        let weight = if run.is_bold { " font-weight=\"bold\"" } else { "" };
        let text = words.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
        let _ = writeln!(
            svg,
            "<text x=\"{:.1}\" y=\"{:.1}\" textLength=\"{:.1}\" lengthAdjust=\"spacingAndGlyphs\" \
             xml:space=\"preserve\" fill=\"{}\"{weight}>{text}</text>",
            at(column + place),
            top + 0.74 * HEIGHT,
            count as f64 * WIDTH,
            run.ink
        );
    }
}

fn rectangle(svg: &mut String, (x, y): (f64, f64), (width, height): (f64, f64), colour: &str) {
    let _ = writeln!(
        svg,
        "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" fill=\"{colour}\" \
         shape-rendering=\"crispEdges\"/>"
    );
}

/// Where a block begins in its cell, and which share of it it fills.
fn block(letter: char) -> Option<(f64, f64)> {
    match letter {
        '▀' => Some((0.0, 0.5)),
        '▁'..='█' => {
            let eighths = f64::from(letter as u32 - '▁' as u32 + 1) / 8.0;
            Some((1.0 - eighths, eighths))
        }
        _ => None,
    }
}

/// What is neither a block nor space between words: texts with the places of their first letters.
fn words(text: &str) -> Vec<(usize, String)> {
    let mut found: Vec<(usize, String)> = Vec::new();
    for (place, letter) in text.chars().enumerate() {
        if letter == ' ' || block(letter).is_some() {
            continue;
        }
        match found.last_mut() {
            // One space within a text stays in it.
            Some((start, words)) if *start + words.chars().count() + 1 >= place => {
                let gap = place - *start - words.chars().count();
                words.extend(std::iter::repeat_n(' ', gap));
                words.push(letter);
            }
            _ => found.push((place, letter.to_string())),
        }
    }
    found
}
