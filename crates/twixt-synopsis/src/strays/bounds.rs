//! How many strays there are, where packets are counted in cells.
//!
//! A cell that counted u packets upstream and d downstream lost u − d more than it has strays. So
//! counts bound the difference and never the loss alone. Digest sums tell more: equal counts of
//! different digests mean at least one of each.

use twixt_model::LossRange;

use crate::interval::Z95;
use crate::sums::Sums;

/// What a cell surely lost, and surely has of strays; no more than that if it is settled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CellDifference {
    pub(crate) lost: u64,
    pub(crate) strays: u64,
    pub(crate) is_settled: bool,
}

impl CellDifference {
    /// `belongs` tells whether a packet with this digest would be in the cell: a difference of one
    /// packet then is that packet, or, if it would not, several.
    pub(crate) fn of(upstream: &Sums, downstream: &Sums, belongs: impl Fn(u64) -> bool) -> Self {
        let lost = upstream.packets.saturating_sub(downstream.packets);
        let strays = downstream.packets.saturating_sub(upstream.packets);
        let digest = upstream.digests.wrapping_sub(downstream.digests);
        match (lost, strays) {
            (0, 0) if digest == 0 => Self { lost, strays, is_settled: true },
            (0, 0) => Self { lost: 1, strays: 1, is_settled: false },
            (1, 0) if belongs(digest) => Self { lost, strays, is_settled: true },
            (0, 1) if belongs(digest.wrapping_neg()) => Self { lost, strays, is_settled: true },
            (1, 0) | (0, 1) => Self { lost: lost + 1, strays: strays + 1, is_settled: false },
            _ => Self { lost, strays, is_settled: false },
        }
    }
}

/// Bounds on the strays among packets of which each is counted in one cell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Bounds {
    /// So many for sure.
    pub(crate) min: u64,
    /// No more than that.
    pub(crate) max: u64,
}

impl Bounds {
    /// Of cells that together count every packet: what each surely has, and no more than it counted
    /// downstream unless it is settled.
    pub(crate) fn add(&mut self, cell: CellDifference, received: u64) {
        let most = if cell.is_settled { cell.strays } else { received };
        self.min = self.min.saturating_add(cell.strays);
        self.max = self.max.saturating_add(most);
    }

    /// Loss and strays where nothing but totals is known.
    pub(crate) fn counted(sent: u64, received: u64) -> [LossRange; 2] {
        let LossRange { min, max } = counted_strays(sent, received);
        Self { min, max }.ranges(sent, received)
    }

    /// Loss and strays, by these and by how many packets there are in all.
    ///
    /// Where nothing shows a stray, loss is what is missing: the bound on strays says how far that
    /// may be wrong. Otherwise it is no less than that, if every stray is a packet that was changed on
    /// the way, and no more than that and all strays, if none is.
    pub(crate) fn ranges(self, sent: u64, received: u64) -> [LossRange; 2] {
        let min = self.min.max(received.saturating_sub(sent));
        let strays = LossRange { min, max: self.max.clamp(min, received.max(min)) };
        let least = sent.saturating_sub(received);
        let most = LossRange::beside_strays(strays, sent, received).map_or(least, |most| most.max);
        let max = if min == 0 { least } else { most.max(least) };
        [LossRange { min: least, max }, strays]
    }
}

/// Bounds on strays where nothing but counts is compared: any packet downstream may be one.
pub(crate) fn counted_strays(sent: u64, received: u64) -> LossRange {
    LossRange { min: received.saturating_sub(sent), max: received }
}

/// Why loss is unknown where such counts show strays.
pub(crate) const MORE_DOWNSTREAM: &str = "more packets downstream than upstream: loss is unknown";

/// Strays that chance, by digests, scatters over cells: those that are alone in their cell tell how
/// many there are.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Scattered {
    pub(crate) certain: Bounds,
    /// Cells whose only difference is one stray.
    pub(crate) alone: u64,
    /// The share of strays that are alone, and the variance of that: it is seen in few cells.
    pub(crate) visible: f64,
    pub(crate) visible_variance: f64,
}

impl Scattered {
    /// 95 % bounds, by the distribution of Poisson; no wider than the certain ones.
    pub(crate) fn bounds(&self) -> Bounds {
        let Self { certain, alone, visible, visible_variance } = *self;
        let visible = visible.max(f64::MIN_POSITIVE);
        // Errors of both factors are relative, and independent.
        let off = Z95 * visible_variance.sqrt() / visible;
        let middle = (alone as f64).max(1.0);
        let scaled = |end: f64| {
            let ratio = end.max(f64::MIN_POSITIVE).ln() - middle.ln();
            (middle / visible * (ratio.signum() * ratio.hypot(off)).exp()).min(u64::MAX as f64)
        };
        let low = if alone == 0 { 0 } else { scaled(poisson_low(alone)).ceil() as u64 };
        let high = match alone == 0 && certain.min == 0 && visible >= VISIBLE_MIN {
            true => 0,
            false => scaled(poisson_high(alone)).floor() as u64,
        };
        let max = high.clamp(certain.min, certain.max.max(certain.min));
        Bounds { min: low.clamp(certain.min, max), max }
    }
}

/// A single stray is seen with this probability, if it is said that there is none.
const VISIBLE_MIN: f64 = 0.95;

/// Ends of the two-sided 95 % interval of a mean of which `count` were seen, by Wilson and Hilferty's
/// approximation of the quantiles of chi-squared.
pub(crate) fn poisson_high(count: u64) -> f64 {
    let degrees = count as f64 + 1.0;
    degrees * (1.0 - 1.0 / (9.0 * degrees) + Z95 / (3.0 * degrees.sqrt())).powi(3)
}

pub(crate) fn poisson_low(count: u64) -> f64 {
    let degrees = count as f64;
    match count {
        0 => 0.0,
        _ => {
            degrees * (1.0 - 1.0 / (9.0 * degrees) - Z95 / (3.0 * degrees.sqrt())).max(0.0).powi(3)
        }
    }
}
