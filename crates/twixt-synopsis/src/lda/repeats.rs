//! Identical packets, found in the counts of cells.
//!
//! Packets with one digest fall into one cell: they are a cluster, not independent draws. A single loss
//! among them makes their cell useless, so that usable cells hold fewer of them than there are; and
//! if no one of them is lost, their cell weighs more than all others. Nothing at a point needs to
//! remember digests to notice. Digests that occur once fall into cells like drops of rain: counts of a
//! bank follow a Poisson distribution, and the packets that arrived in usable cells are, on average, as
//! many as those that arrived in any cell, whatever was lost and why. So a cell with far more packets
//! than the others of its bank holds identical ones, and where usable cells are emptier than others,
//! it is identical packets that are missing. That costs no memory, no byte and no instruction per
//! packet, both points agree on it, merging and moving packets change nothing, and epochs that were
//! recorded before it was known can be estimated with it.

use std::collections::BTreeSet;

use twixt_model::Span;

use super::Lda;
use crate::heartbeats::Excluded;
use crate::independent::{Counts, LIMIT_CHANCE, limit_of};
use crate::question::Question;
use crate::sums::{Sums, Usable};
use crate::synopsis::Pair;

/// Cells of both points, sorted by what their counts say.
pub(super) struct Cells {
    /// Cell by cell, bank by bank, without those of many identical packets; `None` where packets were
    /// lost or added, or there were none.
    pub(super) ordinary: Vec<Option<Usable>>,
    /// Cells of many identical packets whose delays are known.
    pub(super) heavy: Vec<Usable>,
    /// By how much the sum of these delays may be wrong, as it is not known which packets were lost.
    pub(super) doubt_ns: f64,
    /// Cells of many identical packets of which some were lost.
    bounded: Vec<Bounded>,
    /// Estimated number of packets that arrived and that no usable cell stands for.
    pub(super) left_out: f64,
    /// Whether ordinary cells hold identical packets too.
    pub(super) are_clustered: bool,
}

/// A cell of many identical packets of which some were lost, no one knows which. Whichever they were, they were
/// sent within the epoch: that bounds the sum of delays of those that arrived.
struct Bounded {
    /// In the middle of what is possible.
    cell: Usable,
    /// Half of what is possible.
    doubt_ns: f64,
    /// Packets that are identical to others, the lost ones not included.
    identical: f64,
}

/// Counts scatter more than those of independent packets by so many standard errors, or
/// fewer are sampled: one bank in three million by chance.
const SCATTER_ERRORS: f64 = 5.0;
/// Usable cells are emptier than others by so many standard errors.
const EMPTIER_ERRORS: f64 = 3.0;

impl Cells {
    /// Those of two points, whose cells have these sums.
    pub(super) fn of(pair: Pair<'_, Lda>, sums: &[Vec<Sums>; 2], question: &Question<'_>) -> Self {
        let (upstream, [sent, received]) = (pair.upstream, sums);
        let rows = upstream.config.rows() as usize;
        let mut cells = Self {
            ordinary: Vec::with_capacity(sent.len()),
            heavy: Vec::new(),
            doubt_ns: 0.0,
            bounded: Vec::new(),
            left_out: 0.0,
            are_clustered: false,
        };
        let heartbeats = cells.leave_out_heartbeats(upstream, question);
        let (mut ordinary, mut identical) = (0.0, 0.0);
        for bank in sent.chunks(rows).zip(received.chunks(rows)) {
            let counted = cells.add_bank(bank, &heartbeats, question);
            ordinary += counted;
            identical += bank.0.iter().map(|cell| cell.packets as f64).sum::<f64>() - counted;
        }
        let others = upstream.totals.packets as f64 - identical;
        cells.left_out += unsampled(others, ordinary, upstream.config.sampling()[0]);
        cells
    }

    /// Which cells hold packets that may not be the same ones at both points: that they agree tells nothing.
    fn leave_out_heartbeats(&mut self, lda: &Lda, question: &Question<'_>) -> BTreeSet<usize> {
        self.left_out += Excluded::of(question.incomplete()).packets as f64;
        let cells = question.incomplete().filter_map(|alike| lda.config.cell_for(alike.digest));
        cells.collect()
    }

    /// Adds the cells of a bank; returns how many packets were counted in the ordinary ones.
    fn add_bank(
        &mut self,
        (upstream, downstream): (&[Sums], &[Sums]),
        heartbeats: &BTreeSet<usize>,
        question: &Question<'_>,
    ) -> f64 {
        let reference_ns = question.reference.as_nanos();
        let (mean, limit) =
            limit_of(|| upstream.iter().map(|cell| cell.packets as f64), LIMIT_CHANCE);
        let (mut all, mut usable) = (Counts::default(), Counts::default());
        let mut received = Counts::default();
        // Cells of banks before this one are in the list already.
        let first = self.ordinary.len();
        for (index, (one, other)) in upstream.iter().zip(downstream).enumerate() {
            if heartbeats.contains(&(first + index)) {
                self.ordinary.push(None);
                continue;
            }
            let found = Usable::of(one, other, reference_ns);
            if one.packets as f64 > limit {
                self.heavy.extend(found);
                if found.is_none() {
                    self.bounded.push(Bounded::of([one, other], mean, question));
                }
                self.ordinary.push(None);
                continue;
            }
            all.add(one.packets as f64);
            received.add(other.packets as f64);
            if one.agrees_with(other) {
                usable.add(one.packets as f64);
            }
            self.ordinary.push(found);
        }
        if all.scatter_errors() > SCATTER_ERRORS {
            self.are_clustered = true;
            self.left_out += missing(&usable, &received);
        }
        all.sum
    }

    /// Cells of identical packets that lost some stand for themselves, as far as they are known; `None` if
    /// there is no such cell.
    pub(super) fn with_bounds(&self) -> Option<Self> {
        let cells = || self.bounded.iter().map(|bounded| bounded.cell);
        let doubt_ns = self.bounded.iter().map(|bounded| bounded.doubt_ns).sum();
        (!self.bounded.is_empty()).then(|| Self {
            ordinary: self.ordinary.clone(),
            heavy: self.heavy.iter().copied().chain(cells()).collect(),
            doubt_ns,
            bounded: Vec::new(),
            ..*self
        })
    }

    /// They are left out.
    pub(super) fn without_bounds(mut self) -> Self {
        self.left_out += self.bounded.iter().map(|bounded| bounded.identical).sum::<f64>();
        self.bounded.clear();
        self
    }

    /// Packets in cells of many identical ones whose delays are known. Saturates: counts may be hostile.
    pub(super) fn heavy_packets(&self) -> u64 {
        self.heavy.iter().fold(0, |sum, cell| sum.saturating_add(cell.packets))
    }
}

impl Bounded {
    /// `mean` is the number of packets of an ordinary cell. Sums wrap around: counts may be hostile.
    fn of([sent, received]: [&Sums; 2], mean: f64, question: &Question<'_>) -> Self {
        let Span { start, end } = question.span;
        let (start_ns, end_ns) = (start.as_nanos(), end.as_nanos());
        let half_ns = (end_ns.saturating_sub(start_ns) / 2).max(0);
        let lost = sent.packets.wrapping_sub(received.packets);
        let lost_ns = lost.wrapping_mul(start_ns.wrapping_add(half_ns) as u64);
        let reference_ns = received.packets.wrapping_mul(question.reference.as_nanos() as u64);
        let sum_ns = received.times.wrapping_sub(sent.times);
        let delay_sum_ns = sum_ns.wrapping_add(lost_ns).wrapping_sub(reference_ns) as i64;
        // More packets downstream than upstream: there are strays, and no bound.
        let is_bounded = received.packets <= sent.packets;
        Self {
            cell: Usable { packets: received.packets, delay_sum_ns },
            doubt_ns: if is_bounded { lost as f64 * half_ns as f64 } else { f64::INFINITY },
            identical: (received.packets as f64 - mean).max(0.0),
        }
    }
}

/// Packets that arrived and are missing from usable cells, since those are emptier than others.
fn missing(usable: &Counts, received: &Counts) -> f64 {
    if usable.cells < 2.0 || received.sum == 0.0 {
        return received.sum;
    }
    let error = (usable.scatter() / (usable.cells - 1.0) / usable.cells).sqrt();
    let emptier = received.mean() - usable.mean();
    if emptier > EMPTIER_ERRORS * error { emptier / received.mean() * received.sum } else { 0.0 }
}

/// Of packets that reach no bank, those that are more than chance explains: their digest is not sampled.
fn unsampled(packets: f64, counted: f64, sampled: f64) -> f64 {
    let expected = counted / sampled;
    let error = (counted * (1.0 - sampled)).sqrt() / sampled;
    let more = packets - expected;
    if sampled < 1.0 && more > SCATTER_ERRORS * error { more } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_that_no_bank_sampled_are_noticed() {
        assert_eq!(unsampled(1000.0, 1000.0, 1.0), 0.0);
        assert_eq!(unsampled(1000.0, 110.0, 0.1), 0.0);
        assert!((unsampled(30_000.0, 1500.0, 0.1) - 15_000.0).abs() < 1e-6);
    }
}
