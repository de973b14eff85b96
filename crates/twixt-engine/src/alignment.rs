//! Which epoch of downstream is which of upstream's.
//!
//! Numbers of epochs come from the points' clocks. As long as these agree to within the guard,
//! equal numbers mean equal epochs. Else the packets that both kept near boundaries have nothing
//! in common, and nothing may be estimated. The same packets kept near *other* boundaries then
//! tell how far the clocks are apart; if that is a whole number of epochs and a rest within the
//! guard, epochs are paired with a constant difference of their numbers.

use std::collections::{BTreeSet, HashMap};

use twixt_model::{Delay, Epoch, EpochRule, PacketDigest, Timestamp};

use crate::event::GapReason;
use crate::overlap::{Overlap, compare_at, median};
use crate::sample::PointSample;

/// As few packets at a point say nothing if they are missing at the other.
const PACKETS_MIN: u64 = 8;
/// Packets that must agree on a difference of clocks before epochs are paired by it.
const AGREEING_MIN: usize = 8;
/// Epochs of each point, the last that came, that are searched for packets in common.
pub(crate) const SEARCHED_EPOCHS: usize = 16;
/// Epochs of downstream that are searched first: after a clock was set, older ones mislead.
const SEARCHED_FIRST: usize = 4;

/// What is known of two points' clocks.
#[derive(Clone, Debug)]
pub(crate) struct Alignment {
    rule: EpochRule,
    state: AlignmentState,
    /// Whether packets in common have shown it, or bounds on the clocks' errors.
    verified: bool,
}

/// Which epochs belong together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum AlignmentState {
    /// That is not known yet: epochs have to wait.
    Unknown,
    /// Those whose numbers differ by this.
    Aligned { realigned_epochs: i64 },
    /// None do.
    Apart(GapReason),
}

impl AlignmentState {
    /// Whether another says the same, to within what offsets vary by.
    fn is_like(&self, other: &Self) -> bool {
        match (self, other) {
            (
                Self::Apart(GapReason::ClocksApart { offset: one, guard, .. }),
                Self::Apart(GapReason::ClocksApart { offset: other, .. }),
            ) => (*one - *other).as_nanos().abs() <= guard.as_nanos(),
            _ => self == other,
        }
    }
}

/// How far clocks are apart, by packets that both points kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Offset {
    /// Downstream's times are later by this.
    pub(crate) offset: Delay,
    /// Packets that say so.
    pub(crate) digests: usize,
}

/// What the packets near an epoch's boundaries say of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EpochVerdict {
    /// Why it must not be estimated.
    pub(crate) refused: Option<GapReason>,
    /// An epoch beside it did not come: packets in flight cannot be distinguished from lost ones,
    /// and one that began or ended in its midst is not whole.
    pub(crate) is_edge: bool,
    /// What the points have in common at its end.
    pub(crate) overlap: Overlap,
}

impl Alignment {
    /// Nothing known.
    pub(crate) const fn new(rule: EpochRule) -> Self {
        Self { rule, state: AlignmentState::Unknown, verified: false }
    }

    /// As it was known before a restart.
    pub(crate) const fn resumed(rule: EpochRule, realigned_epochs: i64) -> Self {
        Self { rule, state: AlignmentState::Aligned { realigned_epochs }, verified: true }
    }

    pub(crate) const fn state(&self) -> &AlignmentState {
        &self.state
    }

    /// By how much downstream's numbers are larger, if epochs are paired at all and it was shown.
    pub(crate) const fn shown(&self) -> Option<i64> {
        match self.state {
            AlignmentState::Aligned { realigned_epochs } if self.verified => Some(realigned_epochs),
            _ => None,
        }
    }

    /// There are no boundaries to look at, or digests mean different things: pairing itself will
    /// tell.
    pub(crate) fn trust(&mut self) {
        self.state = AlignmentState::Aligned { realigned_epochs: 0 };
        self.verified = true;
    }

    /// Looks for packets in common among those that came last. Returns the offset if that changed
    /// what is known.
    pub(crate) fn search(&mut self, up: &PointSample, down: &PointSample) -> Option<Offset> {
        let guard = common_guard(up, down)?;
        let at_first = self.state == AlignmentState::Unknown;
        let (found, state) = [SEARCHED_FIRST, SEARCHED_EPOCHS].into_iter().find_map(|epochs| {
            let found = search(up, down, epochs, at_first)?;
            Some((found, self.state_for(found, guard)?))
        })?;
        if self.state.is_like(&state) {
            return None;
        }
        self.verified = matches!(state, AlignmentState::Aligned { .. });
        self.state = state;
        Some(found)
    }

    fn state_for(&self, found: Offset, guard: Delay) -> Option<AlignmentState> {
        let length_ns = self.rule.length_ns()?;
        let offset_ns = found.offset.as_nanos();
        let realigned_epochs = offset_ns.saturating_add(length_ns / 2).div_euclid(length_ns);
        let rest = found.offset - Delay::from_nanos(realigned_epochs.saturating_mul(length_ns));
        // Once they are apart, clocks at the limit must not go to and fro.
        let tenths = if matches!(self.state, AlignmentState::Apart(_)) { 9 } else { 10 };
        let is_within = rest.as_nanos().abs() <= guard.as_nanos() / 10 * tenths;
        if found.digests < AGREEING_MIN && !(realigned_epochs == 0 && is_within) {
            return None;
        }
        if is_within {
            return Some(AlignmentState::Aligned { realigned_epochs });
        }
        Some(AlignmentState::Apart(GapReason::ClocksApart { offset: found.offset, rest, guard }))
    }

    /// No more is waited for: decides by what there is. That nothing is in common says something only
    /// of epochs that both sent.
    pub(crate) fn decide(&mut self, up: Option<&PointSample>, down: Option<&PointSample>) {
        self.state = AlignmentState::Aligned { realigned_epochs: 0 };
        let (Some(up), Some(down)) = (up, down) else { return };
        let Some(guard) = common_guard(up, down) else { return };
        let has_enough = |point: &PointSample, other: &PointSample| {
            let both = point.recent_epochs(SEARCHED_EPOCHS).filter(|epoch| other.has(*epoch));
            point.packets_in(both).take(PACKETS_MIN as usize).count() as u64 == PACKETS_MIN
        };
        if has_enough(up, down) && has_enough(down, up) {
            self.state = AlignmentState::Apart(GapReason::NothingInCommon { guard });
            return;
        }
        self.verified = bounds_vouch(up, down, guard);
    }

    /// Judges an epoch (by upstream's number) whose halves were compared.
    pub(crate) fn judge(
        &mut self,
        epoch: Epoch,
        up: &PointSample,
        down: &PointSample,
    ) -> EpochVerdict {
        if up.digest() != down.digest() {
            // Pairing refuses it, and says why.
            return EpochVerdict { refused: None, is_edge: false, overlap: Overlap::default() };
        }
        let next = Epoch(epoch.0.saturating_add(1));
        let [start, end] = [epoch, next].map(|epoch| self.overlap(epoch, up, down));
        let guard = common_guard(up, down).unwrap_or(Delay::ZERO);
        let refused = [start, end].into_iter().find_map(|overlap| refusal(&overlap, guard));
        if refused.is_none() && start.common.max(end.common) > 0 {
            self.verified = true;
        }
        let refused = refused.or((!self.verified).then_some(GapReason::Unverified));
        EpochVerdict { refused, is_edge: self.is_edge(epoch, up, down), overlap: end }
    }

    fn is_edge(&self, epoch: Epoch, up: &PointSample, down: &PointSample) -> bool {
        let AlignmentState::Aligned { realigned_epochs } = self.state else { return true };
        [-1, 1].into_iter().any(|beside| {
            let ours = epoch.0.saturating_add(beside);
            !up.has(Epoch(ours)) || !down.has(Epoch(ours.saturating_add(realigned_epochs)))
        })
    }

    fn overlap(&self, epoch: Epoch, up: &PointSample, down: &PointSample) -> Overlap {
        let AlignmentState::Aligned { realigned_epochs } = self.state else {
            return Overlap::default();
        };
        let length_ns = self.rule.length_ns().unwrap_or(0);
        let shift = Delay::from_nanos(realigned_epochs.saturating_mul(length_ns));
        let theirs = Epoch(epoch.0.saturating_add(realigned_epochs));
        match (up.boundary(epoch), down.boundary(theirs)) {
            (Some(one), Some(other)) => {
                compare_at(self.rule.span_of(epoch).start, &one, &other, shift)
            }
            _ => Overlap::default(),
        }
    }
}

fn refusal(overlap: &Overlap, guard: Delay) -> Option<GapReason> {
    if let Some(rest) = overlap.rest.filter(|rest| rest.as_nanos().abs() > guard.as_nanos()) {
        return Some(GapReason::ClocksApart { offset: rest, rest, guard });
    }
    let enough = overlap.sent.min(overlap.received) >= PACKETS_MIN;
    (enough && overlap.common == 0).then_some(GapReason::NothingInCommon { guard })
}

/// Within this of a boundary both points kept packets.
fn common_guard(up: &PointSample, down: &PointSample) -> Option<Delay> {
    Some(up.recent_guard()?.0.min(down.recent_guard()?.0))
}

/// Whether both clocks are known to be right to within the guard.
fn bounds_vouch(up: &PointSample, down: &PointSample, guard: Delay) -> bool {
    let bound = |point: &PointSample| point.recent_guard().and_then(|(_, bound)| bound);
    bound(up).zip(bound(down)).is_some_and(|(one, other)| one + other <= guard)
}

/// The difference that most packets agree on to within the guard, if most of those in common do.
fn search(up: &PointSample, down: &PointSample, epochs: usize, at_first: bool) -> Option<Offset> {
    let guard_ns = common_guard(up, down)?.as_nanos().max(1);
    let mut sent: HashMap<PacketDigest, Option<Timestamp>> = HashMap::new();
    let (ours, theirs) = (
        searched(up, SEARCHED_EPOCHS, down, epochs, at_first),
        searched(down, epochs, up, SEARCHED_EPOCHS, at_first),
    );
    for packet in up.packets_in(ours.into_iter()) {
        // A digest that occurs twice does not say which packet it is.
        sent.entry(packet.digest).and_modify(|time| *time = None).or_insert(Some(packet.time));
    }
    let mut offsets_ns: Vec<i64> = down
        .packets_in(theirs.into_iter())
        .filter_map(|packet| Some((packet.time - (*sent.get(&packet.digest)?)?).as_nanos()))
        .collect();
    offsets_ns.sort_unstable();
    let agreeing = densest(&offsets_ns, guard_ns);
    let digests = agreeing.len();
    if digests * 2 <= offsets_ns.len() {
        return None;
    }
    Some(Offset { offset: median(agreeing.to_vec())?, digests })
}

/// The epochs of a point, by number, that came last. At first also those that are numbered as the
/// last of the other point: one may have sent its epochs of minutes before the other begins.
fn searched(
    point: &PointSample,
    epochs: usize,
    other: &PointSample,
    other_epochs: usize,
    at_first: bool,
) -> BTreeSet<Epoch> {
    let same = other.recent_epochs(other_epochs).filter(|_| at_first);
    point.recent_epochs(epochs).chain(same).collect()
}

/// The longest run of sorted values that lie within `width` of each other.
fn densest(sorted: &[i64], width: i64) -> &[i64] {
    let (mut best, mut start) = (0..0, 0);
    for (end, &value) in sorted.iter().enumerate() {
        while value.saturating_sub(sorted[start]) > width {
            start += 1;
        }
        if end + 1 - start > best.len() {
            best = start..end + 1;
        }
    }
    &sorted[best]
}
