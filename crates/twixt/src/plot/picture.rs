//! What a picture shows: panels below each other, each with its axes and layers. Values are data;
//! where they land on the page is decided in [`draw`](super::draw).

/// Panels below each other.
#[derive(Clone, Debug)]
pub(crate) struct Picture {
    pub(crate) title: String,
    /// What it rests on, in a line.
    pub(crate) subtitle: String,
    pub(crate) panels: Vec<Panel>,
}

/// Layers on the same two axes; later ones lie above earlier ones.
#[derive(Clone, Debug)]
pub(crate) struct Panel {
    pub(crate) title: String,
    /// Height of the area between the axes.
    pub(crate) height: f64,
    pub(crate) x: Axis,
    pub(crate) y: Axis,
    pub(crate) layers: Vec<Layer>,
}

/// What an axis measures, and from where to where.
#[derive(Clone, Debug)]
pub(crate) struct Axis {
    pub(crate) label: String,
    pub(crate) quantity: Quantity,
    pub(crate) low: f64,
    pub(crate) high: f64,
    /// By powers of ten; `low` is above 0 then.
    pub(crate) logarithmic: bool,
}

/// What the numbers of an axis are: it decides which numbers are round.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Quantity {
    /// Nanoseconds of a length of time.
    Duration,
    /// Nanoseconds since 1970.
    Moment,
    /// A share, shown in per cent.
    Share,
    /// A whole number.
    Count,
    /// Any number.
    Number,
    /// One line for each name, from the top; the first is centred at 0.5, the next at 1.5.
    Names(Vec<String>),
}

/// One layer of a panel.
#[derive(Clone, Debug)]
pub(crate) struct Layer {
    /// For the legend; empty: not in it.
    pub(crate) label: String,
    pub(crate) colour: Colour,
    pub(crate) shape: Shape,
}

#[derive(Clone, Debug)]
pub(crate) enum Shape {
    /// A line through points; a value that is not a number interrupts it.
    Line(Vec<(f64, f64)>),
    /// A line that runs level from each point to the next.
    Steps(Vec<(f64, f64)>),
    /// Between two values at each place; a value that is not a number interrupts it. The opacity is
    /// that of the colour.
    Band { points: Vec<(f64, f64, f64)>, opacity: f64 },
    /// Rectangles.
    Bars(Vec<Bar>),
    /// Rectangles by how much is in them.
    Heat(Vec<(Bar, u64)>),
    /// Points.
    Dots(Vec<(f64, f64)>),
    /// A dashed line across the panel, at this place of the x axis.
    Upright(f64),
    /// Text at a place, to the right of it.
    Text { x: f64, y: f64, text: String },
}

/// A rectangle between values of both axes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bar {
    pub(crate) x: (f64, f64),
    pub(crate) y: (f64, f64),
}

/// Colours that people with any kind of sight distinguish (Okabe and Ito).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Colour {
    /// One of several series.
    Series(usize),
    Loss,
    Grey,
}

impl Axis {
    pub(crate) fn new(label: &str, quantity: Quantity, low: f64, high: f64) -> Self {
        // An axis without length shows nothing; around a single value it does.
        let (low, high) = match low < high {
            true => (low, high),
            false => (low - low.abs().max(1.0) * 0.01, low + low.abs().max(1.0) * 0.01),
        };
        Self { label: label.to_owned(), quantity, low, high, logarithmic: false }
    }

    /// The same by powers of ten, if values are positive and differ by so much that it helps.
    pub(crate) fn logarithmic_if_wide(self) -> Self {
        const WIDE: f64 = 50.0;
        let logarithmic = self.low > 0.0 && self.high / self.low >= WIDE;
        Self { logarithmic, ..self }
    }

    /// Lines for names.
    pub(crate) fn names(label: &str, names: Vec<String>) -> Self {
        let high = names.len() as f64;
        let quantity = Quantity::Names(names);
        Self { label: label.to_owned(), quantity, low: 0.0, high, logarithmic: false }
    }

    /// Where a value lies between the ends: 0 to 1.
    pub(super) fn place(&self, value: f64) -> f64 {
        let (low, high, value) = match self.logarithmic {
            true => (self.low.ln(), self.high.ln(), value.max(self.low).ln()),
            false => (self.low, self.high, value),
        };
        ((value - low) / (high - low)).clamp(0.0, 1.0)
    }
}

impl Layer {
    pub(crate) fn new(label: impl Into<String>, colour: Colour, shape: Shape) -> Self {
        Self { label: label.into(), colour, shape }
    }
}
