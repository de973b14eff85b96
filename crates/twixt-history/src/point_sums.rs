//! What is known of one point alone, in a form that can be added up: of round trips, of reordering,
//! and of large flows.

mod heavy;
mod reordering;
mod round_trips;

pub use heavy::{FlowRange, HeavySums};
pub use reordering::ReorderSums;
pub use round_trips::RoundTripSums;
pub(crate) use round_trips::RoundTripTotal;

/// What a row of one point says beside what was observed there.
#[derive(Clone, Debug, PartialEq)]
pub enum PointSums {
    /// Round trips of one kind.
    RoundTrips(Box<RoundTripSums>),
    /// Packets that came out of order.
    Reordering(ReorderSums),
    /// A flow.
    Heavy(HeavySums),
}

impl PointSums {
    /// Of round trips, if it is of these.
    #[must_use]
    pub fn round_trips(&self) -> Option<&RoundTripSums> {
        match self {
            Self::RoundTrips(sums) => Some(sums),
            _ => None,
        }
    }

    /// Of reordering, if it is of that.
    #[must_use]
    pub const fn reordering(&self) -> Option<&ReorderSums> {
        match self {
            Self::Reordering(sums) => Some(sums),
            _ => None,
        }
    }

    /// Of large flows, if it is of these.
    #[must_use]
    pub const fn heavy(&self) -> Option<&HeavySums> {
        match self {
            Self::Heavy(sums) => Some(sums),
            _ => None,
        }
    }

    /// Leaves out histograms, which are most of it.
    pub(crate) fn without_histogram(&mut self) {
        if let Self::RoundTrips(sums) = self {
            sums.histogram = None;
        }
    }

    /// What it takes in memory beside itself.
    pub(crate) fn heap_bytes(&self) -> usize {
        match self {
            Self::RoundTrips(sums) => size_of::<RoundTripSums>() + sums.heap_bytes(),
            Self::Reordering(_) | Self::Heavy(_) => 0,
        }
    }
}

/// The sum of several, as they come.
#[derive(Clone, Debug)]
pub(crate) enum PointTotal {
    RoundTrips(Box<RoundTripTotal>),
    Reordering(ReorderSums),
    Heavy(HeavySums),
}

impl PointTotal {
    pub(crate) fn of(sums: &PointSums) -> Self {
        match sums {
            PointSums::RoundTrips(sums) => Self::RoundTrips(Box::new(RoundTripTotal::of(sums))),
            PointSums::Reordering(sums) => Self::Reordering(*sums),
            PointSums::Heavy(sums) => Self::Heavy(*sums),
        }
    }

    /// Rows of one table are of one sort; others are left.
    pub(crate) fn add(&mut self, sums: &PointSums) {
        match (self, sums) {
            (Self::RoundTrips(total), PointSums::RoundTrips(sums)) => total.add(sums),
            (Self::Reordering(total), PointSums::Reordering(sums)) => total.add(sums),
            (Self::Heavy(total), PointSums::Heavy(sums)) => total.add(sums),
            _ => {}
        }
    }

    pub(crate) fn sums(&self) -> PointSums {
        match self {
            Self::RoundTrips(total) => PointSums::RoundTrips(Box::new(total.sums())),
            Self::Reordering(sums) => PointSums::Reordering(*sums),
            Self::Heavy(sums) => PointSums::Heavy(*sums),
        }
    }

    /// How much of what there is in all it stands for: scopes with the least give way.
    pub(crate) fn weight(&self) -> f64 {
        match self {
            Self::RoundTrips(total) => total.weighted(),
            Self::Reordering(sums) => sums.packets as f64,
            Self::Heavy(sums) => sums.packets as f64,
        }
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        match self {
            Self::RoundTrips(total) => total.heap_bytes(),
            Self::Reordering(_) | Self::Heavy(_) => 0,
        }
    }
}
