//! Which sighting upstream and which downstream are one packet.
//!
//! Digests are not unique: a retransmission can be identical to the last bit, and some senders
//! repeat whole packets. Packets that occur once at each point tell how long the delays of their flow
//! are ([`Usual`]); identical ones of that flow are matched in order within that range. Other flows
//! tell nothing, since heartbeats may wait in another queue, unless their delays are so much alike that
//! nothing would fit them by accident. Where several ways of matching are possible,
//! what each of them would say is known too.

use std::iter::Peekable;
use std::sync::Arc;

use twixt_model::{CrossingFate, Delay, Observation, PacketDigest};

use super::alignment::Matched;
use super::records::ByDigest;
use super::usual::{Usual, are_copies};
use crate::pile::{Pile, Sorted};
use crate::spill::SpillPlace;

/// Each upstream packet, and what became of it.
pub(crate) struct Matching {
    /// By digest and then by time.
    pub packets: Vec<(Observation, Fate)>,
    /// Packets that only downstream saw. Of identical ones, the last are taken for them.
    pub strays: Vec<Stray>,
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
    /// Downstream saw as many identical packets, and nothing tells which of them it is. On average these took at least
    /// so much longer than others; shorter if negative.
    Arrived(Delay),
    /// Downstream saw it.
    Measured(Matched),
}

impl Fate {
    /// The delay, where it is known.
    pub(crate) const fn delay(self) -> Option<Delay> {
        match self {
            Self::Measured(matched) => Some(matched.delay),
            Self::Lost | Self::Arrived(_) => None,
        }
    }

    /// As others read it.
    pub(crate) const fn crossing(self) -> CrossingFate {
        match self {
            Self::Lost => CrossingFate::Lost,
            Self::Arrived(_) => CrossingFate::Unmeasured,
            Self::Measured(matched) => CrossingFate::Took(matched.delay),
        }
    }
}

/// What two points saw, by digest.
pub(super) struct Sightings {
    pub(super) upstream: Sorted<ByDigest>,
    pub(super) downstream: Sorted<ByDigest>,
}

/// What is known of a packet.
pub(super) enum Finding<'a> {
    /// One that upstream saw, and what became of it.
    Sent(&'a Observation, Fate),
    /// One that only downstream saw.
    Stray(Stray),
}

/// Knows what became of each packet. Packets whose delay is further than a window from the median are
/// different packets that look alike.
pub(super) struct Referee {
    sightings: Sightings,
    usual: Usual,
}

impl Referee {
    /// What does not stay in memory goes to `place`.
    pub(super) fn new(
        sightings: Sightings,
        window: Delay,
        place: Option<&Arc<dyn SpillPlace>>,
    ) -> Self {
        let usual = Usual::of(&sightings, window, place);
        Self { sightings, usual }
    }

    /// The median delay.
    pub(super) const fn median(&self) -> Delay {
        self.usual.median()
    }

    /// Shows what became of each packet, by digest and then by time.
    pub(super) fn judge(&self, mut show: impl FnMut(Finding<'_>)) {
        let usual = &self.usual;
        self.sightings.each_group(|sent, received| {
            let mut crossed = 0;
            let mut found = |packet: &Observation, fate: Fate| {
                crossed += usize::from(fate != Fate::Lost);
                show(Finding::Sent(packet, fate));
            };
            match (sent, received) {
                ([packet], []) => found(packet, Fate::Lost),
                ([packet], [arrived]) => found(packet, usual.fate(packet, arrived)),
                ([], _) => {}
                _ => {
                    let fates = match are_copies(sent, received) {
                        true => usual.fates_of_copies(sent, received),
                        false => usual.fates(sent, received),
                    };
                    sent.iter().zip(fates).for_each(|(packet, fate)| found(packet, fate));
                }
            }
            surplus(received, crossed).for_each(|stray| show(Finding::Stray(stray)));
        });
    }
}

impl Matching {
    /// Matches what two points saw. Packets whose delay is further than `window` from the median
    /// are different packets that look alike.
    pub(crate) fn new(
        upstream: Vec<Observation>,
        downstream: Vec<Observation>,
        window: Delay,
    ) -> Self {
        let sorted = |packets: Vec<Observation>| {
            Pile::of(packets.into_iter().map(ByDigest).collect()).sorted()
        };
        let sightings = Sightings { upstream: sorted(upstream), downstream: sorted(downstream) };
        let referee = Referee::new(sightings, window, None);
        let (mut packets, mut strays) = (Vec::new(), Vec::new());
        referee.judge(|finding| match finding {
            Finding::Sent(packet, fate) => packets.push((*packet, fate)),
            Finding::Stray(stray) => strays.push(stray),
        });
        Self { packets, strays }
    }
}

impl Sightings {
    /// Shows packets of equal digests, of both points, by time; one of the two may have none.
    pub(super) fn each_group(&self, mut show: impl FnMut(&[Observation], &[Observation])) {
        let mut upstream = self.upstream.iter().map(|packet| packet.0).peekable();
        let mut downstream = self.downstream.iter().map(|packet| packet.0).peekable();
        let (mut sent, mut received) = (Vec::new(), Vec::new());
        loop {
            let next = [upstream.peek(), downstream.peek()];
            let Some(digest) = next.into_iter().flatten().map(|packet| packet.digest).min() else {
                return;
            };
            take_equal(&mut upstream, digest, &mut sent);
            take_equal(&mut downstream, digest, &mut received);
            show(&sent, &received);
        }
    }
}

/// The next packets, if they have this digest.
fn take_equal(
    packets: &mut Peekable<impl Iterator<Item = Observation>>,
    digest: PacketDigest,
    equal: &mut Vec<Observation>,
) {
    equal.clear();
    while let Some(packet) = packets.next_if(|packet| packet.digest == digest) {
        equal.push(packet);
    }
}

/// Identical packets beyond those that crossed.
fn surplus(received: &[Observation], crossed: usize) -> impl Iterator<Item = Stray> {
    (crossed..received.len()).map(move |index| {
        let packet = received[index];
        let before = index.checked_sub(1).filter(|_| crossed > 0).map(|before| received[before]);
        Stray { packet, twin: before.map(|before| packet.time - before.time) }
    })
}

#[cfg(test)]
mod tests;
