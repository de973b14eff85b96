//! The line below all delays: the lower convex hull of delay over time, as packets come.
//!
//! Queues only ever add to a delay, so what is left at the bottom is the way itself, and what a
//! clock gains. The line that lies below all packets and is nearest to them on average is the side
//! of the hull above their mean time. L. Zhang, Z. Liu, C. H. Xia: "Clock Synchronization
//! Algorithms for Network Measurements", INFOCOM 2002; the linear programme is that of S. Moon,
//! P. Skelly, D. Towsley: "Estimation and Removal of Clock Skew from Network Delay Measurements",
//! INFOCOM 1999.

/// Corners that are kept at most. Of more, the one that matters least goes.
pub const HULL_VERTICES_MAX: usize = 256;

/// The lower convex hull of points that come in order of time.
#[derive(Clone, Debug, Default)]
pub struct LowerHull {
    /// In order of time, slopes rising.
    vertices: Vec<(f64, f64)>, // at most HULL_VERTICES_MAX
    count: u64,
    time_sum: f64,
    given_up: u64,
}

/// A straight line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Line {
    /// Height at time 0.
    pub intercept: f64,
    /// Height gained per unit of time.
    pub slope: f64,
}

impl Line {
    /// Its height at a time.
    #[must_use]
    pub fn at(&self, time: f64) -> f64 {
        self.intercept + self.slope * time
    }
}

impl LowerHull {
    /// No points yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a point, no earlier than those before.
    pub fn add(&mut self, time: f64, height: f64) {
        self.count += 1;
        self.time_sum += time;
        if let Some(&(last, lowest)) = self.vertices.last()
            && last >= time
        {
            if height >= lowest {
                return;
            }
            self.vertices.pop();
        }
        while let [.., before, last] = self.vertices.as_slice()
            && !turns_up(*before, *last, (time, height))
        {
            self.vertices.pop();
        }
        self.vertices.push((time, height));
        if self.vertices.len() > HULL_VERTICES_MAX {
            self.give_one_up();
        }
    }

    /// The line below all points that is nearest to them on average; `None` unless there are
    /// points of two times.
    #[must_use]
    pub fn line(&self) -> Option<Line> {
        let mean = self.time_sum / self.count as f64;
        let side = self.vertices.windows(2).find(|side| side[1].0 >= mean);
        let [(from, low), (to, high)] = *side.or(self.vertices.windows(2).last())? else {
            return None;
        };
        let slope = (high - low) / (to - from);
        Some(Line { intercept: low - slope * from, slope })
    }

    /// Its corners, in order of time.
    #[must_use]
    pub fn vertices(&self) -> &[(f64, f64)] {
        &self.vertices
    }

    /// Corners that were given up for want of room.
    #[must_use]
    pub const fn given_up(&self) -> u64 {
        self.given_up
    }

    /// Gives up the corner that cuts off the smallest triangle.
    fn give_one_up(&mut self) {
        let area = |index: usize| {
            let [one, two, three] = [index - 1, index, index + 1].map(|at| self.vertices[at]);
            cross(one, two, three).abs()
        };
        let inner = 1..self.vertices.len() - 1;
        if let Some(least) = inner.min_by(|&one, &other| area(one).total_cmp(&area(other))) {
            self.vertices.remove(least);
            self.given_up += 1;
        }
    }
}

/// Whether the way over three points, in order of time, bends upwards at the second.
fn turns_up(one: (f64, f64), two: (f64, f64), three: (f64, f64)) -> bool {
    cross(one, two, three) > 0.0
}

fn cross(one: (f64, f64), two: (f64, f64), three: (f64, f64)) -> f64 {
    (two.0 - one.0) * (three.1 - one.1) - (two.1 - one.1) * (three.0 - one.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hull(heights: &[f64]) -> LowerHull {
        let mut hull = LowerHull::new();
        for (time, &height) in heights.iter().enumerate() {
            hull.add(time as f64, height);
        }
        hull
    }

    #[track_caller]
    fn check(heights: &[f64], slope: f64, intercept: f64) {
        assert_eq!(hull(heights).line(), Some(Line { intercept, slope }));
    }

    #[test]
    fn the_line_is_the_side_above_the_mean_time() {
        check(&[5.0, 4.0, 6.0, 5.5, 7.0], 0.75, 3.25);
        check(&[1.0, 1.0, 1.0], 0.0, 1.0);
        check(&[0.0, 9.0, 9.0, 3.0], 1.0, 0.0);
        assert_eq!(hull(&[1.0]).line(), None);
        assert_eq!(hull(&[]).line(), None);
    }

    #[test]
    fn of_points_at_one_time_the_lowest_counts() {
        let mut hull = LowerHull::new();
        for (time, height) in [(0.0, 2.0), (0.0, 1.0), (1.0, 5.0), (1.0, 3.0), (1.0, 4.0)] {
            hull.add(time, height);
        }
        assert_eq!(hull.line(), Some(Line { intercept: 1.0, slope: 2.0 }));
    }

    #[test]
    fn a_bowl_of_corners_stays_bounded() {
        let mut hull = LowerHull::new();
        for time in -5000..=5000 {
            let time = f64::from(time);
            hull.add(time, time * time);
        }
        assert_eq!(hull.vertices().len(), HULL_VERTICES_MAX);
        assert!(hull.given_up() > 0);
        // The bottom of the bowl, within a side of the polygon that is left.
        assert!(hull.line().unwrap().slope.abs() < 100.0);
    }
}
