//! The mean delay of each cell over the last epochs.

use std::collections::{BTreeMap, HashMap};

use crate::known::{CellName, TopEstimate};

/// Cells with a course. Further ones have none, and are counted.
const CELLS_MAX: usize = 4_096;
/// Epochs of a course; older ones are forgotten.
const EPOCHS_MAX: usize = 240;

/// The course of all cells over time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Courses {
    cells: HashMap<CellName, BTreeMap<i64, Epoch>>,
    /// Rows of cells beyond [`CELLS_MAX`].
    left_out: u64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Epoch {
    used: Option<u64>,
    mean_ns: Option<i64>,
}

impl Courses {
    /// Adds an epoch that starts then; of several estimates, the one that rests on most packets counts.
    pub fn add(&mut self, start_ns: i64, estimate: &TopEstimate) {
        if self.cells.len() >= CELLS_MAX && !self.cells.contains_key(&estimate.cell) {
            self.left_out += 1;
            return;
        }
        let course = self.cells.entry(estimate.cell.clone()).or_default();
        let mean_ns = estimate.mean.value_ns;
        let new = Epoch { used: estimate.used, mean_ns };
        let known = course.entry(start_ns).or_insert(new);
        let is_better = known.mean_ns.is_none() || estimate.used >= known.used;
        if mean_ns.is_some() && is_better {
            *known = new;
        }
        if course.len() > EPOCHS_MAX {
            course.pop_first();
        }
    }

    /// Forgets what began before then.
    pub fn forget_before(&mut self, start_ns: i64) {
        for course in self.cells.values_mut() {
            *course = course.split_off(&start_ns);
        }
        self.cells.retain(|_, course| !course.is_empty());
    }

    /// The newest start of an epoch.
    #[must_use]
    pub fn newest_ns(&self) -> Option<i64> {
        self.cells.values().filter_map(|course| course.keys().next_back().copied()).max()
    }

    /// Whether cells have no course because there are too many.
    #[must_use]
    pub const fn is_cut(&self) -> bool {
        self.left_out > 0
    }

    /// The means of a cell in so many parts of a time; `None` where there is none.
    pub(crate) fn means(
        &self,
        cell: &CellName,
        span: (i64, i64),
        parts: usize,
    ) -> Vec<Option<f64>> {
        let mut sums = vec![(0.0, 0_u32); parts];
        let length = span.1.saturating_sub(span.0).max(1);
        let within = self.cells.get(cell).into_iter().flat_map(|course| course.range(span.0..));
        for (start_ns, epoch) in within {
            let since = i128::from(start_ns.saturating_sub(span.0));
            let part = (since * parts as i128 / i128::from(length)) as usize;
            if let (Some(mean_ns), Some((sum, count))) = (epoch.mean_ns, sums.get_mut(part)) {
                (*sum, *count) = (*sum + mean_ns as f64, *count + 1);
            }
        }
        let mean = |(sum, count)| (count > 0).then(|| sum / f64::from(count));
        sums.into_iter().map(mean).collect()
    }
}

/// A letter for each value, from the smallest to the largest; a space where there is none.
pub(crate) fn letters(means: &[Option<f64>]) -> String {
    const LEVELS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let known = || means.iter().flatten().copied();
    let (low, high) = (known().fold(f64::MAX, f64::min), known().fold(f64::MIN, f64::max));
    let level = |mean: f64| match high > low {
        true => LEVELS[((mean - low) / (high - low) * 7.0).round() as usize],
        false => LEVELS[3],
    };
    means.iter().map(|mean| mean.map_or(' ', level)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::known::TopDelay;

    fn estimate(class: &str, used: u64, mean_ns: Option<i64>) -> TopEstimate {
        let cell = CellName { class: class.to_owned(), ..CellName::default() };
        let mean = TopDelay { value_ns: mean_ns, ..TopDelay::default() };
        TopEstimate { cell, used: Some(used), mean, ..TopEstimate::default() }
    }

    fn shown(courses: &Courses, class: &str, span: (i64, i64), parts: usize) -> String {
        letters(&courses.means(&estimate(class, 0, None).cell, span, parts))
    }

    #[test]
    fn gaps_are_spaces_and_the_best_estimate_counts() {
        let mut courses = Courses::default();
        for (start_ns, used, mean_ns) in
            [(0, 5, Some(10)), (0, 9, Some(20)), (0, 1, Some(70)), (10, 9, None), (20, 1, Some(80))]
        {
            courses.add(start_ns, &estimate("voice", used, mean_ns));
        }
        assert_eq!(shown(&courses, "voice", (0, 30), 3), "▁ █");
        assert_eq!(shown(&courses, "bulk", (0, 30), 3), "   ");
        assert_eq!(courses.newest_ns(), Some(20));
        courses.forget_before(15);
        assert_eq!(shown(&courses, "voice", (0, 30), 3), "  ▄");
    }

    #[test]
    fn courses_are_bounded() {
        let mut courses = Courses::default();
        for start_ns in 0..1_000 {
            courses.add(start_ns, &estimate("voice", 1, Some(start_ns)));
        }
        assert_eq!(courses.cells.values().next().unwrap().len(), EPOCHS_MAX);
        for number in 0..CELLS_MAX + 10 {
            courses.add(0, &estimate(&number.to_string(), 1, Some(1)));
        }
        assert_eq!(courses.cells.len(), CELLS_MAX);
        assert!(courses.is_cut());
    }

    #[test]
    fn any_times_are_survived() {
        let mut courses = Courses::default();
        for start_ns in [i64::MIN, -1, i64::MAX] {
            courses.add(start_ns, &estimate("voice", 1, Some(start_ns)));
        }
        assert_eq!(shown(&courses, "voice", (i64::MIN, i64::MAX), 4).chars().count(), 4);
        assert_eq!(shown(&courses, "voice", (5, 5), 0), "");
    }
}
