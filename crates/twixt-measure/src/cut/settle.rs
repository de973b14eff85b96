//! Puts right, at a boundary, what the downstream point could not know: which of its packets were
//! in flight. Says too whether what was kept is enough to be sure of it.
//!
//! Distances are measured in cut time: the point's time less its shift, from the boundary.

use twixt_model::{Delay, Observation, Timestamp, Unobserved};

/// Delays up to this share of the reach are settled. Where they come nearer to its end, some of
/// the same kind are likely to lie beyond, and were not kept.
const STRAIN_MAX: f64 = 0.9;
/// The same where packets are missing or come from nowhere. Those are lost or foreign only if
/// delays beyond the reach are out of the question, so far more room is asked for.
const STRAIN_IN_DOUBT_MAX: f64 = 0.5;
/// So many packets in a row, and no other after them, are not lost by chance: with a loss of 30 %,
/// that happens once in a hundred boundaries that have no more packets.
const STALLED_MIN: u64 = 4;
/// As few delays say nothing of how long delays may be, and as few packets nothing of the share
/// that is missing.
pub(crate) const TELLING_MIN: u64 = 8;

/// What one point kept on both sides of a boundary; `None` where its epoch is not there.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Edge<'a> {
    /// Counted in the epoch before.
    pub before: Option<BoundarySide<'a>>,
    /// Counted in the epoch after.
    pub after: Option<BoundarySide<'a>>,
}

/// What one point kept on one side of a boundary.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BoundarySide<'a> {
    pub observations: &'a [Observation],
    /// How far the point's clock is ahead, as far as epochs are concerned.
    pub shift: Delay,
    /// Within this of the boundary everything was kept.
    pub reach: Delay,
}

/// Downstream observations that were counted on the wrong side of a boundary.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Moves {
    /// Counted after the boundary, belong before it.
    pub earlier: Vec<Observation>,
    /// Counted before the boundary, belong after it.
    pub later: Vec<Observation>,
    /// How sure that is.
    pub evidence: Evidence,
}

impl Moves {
    /// How many were on the wrong side.
    pub(crate) const fn count(&self) -> u64 {
        (self.earlier.len() + self.later.len()) as u64
    }
}

/// What is known of the delays at a boundary.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Evidence {
    /// Kept upstream before the boundary, where downstream should have kept them.
    pub sent: u64,
    /// Those of them that downstream did not keep: lost, or counted where nothing is kept.
    pub unseen: u64,
    /// Kept downstream after the boundary, and not upstream where it should have kept them.
    pub strange: u64,
    /// Packets in a row, of those kept upstream, that downstream did not keep: the last before the
    /// boundary, and all that followed it as long as their arrival should have been kept. None if
    /// either is none.
    pub stalled: u64,
    /// Packets kept at both points.
    pub matched: u64,
    /// The longest delay of those, as a share of the reach.
    pub strain: f64,
    /// Nothing at all was kept where something should have been.
    pub blind: bool,
    /// Both epochs of downstream, or of upstream, are there: else packets are bound to be unseen,
    /// or strange.
    pub whole_downstream: bool,
    pub whole_upstream: bool,
    /// A half that would show whether packets are unseen, or strange, is not there.
    pub is_hidden: bool,
}

/// Whether all packets that were in flight at a boundary have been found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// They have.
    Settled,
    /// It cannot be decided.
    Doubtful,
    /// It cannot be decided, and most packets are missing.
    Late,
    /// From some moment before the boundary on, nothing arrived: a longer way, or an outage.
    Stalled,
    /// Delays come up to the end of what was kept.
    Beyond,
}

impl Evidence {
    /// Judges by this boundary, and by how many delays in a row, here and at the boundaries
    /// before, were far shorter than the reach.
    ///
    /// A packet that comes later than anything kept is missing at one place and comes from
    /// nowhere at another. What is only missing was lost, and what only comes from nowhere did
    /// not pass upstream, if most of the others are there and in time. Packets that a point did not
    /// observe are missing, or come from nowhere, whatever the delays are. Where a half did not come
    /// that would show it, some may be.
    pub(crate) fn verdict(&self, short_delays: u64, unobserved: Unobserved) -> Verdict {
        if self.strain > STRAIN_MAX {
            return Verdict::Beyond;
        }
        let unseen = if self.whole_downstream { self.unseen } else { 0 };
        let strange = if self.whole_upstream { self.strange } else { 0 };
        let is_hidden = self.is_hidden || self.unseen > unseen || self.strange > strange;
        let unexplained = (
            unseen.saturating_sub(unobserved.downstream),
            strange.saturating_sub(unobserved.upstream),
        );
        let most_unseen = self.sent >= TELLING_MIN && unexplained.0 > self.sent / 2;
        let known_to_be_short = self.is_short() && short_delays >= TELLING_MIN;
        let stalled = self.stalled.saturating_sub(unobserved.downstream);
        if stalled >= STALLED_MIN && unexplained.1 == 0 && self.is_whole() {
            return Verdict::Stalled;
        }
        let clear = match unexplained {
            _ if unseen == 0 && strange == 0 && !is_hidden => true,
            (1.., 1..) => false,
            _ => known_to_be_short && !most_unseen,
        };
        match clear && !self.blind {
            true => Verdict::Settled,
            false if most_unseen => Verdict::Late,
            false => Verdict::Doubtful,
        }
    }

    /// Whether all four epochs are there.
    const fn is_whole(&self) -> bool {
        self.whole_downstream && self.whole_upstream
    }

    /// Whether all delays seen are far shorter than the reach.
    pub(crate) fn is_short(&self) -> bool {
        self.strain <= STRAIN_IN_DOUBT_MAX
    }
}

/// Finds downstream observations that were counted in another epoch than upstream's.
///
/// Equal digests are distinguished by order only: the first of them downstream belong before the
/// boundary, as many as upstream counted there. Where the two points kept different numbers of
/// them (one was lost, or came from beyond the guard) several splits are possible, and the one
/// that moves least is taken. What upstream did not keep at all stays where it is.
pub(crate) fn settle(boundary: Timestamp, upstream: Edge<'_>, downstream: Edge<'_>) -> Moves {
    let sent = sides(boundary, upstream);
    let received = sides(boundary, downstream);
    let mut found = DigestComparison::default();
    let mut sent_groups = sent.chunk_by(same_digest).peekable();
    for received in received.chunk_by(same_digest) {
        let digest = received[0].observation.digest;
        while let Some(sent) = sent_groups.next_if(|sent| sent[0].observation.digest < digest) {
            found.add_unseen(sent, count_before(sent));
            found.add_unseen_after(sent, sent.len() - count_before(sent));
        }
        match sent_groups.next_if(|sent| sent[0].observation.digest == digest) {
            Some(sent) => settle_equal(sent, received, &mut found),
            None => found.add_strange(received, received.len() - count_before(received)),
        }
    }
    for sent in sent_groups {
        found.add_unseen(sent, count_before(sent));
        found.add_unseen_after(sent, sent.len() - count_before(sent));
    }
    let evidence = found.evidence(&sent, upstream, downstream);
    Moves { earlier: found.earlier, later: found.later, evidence }
}

/// An observation and where it was counted.
#[derive(Clone, Copy)]
struct Sided {
    observation: Observation,
    after: bool,
    /// Cut time since the boundary.
    place_ns: i64,
}

/// What comes out of comparing digest by digest.
#[derive(Default)]
struct DigestComparison {
    earlier: Vec<Observation>,
    later: Vec<Observation>,
    unseen_places_ns: Vec<i64>,
    unseen_after_places_ns: Vec<i64>,
    strange_places_ns: Vec<i64>,
    matched: u64,
    /// The longest delay, and the longest by which a packet seemed to arrive before it left.
    behind_ns: i64,
    ahead_ns: i64,
}

impl DigestComparison {
    /// The last of those sent before the boundary.
    fn add_unseen(&mut self, sent: &[Sided], count: usize) {
        let before = sent.iter().rev().filter(|sided| !sided.after);
        self.unseen_places_ns.extend(before.take(count).map(|sided| sided.place_ns));
    }

    /// The last of those sent after the boundary.
    fn add_unseen_after(&mut self, sent: &[Sided], count: usize) {
        let after = sent.iter().rev().filter(|sided| sided.after);
        self.unseen_after_places_ns.extend(after.take(count).map(|sided| sided.place_ns));
    }

    /// Packets in a row around the boundary of which none was seen; 0 if the last before it was, or
    /// any after it that would have arrived within `within_ns`.
    fn stalled(&self, sent: &[Sided], within_ns: i64) -> u64 {
        let is_due = |place_ns: &i64| *place_ns < within_ns;
        let after = sent.iter().filter(|sided| sided.after).map(|sided| sided.place_ns);
        let due = after.filter(is_due).count() as u64;
        let unseen = self.unseen_after_places_ns.iter().copied().filter(is_due).count() as u64;
        let newest_first = |places_ns: &mut Vec<i64>| {
            places_ns.sort_unstable_by_key(|place_ns| std::cmp::Reverse(*place_ns));
        };
        let mut sent: Vec<i64> =
            sent.iter().filter(|sided| !sided.after).map(|sided| sided.place_ns).collect();
        let mut missing = self.unseen_places_ns.clone();
        newest_first(&mut sent);
        newest_first(&mut missing);
        let run = sent.iter().zip(&missing).take_while(|(one, other)| one == other).count() as u64;
        if due > 0 && unseen == due && run > 0 { run + due } else { 0 }
    }

    /// The last of those received after the boundary.
    fn add_strange(&mut self, received: &[Sided], count: usize) {
        let after = received.iter().rev().filter(|sided| sided.after);
        self.strange_places_ns.extend(after.take(count).map(|sided| sided.place_ns));
    }

    fn add_delay(&mut self, delay_ns: i64) {
        self.behind_ns = self.behind_ns.max(delay_ns);
        self.ahead_ns = self.ahead_ns.max(delay_ns.saturating_neg());
    }

    fn evidence(&self, sent: &[Sided], upstream: Edge<'_>, downstream: Edge<'_>) -> Evidence {
        // An epoch that is not there sets no limit.
        let reach_ns =
            |side: Option<BoundarySide<'_>>| side.map_or(i64::MAX, |side| side.reach.as_nanos());
        let forth_ns = reach_ns(upstream.before).min(reach_ns(downstream.after));
        let back_ns = reach_ns(upstream.after).min(reach_ns(downstream.before));
        // With clocks apart, a packet near the end of what one point kept lies beyond what the
        // other did, on the same side of the boundary: no reason to worry.
        let sent_within_ns = reach_ns(downstream.before).saturating_sub(self.ahead_ns);
        let received_within_ns = reach_ns(upstream.after).saturating_sub(self.ahead_ns);
        let due_within_ns = reach_ns(upstream.after).min(reach_ns(downstream.after));
        let sent_before = sent.iter().filter(|sided| !sided.after).map(|sided| &sided.place_ns);
        Evidence {
            sent: count_within(sent_before, sent_within_ns),
            unseen: count_within(&self.unseen_places_ns, sent_within_ns),
            strange: count_within(&self.strange_places_ns, received_within_ns),
            stalled: self.stalled(sent, due_within_ns.saturating_sub(self.behind_ns)),
            matched: self.matched,
            strain: share(self.behind_ns, forth_ns).max(share(self.ahead_ns, back_ns)),
            blind: forth_ns == 0 || back_ns == 0,
            whole_downstream: downstream.before.is_some() && downstream.after.is_some(),
            whole_upstream: upstream.before.is_some() && upstream.after.is_some(),
            is_hidden: false,
        }
    }
}

fn count_within<'a>(places_ns: impl IntoIterator<Item = &'a i64>, within_ns: i64) -> u64 {
    let limit_ns = within_ns.max(0).unsigned_abs();
    places_ns.into_iter().filter(|place_ns| place_ns.unsigned_abs() < limit_ns).count() as u64
}

fn share(delay_ns: i64, reach_ns: i64) -> f64 {
    if delay_ns == 0 { 0.0 } else { delay_ns as f64 / reach_ns as f64 }
}

fn same_digest(one: &Sided, other: &Sided) -> bool {
    one.observation.digest == other.observation.digest
}

/// Both sides of an edge, by digest and then by time.
fn sides(boundary: Timestamp, edge: Edge<'_>) -> Vec<Sided> {
    let mut all = Vec::new();
    for (after, side) in [(false, edge.before), (true, edge.after)] {
        let Some(BoundarySide { observations, shift, .. }) = side else { continue };
        all.extend(observations.iter().map(|&observation| {
            let place_ns = (observation.time - shift - boundary).as_nanos();
            Sided { observation, after, place_ns }
        }));
    }
    // Digests seldom are equal: only then it matters what comes next.
    all.sort_unstable_by(|one, other| {
        let by_digest = one.observation.digest.cmp(&other.observation.digest);
        by_digest.then_with(|| (one.observation, one.after).cmp(&(other.observation, other.after)))
    });
    all
}

fn count_before(group: &[Sided]) -> usize {
    group.iter().filter(|sided| !sided.after).count()
}

fn settle_equal(sent: &[Sided], received: &[Sided], found: &mut DigestComparison) {
    let (sent_before, received_before) = (count_before(sent), count_before(received));
    let sent_after = sent.len() - sent_before;
    // Unless numbers differ, both limits are `sent_before`.
    let if_none_after_is_missing = received.len().saturating_sub(sent_after);
    let least = sent_before.min(if_none_after_is_missing);
    let most = sent_before.max(if_none_after_is_missing).min(received.len());
    let split = received_before.clamp(least, most);
    found.add_unseen(sent, sent_before.saturating_sub(split));
    found.add_strange(received, (received.len() - split).saturating_sub(sent_after));
    found.add_unseen_after(sent, sent_after.saturating_sub(received.len() - split));
    if sent.len() == received.len() {
        found.matched += sent.len() as u64;
        for (sent, received) in sent.iter().zip(received) {
            found.add_delay(received.place_ns.saturating_sub(sent.place_ns));
        }
    }
    for (index, sided) in received.iter().enumerate() {
        match (index < split, sided.after) {
            (true, true) => found.earlier.push(sided.observation),
            (false, false) => found.later.push(sided.observation),
            _ => continue,
        }
        // Which of the equal ones it is may not be known; it crossed the boundary at any rate.
        found.add_delay(sided.place_ns);
    }
}

#[cfg(test)]
mod tests;
