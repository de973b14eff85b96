//! When one point has too many scopes in a minute or an hour, the smaller half of them becomes `other`:
//! flows and prefixes come and go, and an hour may see many more than are worth a row.
//!
//! One that returns later begins anew, so the largest are those that stay.

use twixt_model::Scope;

use super::{PointTotal, RollUp, RollUps, SCOPES_MAX, SumKey};
use crate::row::{Row, SeriesKey, scope_kind};

/// Why `other` is there.
pub(super) const REASON: &str =
    "this is the sum of the smaller scopes: there are more than a row each is kept for";

/// Whether rows of such a scope may give way to others.
pub(super) fn may_fold(kind: &str) -> bool {
    ![scope_kind(&Scope::All), scope_kind(&Scope::Other)].contains(&kind)
}

impl RollUps {
    /// How often scopes gave way.
    #[must_use]
    pub const fn folded(&self) -> u64 {
        self.folded
    }

    /// Another scope of a series begins.
    pub(super) fn note_scope(&mut self, series: &SeriesKey, start_ns: i64) {
        let scopes = self.scopes.entry((series.clone(), start_ns)).or_default();
        *scopes += 1;
        if *scopes > SCOPES_MAX {
            *scopes -= SCOPES_MAX / 2;
            self.fold(series, start_ns);
        }
    }

    fn fold(&mut self, series: &SeriesKey, start_ns: i64) {
        let of_series = self.sums.range(SumKey::first_of(series)..);
        let of_series = of_series.take_while(|(key, _)| key.series == *series);
        let here = of_series.filter(|(key, _)| key.start_ns == start_ns);
        let mut scopes: Vec<(f64, SumKey)> = here
            .filter_map(|(key, sum)| {
                let weight = sum.point.as_ref()?.weight();
                may_fold(&key.scope_kind).then(|| (weight, key.clone()))
            })
            .collect();
        scopes.sort_by(|one, other| one.0.total_cmp(&other.0));
        scopes.truncate(SCOPES_MAX / 2);
        let mut unlisted_max = 0;
        for (_, key) in scopes {
            let Some(folded) = self.sums.remove(&key) else { continue };
            self.memory_bytes -= folded.memory_bytes();
            if let Some(PointTotal::Heavy(sums)) = &folded.point {
                unlisted_max = unlisted_max.max(sums.packets_max);
            }
            self.add_to_other(&folded);
        }
        self.note_unlisted(series, start_ns, unlisted_max);
        self.folded = self.folded.saturating_add(1);
    }

    fn add_to_other(&mut self, folded: &RollUp) {
        let row = Row {
            scope_kind: scope_kind(&Scope::Other).to_owned(),
            scope: Scope::Other.to_string(),
            ..folded.row()
        };
        let key = SumKey::of(&row, row.start_ns);
        self.memory_bytes -= self.sums.get(&key).map_or(0, RollUp::memory_bytes);
        let other = self.sums.entry(key).or_insert_with(|| RollUp::like(&row, row.step));
        other.add_point(&row);
        other.row.epochs = other.row.epochs.max(row.epochs);
        other.has_folded = true;
        self.memory_bytes += other.memory_bytes();
    }

    /// A flow that gave way and returns had so many packets more.
    fn note_unlisted(&mut self, series: &SeriesKey, start_ns: i64, packets: u64) {
        let all = SumKey {
            series: series.clone(),
            scope_kind: scope_kind(&Scope::All).to_owned(),
            scope: Scope::All.to_string(),
            start_ns,
            ..SumKey::default()
        };
        let sum = self.sums.get_mut(&all).and_then(|sum| sum.point.as_mut());
        if let Some(PointTotal::Heavy(sums)) = sum {
            sums.unlisted_max = sums.unlisted_max.saturating_add(packets);
        }
    }
}
