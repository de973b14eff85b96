//! What is shown: the answers so far, what was chosen, and what is asked for next.

mod keys;
mod table;

pub use keys::TopKey;
pub(crate) use table::{Line, Table};

use crate::columns::Column;
use crate::course::Courses;
use crate::known::{CellName, KnownLine};
use crate::news::{HeatMap, News, PointSeen};

/// The state of the view.
#[derive(Clone, Debug)]
pub struct TopState {
    /// What answers: an address, an interface or a capture.
    pub(crate) source: String,
    pub(crate) view: View,
    pub(crate) segments: Table<KnownLine>,
    pub(crate) flows: Table<KnownLine>,
    pub(crate) courses: Courses,
    /// The time of the segments.
    pub(crate) span_ns: (i64, i64),
    pub(crate) remark: Option<String>,
    pub(crate) flows_answer: Option<FlowsAnswered>,
    pub(crate) heat: Option<(CellName, Result<HeatMap, String>)>,
    pub(crate) point: PointSeen,
    pub(crate) kinds: Table<crate::news::KindLine>,
    pub(crate) point_flows: Table<crate::news::PointLine>,
    /// When the last answer came.
    pub(crate) answered_ns: Option<i64>,
    /// Why there was none since.
    pub(crate) failed: Option<String>,
    pub(crate) shows_help: bool,
    /// A filter is being typed.
    pub(crate) is_typing: bool,
    pub(crate) filter: String,
    asked: u64,
}

/// Which page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum View {
    Segments,
    /// Of a cell.
    Flows(CellName),
    /// One point: its round trips, or its flows, have the keys.
    Point {
        has_flows: bool,
    },
}

/// Flows that came.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct FlowsAnswered {
    pub(crate) cell: CellName,
    pub(crate) remark: Option<String>,
}

/// What a view needs beyond what always comes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// The cell of which a heat map is shown.
    pub heat: Option<CellName>,
    /// The cell of which flows are shown.
    pub flows: Option<CellName>,
    /// Flows with most loss, not with the longest delay.
    pub by_loss: bool,
    /// Changes when all is to be asked again at once.
    pub asked: u64,
}

impl TopState {
    /// Shows what a collector knows.
    #[must_use]
    pub fn of_collector(source: impl Into<String>) -> Self {
        Self::new(source.into(), View::Segments)
    }

    /// Shows what one point sees.
    #[must_use]
    pub fn of_point(source: impl Into<String>) -> Self {
        Self::new(source.into(), View::Point { has_flows: false })
    }

    fn new(source: String, view: View) -> Self {
        Self {
            source,
            view,
            segments: Table::sorted_by(Column::P99),
            flows: Table::sorted_by(Column::Mean),
            courses: Courses::default(),
            span_ns: (0, 0),
            remark: None,
            flows_answer: None,
            heat: None,
            point: PointSeen::default(),
            kinds: Table::sorted_by(Column::Packets),
            point_flows: Table::sorted_by(Column::Packets),
            answered_ns: None,
            failed: None,
            shows_help: false,
            is_typing: false,
            filter: String::new(),
            asked: 0,
        }
    }

    /// Takes an answer that came now.
    pub fn apply(&mut self, news: News, now_ns: i64) {
        match news {
            News::Failed(reason) => {
                self.failed = Some(reason);
                return;
            }
            News::Segments { totals, courses, span_ns, remark } => {
                self.segments.replace(KnownLine::of_all(&totals));
                (self.courses, self.span_ns, self.remark) = (courses, span_ns, remark);
            }
            News::Heat { cell, answer } => self.heat = Some((cell, answer)),
            News::Flows { cell, flows, remark } => {
                self.flows.replace(KnownLine::of_all(&flows));
                self.flows_answer = Some(FlowsAnswered { cell, remark });
            }
            News::Point(mut seen) => {
                self.kinds.replace(std::mem::take(&mut seen.kinds));
                self.point_flows.replace(std::mem::take(&mut seen.flows));
                self.point = seen;
            }
        }
        self.answered_ns = Some(now_ns);
        self.failed = None;
    }

    /// What to ask for.
    #[must_use]
    pub fn wanted(&self) -> Wanted {
        let (heat, flows) = match &self.view {
            View::Segments => (self.selected_cell(), None),
            View::Flows(cell) => (None, Some(cell.clone())),
            View::Point { .. } => (None, None),
        };
        let by_loss = flows.is_some() && self.flows.sort == Column::Loss;
        Wanted { heat, flows, by_loss, asked: self.asked }
    }

    /// The line of segments that is selected.
    pub(crate) fn selected_cell(&self) -> Option<CellName> {
        self.segments.selected(&self.filter).map(|line| line.cell.clone())
    }
}

#[cfg(test)]
mod tests;
