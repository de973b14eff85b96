//! Which sighting upstream and which downstream are one packet.
//!
//! Digests are not unique: a retransmission can be identical to the last bit, and some senders
//! repeat whole packets. Packets that occur once at each point tell how long the delays of their flow
//! are ([`Usual`]); identical ones of that flow are matched in order within that range. Other flows
//! tell nothing, since heartbeats may wait in another queue, unless their delays are so much alike that
//! nothing would fit them by accident. Where several ways of matching are possible,
//! what each of them would say is known too.

use twixt_model::{CrossingFate, Delay, Observation, sort_by_hash};

use super::alignment::Matched;
use super::usual::{Usual, are_copies};

/// Each upstream packet, and what became of it.
pub(crate) struct Matching {
    /// By digest and then by time.
    pub packets: Vec<(Observation, Fate)>,
    /// Packets that only downstream saw. Of identical ones, the last are taken for them.
    pub strays: Vec<Stray>,
    /// The median delay.
    pub median: Delay,
}

/// A packet that only downstream saw.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stray {
    pub packet: Observation,
    /// How long before it an identical packet came that upstream saw too.
    pub twin: Option<Delay>,
}

/// What became of a packet that upstream saw.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// Downstream did not see it.
    Lost,
    /// Downstream saw as many identical packets, and nothing tells which of them it is.
    Arrived,
    /// Downstream saw it.
    Measured(Matched),
}

impl Fate {
    /// The delay, where it is known.
    pub(crate) const fn delay(self) -> Option<Delay> {
        match self {
            Self::Measured(matched) => Some(matched.delay),
            Self::Lost | Self::Arrived => None,
        }
    }

    /// As others read it.
    pub(crate) const fn crossing(self) -> CrossingFate {
        match self {
            Self::Lost => CrossingFate::Lost,
            Self::Arrived => CrossingFate::Unmeasured,
            Self::Measured(matched) => CrossingFate::Took(matched.delay),
        }
    }
}

impl Matching {
    /// Matches what two points saw. Packets whose delay is further than `window` from the median
    /// are different packets that look alike.
    pub(crate) fn new(
        mut upstream: Vec<Observation>,
        mut downstream: Vec<Observation>,
        window: Delay,
    ) -> Self {
        sort_by_digest(&mut upstream);
        sort_by_digest(&mut downstream);
        let usual = Usual::of(&upstream, &downstream, window);
        let mut packets: Vec<(Observation, Fate)> = Vec::with_capacity(upstream.len());
        let mut strays = unseen_upstream(&upstream, &downstream);
        for (sent, received) in groups(&upstream, &downstream) {
            let first = packets.len();
            match (sent, received) {
                ([packet], [arrived]) => packets.push((*packet, usual.fate(packet, arrived))),
                _ if are_copies(sent, received) => {
                    packets.extend(sent.iter().copied().zip(usual.fates_of_copies(sent, received)));
                }
                _ => packets.extend(sent.iter().copied().zip(usual.fates(sent, received))),
            }
            let crossed = packets[first..].iter().filter(|(_, fate)| *fate != Fate::Lost).count();
            strays.extend(surplus(received, crossed));
        }
        Self { packets, strays, median: usual.median() }
    }
}

/// Sorts by digest, packets of equal digests by time.
fn sort_by_digest(packets: &mut [Observation]) {
    sort_by_hash(packets, |packet| packet.digest.0);
    packets
        .chunk_by_mut(|one, next| one.digest == next.digest)
        .filter(|alike| alike.len() > 1)
        .for_each(|alike| alike.sort_by_key(|packet| packet.time));
}

/// Packets whose digest upstream did not see.
fn unseen_upstream(upstream: &[Observation], downstream: &[Observation]) -> Vec<Stray> {
    let mut left = upstream;
    let runs = downstream.chunk_by(|one, other| one.digest == other.digest).filter(|received| {
        let before = left.iter().take_while(|sent| sent.digest < received[0].digest).count();
        left = &left[before..];
        left.first().is_none_or(|sent| sent.digest != received[0].digest)
    });
    runs.flatten().map(|&packet| Stray { packet, twin: None }).collect()
}

/// Identical packets beyond those that crossed.
fn surplus(received: &[Observation], crossed: usize) -> impl Iterator<Item = Stray> {
    (crossed..received.len()).map(move |index| {
        let packet = received[index];
        let before = index.checked_sub(1).filter(|_| crossed > 0).map(|before| received[before]);
        Stray { packet, twin: before.map(|before| packet.time - before.time) }
    })
}

/// Runs of equal digests upstream, each with its run downstream (which may be empty).
pub(super) fn groups<'a>(
    upstream: &'a [Observation],
    downstream: &'a [Observation],
) -> impl Iterator<Item = (&'a [Observation], &'a [Observation])> {
    let mut left = downstream;
    upstream.chunk_by(|one, other| one.digest == other.digest).map(move |sent| {
        let digest = sent[0].digest;
        let before = left.iter().take_while(|packet| packet.digest < digest).count();
        let equal = left[before..].iter().take_while(|packet| packet.digest == digest).count();
        let received = &left[before..before + equal];
        left = &left[before + equal..];
        (sent, received)
    })
}

#[cfg(test)]
mod tests;
