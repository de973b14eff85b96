//! How many were selected of how many.

use super::Selection;

/// How many packets or flows a selector saw, and what it decided.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SelectionCounts {
    /// Decided about.
    pub observed: u64,
    /// Selected.
    pub selected: u64,
    /// Without a hash.
    pub undefined: u64,
}

impl SelectionCounts {
    /// Counts one decision, and says whether it selects.
    #[inline]
    pub fn count(&mut self, selection: Selection) -> bool {
        self.observed = self.observed.saturating_add(1);
        let selected = selection == Selection::Selected;
        self.selected = self.selected.saturating_add(u64::from(selected));
        self.undefined =
            self.undefined.saturating_add(u64::from(selection == Selection::Undefined));
        selected
    }

    /// The part that was selected of what had a hash. It is that of the range only if the input
    /// varies enough; `None` if there was nothing.
    #[must_use]
    pub fn achieved_rate(&self) -> Option<f64> {
        let decided = self.observed.saturating_sub(self.undefined);
        (decided > 0).then(|| self.selected as f64 / decided as f64)
    }
}
