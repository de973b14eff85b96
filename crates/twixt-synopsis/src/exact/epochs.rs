//! Packets, gathered by scope and by when they left.

use std::collections::BTreeMap;

use twixt_model::{Epoch, EpochRule, FlowHash, FlowKey, Scope};

use super::Exact;
use super::estimate::Gathered;
use super::matching::Matching;
use crate::question::By;
use crate::synopsis::Pair;

/// Packets by scope, and by when they left.
pub(super) type Epochs = BTreeMap<Scope, BTreeMap<Epoch, Gathered>>;

/// Gathers what was matched.
pub(super) fn gather(pair: Pair<'_, Exact>, by: By, cut: EpochRule, matching: &Matching) -> Epochs {
    let mut gathered = Epochs::new();
    if by == By::All {
        gathered.insert(Scope::All, BTreeMap::new());
    }
    let mut scopes: BTreeMap<FlowHash, Scope> = BTreeMap::new();
    for (packet, fate) in &matching.packets {
        let scope = match by {
            By::All => &Scope::All,
            _ => {
                scopes.entry(packet.flow).or_insert_with(|| by.scope_of(&key_of(pair, packet.flow)))
            }
        };
        let epochs = match gathered.get_mut(scope) {
            Some(epochs) => epochs,
            None => gathered.entry(scope.clone()).or_default(),
        };
        epochs.entry(cut.epoch_of(packet.time)).or_default().add(packet, *fate);
    }
    if by == By::All {
        gathered.values_mut().for_each(add_silent);
    }
    // Scopes of which upstream saw nothing have no estimate.
    for stray in &matching.strays {
        let key = key_of(pair, stray.packet.flow);
        let left = cut.epoch_of(stray.packet.time - matching.median);
        if let Some(epochs) = gathered.get_mut(&by.scope_of(&key)) {
            nearest(epochs, left).add_stray(stray, &key);
        }
    }
    gathered
}

/// Epochs without packets are worth a row each; so many at most, as a few packets may be years apart.
const SILENT_EPOCHS_MAX: i64 = 1 << 16;

/// Adds epochs in which no packet left, between others.
fn add_silent(epochs: &mut BTreeMap<Epoch, Gathered>) {
    let seen: Vec<i64> = epochs.keys().map(|epoch| epoch.0).collect();
    let mut left = SILENT_EPOCHS_MAX;
    for pair in seen.windows(2) {
        let silent = (pair[1].saturating_sub(pair[0]) - 1).min(left);
        left -= silent;
        epochs.extend((1..=silent).map(|step| (Epoch(pair[0] + step), Gathered::default())));
    }
}

/// What left in an epoch; of a scope that sent nothing then, in the epoch before, or else the first.
fn nearest(epochs: &mut BTreeMap<Epoch, Gathered>, left: Epoch) -> &mut Gathered {
    let before = epochs.range(..=left).next_back().map(|(epoch, _)| *epoch);
    let first = epochs.first_key_value().map(|(epoch, _)| *epoch);
    epochs.entry(before.or(first).unwrap_or(left)).or_default()
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
        let mut epochs: BTreeMap<Epoch, Gathered> =
            seen.iter().map(|number| (Epoch(*number), Gathered::default())).collect();
        add_silent(&mut epochs);
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
