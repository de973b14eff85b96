//! How fast the clocks drift apart, by what both directions show.
//!
//! A clock that gains adds to the differences of both directions alike. A queue that fills or a path
//! that gets longer adds to one of them. So a trend is the clock's where both directions show it; it is
//! not where one direction stays level, as a path that makes up for a clock to the nanosecond is
//! the less simple explanation. What remains cannot be told apart, and is not claimed.

use super::SKEW_MAX_PPM;
use super::skew::{Skew, estimate};
use super::track::Track;

/// Why it is not known how fast the clocks drift apart.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SkewDoubt {
    /// There are too few packets, or all at one time.
    FewPackets,
    /// Both directions show a trend, and not the same.
    Unlike {
        /// Parts per million that packets going downstream show.
        downstream_ppm: f64,
        /// Parts per million that packets going upstream show.
        upstream_ppm: f64,
    },
    /// One direction shows a trend, and the other one too little to confirm it.
    Unconfirmed {
        /// Parts per million that it shows.
        ppm: f64,
    },
    /// Delays grow or shrink faster than any clock drifts: a queue.
    Queue {
        /// Parts per million that it shows.
        ppm: f64,
    },
}

impl std::fmt::Display for SkewDoubt {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::FewPackets => write!(out, "too few packets"),
            Self::Unlike { downstream_ppm, upstream_ppm } => write!(
                out,
                "packets going downstream show {downstream_ppm:.1} ppm and those going upstream \
                 {upstream_ppm:.1} ppm: a queue or a path changed as well"
            ),
            Self::Unconfirmed { ppm } => write!(
                out,
                "one direction shows {ppm:.1} ppm, which the other does not confirm: it may be a queue"
            ),
            Self::Queue { ppm } => {
                write!(out, "delays change by {ppm:.0} ppm, faster than any clock drifts: a queue")
            }
        }
    }
}

/// What packets that went downstream show, and those that went upstream, if there are any: the parts
/// of each between changes of its level, the longest first.
pub(super) fn judge(forward: &[Track], backward: &[Track]) -> Result<Skew, SkewDoubt> {
    let ours = of_parts(forward.iter().map(estimate));
    // Of packets that went upstream, the fastest have the largest differences.
    let theirs = of_parts(backward.iter().map(|part| estimate(&part.upside_down())));
    let theirs = theirs.map(|skew| Skew { ppm: -skew.ppm, ..skew });
    match (ours, theirs) {
        (None, None) => Err(SkewDoubt::FewPackets),
        (Some(only), None) | (None, Some(only)) => plausible(only),
        (Some(ours), Some(theirs)) => together(ours, theirs),
    }
}

/// What the longest part shows, with a doubt that is large where another part shows something else.
fn of_parts(mut parts: impl Iterator<Item = Option<Skew>>) -> Option<Skew> {
    let mut skew = parts.next()??;
    let sure_ppm = skew.error_ppm;
    for other in parts.flatten() {
        let differ = (skew.ppm - other.ppm).abs();
        if differ > sure_ppm + other.error_ppm {
            skew.error_ppm = skew.error_ppm.max(differ);
        }
    }
    Some(skew)
}

fn together(ours: Skew, theirs: Skew) -> Result<Skew, SkewDoubt> {
    match (ours.is_sure(), theirs.is_sure()) {
        (true, true) => {
            let differ = (ours.ppm - theirs.ppm).abs();
            if differ > ours.error_ppm + theirs.error_ppm {
                return Err(SkewDoubt::Unlike {
                    downstream_ppm: ours.ppm,
                    upstream_ppm: theirs.ppm,
                });
            }
            let surer = if ours.error_ppm <= theirs.error_ppm { ours } else { theirs };
            plausible(Skew { error_ppm: surer.error_ppm.max(differ / 2.0), ..surer })
        }
        (false, false) => Ok(if ours.error_ppm <= theirs.error_ppm { ours } else { theirs }),
        (true, false) => level(theirs, ours),
        (false, true) => level(ours, theirs),
    }
}

/// One direction is level, as far as it can tell, and the other shows a trend.
fn level(level: Skew, trend: Skew) -> Result<Skew, SkewDoubt> {
    // If it could not show the trend either, nothing is known.
    match level.error_ppm < trend.ppm.abs() / 2.0 {
        true => Ok(level),
        false => Err(SkewDoubt::Unconfirmed { ppm: trend.ppm }),
    }
}

fn plausible(skew: Skew) -> Result<Skew, SkewDoubt> {
    match skew.ppm.abs() <= SKEW_MAX_PPM || !skew.is_sure() {
        true => Ok(skew),
        false => Err(SkewDoubt::Queue { ppm: skew.ppm }),
    }
}

impl SkewDoubt {
    /// The same, seen from the other point.
    pub(super) fn turned(self) -> Self {
        match self {
            Self::FewPackets => self,
            Self::Unlike { downstream_ppm, upstream_ppm } => {
                Self::Unlike { downstream_ppm: -upstream_ppm, upstream_ppm: -downstream_ppm }
            }
            Self::Unconfirmed { ppm } => Self::Unconfirmed { ppm: -ppm },
            Self::Queue { ppm } => Self::Queue { ppm: -ppm },
        }
    }
}
