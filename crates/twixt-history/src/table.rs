//! Tables: rows of one kind, with columns of their own, in a folder of their own.
//!
//! All of them are written, sealed, rolled up, forgotten and asked for by the same code. A table says
//! which columns its files have, and no more.

use crate::column::{COLUMNS, Column, HEAVY_COLUMNS, REORDERING_COLUMNS, ROUND_TRIP_COLUMNS};

/// Which rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Table {
    /// Delay and loss between two points.
    #[default]
    Estimates,
    /// Round trips at one point.
    RoundTrips,
    /// Reordering at one point.
    Reordering,
    /// Large flows at one point.
    Heavy,
}

impl Table {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Estimates, Self::RoundTrips, Self::Reordering, Self::Heavy];
    /// Those of one point.
    pub const OF_ONE_POINT: [Self; 3] = [Self::RoundTrips, Self::Reordering, Self::Heavy];

    /// The name of its folder in the directory of a collector.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Estimates => "estimates",
            Self::RoundTrips => "round-trips",
            Self::Reordering => "reordering",
            Self::Heavy => "heavy",
        }
    }

    /// Its columns, in the order in which they stand in files.
    #[must_use]
    pub const fn columns(self) -> &'static [Column] {
        match self {
            Self::Estimates => COLUMNS,
            Self::RoundTrips => ROUND_TRIP_COLUMNS,
            Self::Reordering => REORDERING_COLUMNS,
            Self::Heavy => HEAVY_COLUMNS,
        }
    }

    /// The columns of the points that rows are of: the upstream and the downstream one.
    pub(crate) const fn ends(self) -> [&'static str; 2] {
        match self {
            Self::Estimates => ["upstream", "downstream"],
            _ => ["point", "point"],
        }
    }

    /// How many columns rows are sorted by, from the first one on: up to `start_ns`.
    pub(crate) fn sorted_columns(self) -> usize {
        let place = self.columns().iter().position(|column| column.name == "start_ns");
        place.map_or(0, |place| place + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_have_names_of_their_own() {
        for table in Table::ALL {
            let mut names: Vec<&str> = table.columns().iter().map(|column| column.name).collect();
            names.sort_unstable();
            let count = names.len();
            names.dedup();
            assert_eq!(names.len(), count, "{table:?}");
            assert!(table.ends().iter().all(|end| names.contains(end)));
            assert!(table.sorted_columns() > 5);
        }
    }
}
