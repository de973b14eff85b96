//! Packets, gathered by scope and by when they left.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use twixt_model::{Epoch, EpochRule, FlowHash, FlowKey, Observation, Prehashed, Scope};

use super::Exact;
use super::estimate::{Gathered, Summed};
use super::matching::{Fate, Finding, Referee, Stray};
use super::records::{PlacedDelay, PlacedMatched, PlacedStep};
use super::summary::Delays;
use super::variation::Varying;
use crate::pile::{Part, Pile};
use crate::question::{By, Question};
use crate::spill::SpillPlace;
use crate::synopsis::Pair;

/// Packets by scope, and by when they left.
pub(super) type Epochs = BTreeMap<Scope, BTreeMap<Epoch, Summed>>;

/// Gathers what was matched.
pub(super) fn gather(
    pair: Pair<'_, Exact>,
    question: &Question<'_>,
    cut: EpochRule,
    referee: &Referee,
) -> Epochs {
    let mut gathering = Gathering::new(pair, question, cut);
    let mut strays = Vec::new();
    referee.judge(|finding| match finding {
        Finding::Sent(packet, fate) => gathering.add(packet, fate),
        Finding::Stray(stray) => strays.push(stray),
    });
    if question.by == By::All {
        gathering.add_silent();
    }
    for stray in &strays {
        gathering.add_stray(stray, cut.epoch_of(stray.packet.time - referee.median()));
    }
    gathering.summed()
}

/// Packets that are being gathered.
struct Gathering<'a> {
    pair: Pair<'a, Exact>,
    by: By,
    cut: EpochRule,
    /// Whether all packets are kept.
    keeps: bool,
    /// Number of each scope.
    scopes: BTreeMap<Scope, usize>,
    of_flows: HashMap<FlowHash, usize, Prehashed>,
    /// By number of the scope: where each of its epochs is gathered.
    epochs: Vec<BTreeMap<Epoch, u32>>,
    gathered: Vec<Gathered>,
    delays: Pile<PlacedDelay>,
    doubtful: Pile<PlacedMatched>,
    steps: Pile<PlacedStep>,
}

impl<'a> Gathering<'a> {
    fn new(pair: Pair<'a, Exact>, question: &Question<'_>, cut: EpochRule) -> Self {
        let place = place_of(pair);
        let mut gathering = Self {
            pair,
            by: question.by,
            cut,
            keeps: question.packets,
            scopes: BTreeMap::new(),
            of_flows: HashMap::default(),
            epochs: Vec::new(),
            gathered: Vec::new(),
            delays: Pile::new(place),
            doubtful: Pile::new(place),
            steps: Pile::new(place),
        };
        if question.by == By::All {
            gathering.number(Scope::All);
        }
        gathering
    }

    fn number(&mut self, scope: Scope) -> usize {
        let next = self.epochs.len();
        let number = *self.scopes.entry(scope).or_insert(next);
        if number == next {
            self.epochs.push(BTreeMap::new());
        }
        number
    }

    fn number_of(&mut self, flow: FlowHash) -> usize {
        match self.of_flows.get(&flow) {
            _ if self.by == By::All => 0,
            Some(&number) => number,
            None => {
                let number = self.number(self.by.scope_of(&key_of(self.pair, flow)));
                self.of_flows.insert(flow, number);
                number
            }
        }
    }

    fn add(&mut self, packet: &Observation, fate: Fate) {
        let Observation { flow, time: sent, .. } = *packet;
        let number = self.number_of(flow);
        let gathered = &mut self.gathered;
        let place = *self.epochs[number].entry(self.cut.epoch_of(sent)).or_insert_with(|| {
            gathered.push(Gathered::default());
            gathered.len() as u32 - 1 // each takes some hundred bytes
        });
        let gathered = &mut self.gathered[place as usize];
        gathered.add(packet, fate);
        if self.keeps {
            gathered.keep(packet, fate);
        }
        if let Fate::Measured(matched) = fate {
            let delay = matched.delay;
            match matched.is_plain() {
                true => self.delays.push(PlacedDelay { place, delay }),
                false => self.doubtful.push(PlacedMatched { place, matched }),
            }
            self.steps.push(PlacedStep { place, flow, sent, delay });
        }
    }

    /// Scopes of which upstream saw nothing have no estimate.
    fn add_stray(&mut self, stray: &Stray, left: Epoch) {
        let key = key_of(self.pair, stray.packet.flow);
        let Some(&number) = self.scopes.get(&self.by.scope_of(&key)) else { return };
        let next = self.gathered.len() as u32;
        let place = nearest(&mut self.epochs[number], left, next);
        if place == next {
            self.gathered.push(Gathered::default());
        }
        self.gathered[place as usize].add_stray(stray, &key);
    }

    /// Adds epochs in which no packet left, between others.
    fn add_silent(&mut self) {
        for epochs in &mut self.epochs {
            let first = self.gathered.len() as u32;
            let places = (first..).zip(silent(epochs));
            let added: Vec<(Epoch, u32)> = places.map(|(place, epoch)| (epoch, place)).collect();
            self.gathered.resize_with(self.gathered.len() + added.len(), Gathered::default);
            epochs.extend(added);
        }
    }

    /// What all of it says, scope by scope and epoch by epoch.
    fn summed(self) -> Epochs {
        let place = place_of(self.pair);
        let delays = self.delays.sorted();
        let doubtful = self.doubtful.sorted();
        let steps = self.steps.sorted();
        let mut delays = delays.parts(|record| record.place);
        let mut doubtful = doubtful.parts(|record| record.place);
        let mut flows = steps.parts(|record| (record.place, record.flow));
        let mut summed: Vec<Option<Summed>> = (0..)
            .zip(self.gathered)
            .map(|(number, gathered)| {
                let plain = delays.next_if(&number).unwrap_or(Part::none());
                let doubtful = doubtful.next_if(&number).unwrap_or(Part::none());
                let variation = Varying::of(number, &mut flows, place);
                Some(gathered.summed(&Delays { plain, doubtful, place }, variation))
            })
            .collect();
        let mut of_scope = |(scope, number): (Scope, usize)| {
            let place =
                |(epoch, place): (&Epoch, &u32)| Some((*epoch, summed[*place as usize].take()?));
            (scope, self.epochs[number].iter().filter_map(place).collect())
        };
        self.scopes.into_iter().map(&mut of_scope).collect()
    }
}

/// Where the records of a pair go that do not stay in memory.
pub(super) const fn place_of<'a>(pair: Pair<'a, Exact>) -> Option<&'a Arc<dyn SpillPlace>> {
    pair.upstream.packets.place()
}

/// Epochs without packets are worth a row each; so many at most, as a few packets may be years apart.
const SILENT_EPOCHS_MAX: i64 = 1 << 16;

/// Epochs in which no packet left, between others.
fn silent(epochs: &BTreeMap<Epoch, u32>) -> Vec<Epoch> {
    let seen: Vec<i64> = epochs.keys().map(|epoch| epoch.0).collect();
    let (mut left, mut silent) = (SILENT_EPOCHS_MAX, Vec::new());
    for pair in seen.windows(2) {
        let steps = (pair[1].saturating_sub(pair[0]) - 1).min(left);
        left -= steps;
        silent.extend((1..=steps).map(|step| Epoch(pair[0] + step)));
    }
    silent
}

/// Where what left in an epoch is gathered; of a scope that sent nothing then, in the epoch before, or else
/// the first. Where there is none at all, at the next place.
fn nearest(epochs: &mut BTreeMap<Epoch, u32>, left: Epoch, next: u32) -> u32 {
    let before = epochs.range(..=left).next_back().map(|(epoch, _)| *epoch);
    let first = epochs.first_key_value().map(|(epoch, _)| *epoch);
    *epochs.entry(before.or(first).unwrap_or(left)).or_insert(next)
}

/// The flow's key, from whichever point saw it in detail. Packets that reached a synopsis
/// without details have none at all.
pub(super) fn key_of(pair: Pair<'_, Exact>, flow: FlowHash) -> FlowKey {
    let known = pair.upstream.keys.get(&flow).or_else(|| pair.downstream.keys.get(&flow));
    known.copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_silent(seen: &[i64], expected: usize) {
        let mut epochs: BTreeMap<Epoch, u32> =
            seen.iter().map(|number| (Epoch(*number), 0)).collect();
        epochs.extend(silent(&epochs).into_iter().map(|epoch| (epoch, 0)));
        assert_eq!(epochs.len(), expected);
        assert_eq!(epochs.first_key_value().map(|(epoch, _)| epoch.0), seen.first().copied());
        assert_eq!(epochs.last_key_value().map(|(epoch, _)| epoch.0), seen.last().copied());
    }

    #[test]
    fn epochs_without_packets_are_there_unless_they_are_too_many() {
        check_silent(&[], 0);
        check_silent(&[7], 1);
        check_silent(&[-2, -1, 4], 7);
        check_silent(&[0, 10, i64::MAX], 12 + SILENT_EPOCHS_MAX as usize - 9);
        check_silent(&[i64::MIN, i64::MAX], 2 + SILENT_EPOCHS_MAX as usize);
    }
}
