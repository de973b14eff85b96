//! Lays a picture out on a page: from panels to lines, rectangles and text.

use kuva::render::color::Color;
use kuva::render::render::{PathData, Primitive, Scene, TextAnchor};

use super::axis::Tick;
use super::picture::{Bar, Colour, Layer, Panel, Picture, Quantity, Shape};

const WIDTH: f64 = 900.0;
const MARGIN: f64 = 20.0;
const TEXT: u32 = 12;
const TITLE: u32 = 16;
const PANEL_TITLE: u32 = 13;
/// Height of a line of text, in terms of its size.
const LINE: f64 = 1.4;
/// Mean width of a letter of DejaVu Sans, in terms of the size of the text.
const LETTER: f64 = 0.58;
const TICK: f64 = 5.0;
/// Names of lines take no more than this, and are cut beyond it.
const NAMES_WIDTH_MAX: f64 = 280.0;
const FONT: &str = "DejaVu Sans, Verdana, sans-serif";
const INK: &str = "#222222";
const GRID: &str = "#dddddd";
const SERIES: [&str; 7] =
    ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#444444"];
const LOSS: &str = "#d55e00";
const GREY: &str = "#767676";
/// From few to many.
const HEAT: [(f64, f64, f64); 3] = [(222.0, 235.0, 247.0), (66.0, 146.0, 198.0), (8.0, 28.0, 88.0)];

/// The picture on a page of its own.
pub(super) fn scene(picture: &Picture) -> Scene {
    let mut page = Page { elements: Vec::new(), y: MARGIN };
    for line in wrapped(&picture.title, WIDTH - 2.0 * MARGIN, TITLE) {
        page.y += f64::from(TITLE) * LINE;
        page.text((MARGIN, page.y), &line, Style { size: TITLE, bold: true, ..Style::default() });
    }
    for line in wrapped(&picture.subtitle, WIDTH - 2.0 * MARGIN, TEXT) {
        page.y += f64::from(TEXT) * LINE;
        page.text((MARGIN, page.y), &line, Style::default());
    }
    // Areas of all panels begin at one place, so that one time is above the other.
    let left = picture.panels.iter().map(left_of).fold(0.0, f64::max);
    for panel in &picture.panels {
        page.panel(panel, left);
    }
    let mut scene = Scene::new(WIDTH, page.y + MARGIN);
    scene.font_family = Some(FONT.to_owned());
    scene.text_color = Some(INK.to_owned());
    scene.elements = page.elements;
    scene
}

/// What was drawn, and how far down the page is used.
struct Page {
    elements: Vec<Primitive>,
    y: f64,
}

#[derive(Clone, Copy)]
struct Style {
    size: u32,
    bold: bool,
    anchor: TextAnchor,
    rotate: Option<f64>,
}

impl Default for Style {
    fn default() -> Self {
        Self { size: TEXT, bold: false, anchor: TextAnchor::Start, rotate: None }
    }
}

/// The area between the axes of a panel.
struct Area<'a> {
    panel: &'a Panel,
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
}

impl Area<'_> {
    fn x(&self, value: f64) -> f64 {
        self.left + self.panel.x.place(value) * (self.right - self.left)
    }

    /// Upwards, but names from the top.
    fn y(&self, value: f64) -> f64 {
        let place = self.panel.y.place(value) * (self.bottom - self.top);
        match self.panel.y.quantity {
            Quantity::Names(_) => self.top + place,
            _ => self.bottom - place,
        }
    }

    fn point(&self, (x, y): (f64, f64)) -> (f64, f64) {
        (self.x(x), self.y(y))
    }
}

impl Page {
    fn panel(&mut self, panel: &Panel, left: f64) {
        let style = Style { size: PANEL_TITLE, bold: true, ..Style::default() };
        self.y += 12.0;
        for line in wrapped(&panel.title, WIDTH - MARGIN - left, PANEL_TITLE) {
            self.y += f64::from(PANEL_TITLE) * LINE;
            self.text((left, self.y), &line, style);
        }
        self.legend(panel, left);
        let (top, right) = (self.y + 10.0, WIDTH - MARGIN - 10.0);
        let area = Area { panel, left, right, top, bottom: top + panel.height };
        self.y = area.bottom;
        self.axes(&area);
        for layer in &panel.layers {
            self.layer(&area, layer);
        }
        self.frame(&area);
    }

    /// Above the area, never in it.
    fn legend(&mut self, panel: &Panel, left: f64) {
        const SWATCH: f64 = 18.0;
        const GAP: f64 = 18.0;
        let mut x = left;
        let named = panel.layers.iter().filter(|layer| !layer.label.is_empty());
        for (index, layer) in named.enumerate() {
            let width = SWATCH + 6.0 + width_of(&layer.label, TEXT);
            if index == 0 || x + width > WIDTH - MARGIN {
                self.y += f64::from(TEXT) * LINE + 2.0;
                x = left;
            }
            self.swatch(layer, x, self.y - 4.0);
            self.text((x + SWATCH + 6.0, self.y), &layer.label, Style::default());
            x += width + GAP;
        }
    }

    fn swatch(&mut self, layer: &Layer, x: f64, y: f64) {
        let colour = colour_of(layer.colour);
        match &layer.shape {
            Shape::Band { opacity, .. } => {
                self.rectangle((x, y - 6.0), (18.0, 12.0), &colour, *opacity);
            }
            Shape::Bars(_) => self.rectangle((x, y - 6.0), (18.0, 12.0), &colour, 1.0),
            Shape::Heat(_) => {
                for step in 0..6 {
                    let share = f64::from(step) / 5.0;
                    self.rectangle(
                        (x + f64::from(step) * 3.0, y - 6.0),
                        (3.0, 12.0),
                        &heat_of(share),
                        1.0,
                    );
                }
            }
            Shape::Dots(_) => self.dot((x + 9.0, y), &colour),
            Shape::Upright(_) => self.line((x, y), (x + 18.0, y), &colour, Pen::DASHED),
            _ => self.line((x, y), (x + 18.0, y), &colour, Pen::SERIES),
        }
    }

    fn axes(&mut self, area: &Area<'_>) {
        let panel = area.panel;
        for tick in fitting(panel.x.ticks(8), area.right - area.left) {
            let x = area.x(tick.value);
            self.line((x, area.top), (x, area.bottom), &GRID.into(), Pen::THIN);
            self.line((x, area.bottom), (x, area.bottom + TICK), &INK.into(), Pen::THIN);
            let at = (x, area.bottom + TICK + f64::from(TEXT));
            self.text(at, &tick.label, Style { anchor: TextAnchor::Middle, ..Style::default() });
        }
        let wanted = ((panel.height / 32.0) as usize).max(2);
        for tick in panel.y.ticks(wanted) {
            let y = area.y(tick.value);
            // Names are no scale, and a line would run through what stands beside their bars.
            if !matches!(panel.y.quantity, Quantity::Names(_)) {
                self.line((area.left, y), (area.right, y), &GRID.into(), Pen::THIN);
            }
            self.line((area.left - TICK, y), (area.left, y), &INK.into(), Pen::THIN);
            let at = (area.left - TICK - 3.0, y + f64::from(TEXT) * 0.35);
            let label = cut_to(&tick.label, NAMES_WIDTH_MAX);
            self.text(at, &label, Style { anchor: TextAnchor::End, ..Style::default() });
        }
        self.y = area.bottom + TICK + f64::from(TEXT) * LINE;
        if !panel.x.label.is_empty() {
            self.y += f64::from(TEXT) * LINE;
            let at = ((area.left + area.right) / 2.0, self.y);
            self.text(
                at,
                &panel.x.title(),
                Style { anchor: TextAnchor::Middle, ..Style::default() },
            );
        }
        if !panel.y.label.is_empty() {
            let at = (MARGIN + f64::from(TEXT) * 0.5, (area.top + area.bottom) / 2.0);
            let (anchor, rotate) = (TextAnchor::Middle, Some(-90.0));
            self.text(at, &panel.y.title(), Style { anchor, rotate, ..Style::default() });
        }
    }

    fn frame(&mut self, area: &Area<'_>) {
        let (ink, corner) = (Color::from(INK), (area.left, area.bottom));
        self.line(corner, (area.right, area.bottom), &ink, Pen::THIN);
        self.line((area.left, area.top), corner, &ink, Pen::THIN);
    }

    fn layer(&mut self, area: &Area<'_>, layer: &Layer) {
        let colour = colour_of(layer.colour);
        match &layer.shape {
            Shape::Line(points) => {
                for run in runs(points, |(x, y)| x.is_finite() && y.is_finite()) {
                    self.polyline(run.iter().map(|&point| area.point(point)).collect(), &colour);
                }
            }
            Shape::Steps(points) => self.polyline(steps(area, points), &colour),
            Shape::Band { points, opacity } => {
                for run in runs(points, |(_, low, high)| low.is_finite() && high.is_finite()) {
                    self.band(area, run, &colour, *opacity);
                }
            }
            Shape::Bars(bars) => bars.iter().for_each(|bar| self.bar(area, *bar, &colour)),
            Shape::Heat(cells) => {
                let most = cells.iter().map(|(_, count)| *count).max().unwrap_or(1).max(2);
                for (bar, count) in cells {
                    // One packet is to be seen beside thousands.
                    let share = (*count as f64).ln() / (most as f64).ln();
                    self.bar(area, *bar, &heat_of(share));
                }
            }
            Shape::Dots(points) => {
                points.iter().for_each(|&point| self.dot(area.point(point), &colour));
            }
            Shape::Upright(x) => {
                let x = area.x(*x);
                self.line((x, area.top), (x, area.bottom), &colour, Pen::DASHED);
            }
            Shape::Text { x, y, text } => self.label(area, (*x, *y), text),
        }
    }

    /// To the right of a place, or to the left where it would leave the area.
    fn label(&mut self, area: &Area<'_>, at: (f64, f64), text: &str) {
        let (x, y) = area.point(at);
        let y = y + f64::from(TEXT) * 0.35;
        match x + 6.0 + width_of(text, TEXT) > area.right {
            true => {
                let style = Style { anchor: TextAnchor::End, ..Style::default() };
                self.text((x - 6.0, y), text, style);
            }
            false => self.text((x + 6.0, y), text, Style::default()),
        }
    }

    fn bar(&mut self, area: &Area<'_>, bar: Bar, colour: &Color) {
        let (x0, x1) = (area.x(bar.x.0), area.x(bar.x.1));
        let (y0, y1) = (area.y(bar.y.0), area.y(bar.y.1));
        // What is not nothing is seen.
        let (width, height) = ((x1 - x0).abs().max(1.0), (y1 - y0).abs().max(1.0));
        let y = y0.min(y1).min(area.bottom - height);
        self.rectangle((x0.min(x1), y), (width, height), colour, 1.0);
    }

    fn band(&mut self, area: &Area<'_>, points: &[(f64, f64, f64)], colour: &Color, opacity: f64) {
        let above = points.iter().map(|&(x, _, high)| area.point((x, high)));
        let below = points.iter().rev().map(|&(x, low, _)| area.point((x, low)));
        let corners = above.chain(below).map(|(x, y)| format!("{x:.2} {y:.2}"));
        let corners: Vec<String> = corners.collect();
        self.elements.push(Primitive::Path(Box::new(PathData {
            d: format!("M {} Z", corners.join(" L ")),
            fill: Some(colour.clone()),
            stroke: Color::None,
            stroke_width: 0.0,
            opacity: Some(opacity),
            stroke_dasharray: None,
        })));
    }

    fn polyline(&mut self, points: Vec<(f64, f64)>, colour: &Color) {
        if let [only] = points.as_slice() {
            return self.dot(*only, colour);
        }
        self.elements.push(Primitive::PolyLine {
            points,
            stroke: colour.clone(),
            stroke_width: Pen::SERIES.width,
            stroke_dasharray: None,
        });
    }

    fn dot(&mut self, (cx, cy): (f64, f64), colour: &Color) {
        self.elements.push(Primitive::Circle {
            cx,
            cy,
            r: 3.0,
            fill: colour.clone(),
            fill_opacity: None,
            stroke: None,
            stroke_width: None,
        });
    }

    fn line(&mut self, from: (f64, f64), to: (f64, f64), colour: &Color, pen: Pen) {
        self.elements.push(Primitive::Line {
            x1: from.0,
            y1: from.1,
            x2: to.0,
            y2: to.1,
            stroke: colour.clone(),
            stroke_width: pen.width,
            stroke_dasharray: pen.is_dashed.then(|| "6 4".to_owned()),
        });
    }

    fn rectangle(&mut self, at: (f64, f64), size: (f64, f64), colour: &Color, opacity: f64) {
        self.elements.push(Primitive::Rect {
            x: at.0,
            y: at.1,
            width: size.0,
            height: size.1,
            fill: colour.clone(),
            stroke: None,
            stroke_width: None,
            opacity: Some(opacity),
        });
    }

    fn text(&mut self, (x, y): (f64, f64), content: &str, style: Style) {
        let Style { size, bold, anchor, rotate } = style;
        let (content, color) = (content.to_owned(), Some(Color::from(INK)));
        self.elements.push(Primitive::Text { x, y, content, size, anchor, rotate, bold, color });
    }
}

#[derive(Clone, Copy)]
struct Pen {
    width: f64,
    is_dashed: bool,
}

impl Pen {
    const THIN: Self = Self { width: 1.0, is_dashed: false };
    const SERIES: Self = Self { width: 2.0, is_dashed: false };
    const DASHED: Self = Self { width: 1.5, is_dashed: true };
}

/// Room for the title and the labels of the y axis.
fn left_of(panel: &Panel) -> f64 {
    let labels = panel.y.ticks(6);
    let width = |tick: &Tick| width_of(&tick.label, TEXT).min(NAMES_WIDTH_MAX);
    let labels = labels.iter().map(width).fold(0.0, f64::max);
    MARGIN + f64::from(TEXT) * LINE + labels + TICK + 8.0
}

/// Every second or third of the ticks, if all of them would overlap.
fn fitting(ticks: Vec<Tick>, width: f64) -> impl Iterator<Item = Tick> {
    let widest = ticks.iter().map(|tick| width_of(&tick.label, TEXT)).fold(1.0, f64::max);
    let room = (width / (widest + 14.0)).max(1.0) as usize;
    let every = ticks.len().div_ceil(room.max(1)).max(1);
    ticks.into_iter().step_by(every)
}

fn steps(area: &Area<'_>, points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let mut corners = Vec::with_capacity(2 * points.len());
    for &point in points {
        let (x, y) = area.point(point);
        if let Some(&(_, before)) = corners.last() {
            corners.push((x, before));
        }
        corners.push((x, y));
    }
    corners
}

/// The parts of a list without what interrupts it.
fn runs<T>(points: &[T], is_known: impl Fn(&T) -> bool) -> Vec<&[T]> {
    points.split(|point| !is_known(point)).filter(|run| !run.is_empty()).collect()
}

fn colour_of(colour: Colour) -> Color {
    match colour {
        Colour::Series(index) => SERIES[index % SERIES.len()].into(),
        Colour::Loss => LOSS.into(),
        Colour::Grey => GREY.into(),
    }
}

fn heat_of(share: f64) -> Color {
    let at = share.clamp(0.0, 1.0) * 2.0;
    let (from, to) = if at < 1.0 { (HEAT[0], HEAT[1]) } else { (HEAT[1], HEAT[2]) };
    let part = at - at.floor().min(1.0);
    let mixed = |from: f64, to: f64| (from + (to - from) * part).round() as u8;
    Color::Rgb(mixed(from.0, to.0), mixed(from.1, to.1), mixed(from.2, to.2))
}

fn width_of(text: &str, size: u32) -> f64 {
    text.chars().count() as f64 * f64::from(size) * LETTER
}

fn cut_to(text: &str, width: f64) -> String {
    let letters = (width / (f64::from(TEXT) * LETTER)) as usize;
    match text.chars().count() > letters {
        true => text.chars().take(letters.saturating_sub(1)).chain(['…']).collect(),
        false => text.to_owned(),
    }
}

/// Lines no wider than this. A word that is wider has a line of its own.
fn wrapped(text: &str, width: f64, size: u32) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if width_of(line, size) + width_of(word, size) < width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}
