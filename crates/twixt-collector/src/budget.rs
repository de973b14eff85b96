//! How much memory may be taken by what waits: bodies that are being read, epochs that are decoded,
//! epochs on their way to the disk and to the engine. Code that needs memory holds bytes of the
//! budget *before* allocating, and gives them back by dropping what it holds.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Registry, Unit};

/// One holder has one part in so many of the budget at most, so that one agent cannot keep out all
/// others.
const HOLDER_SHARE: u64 = 4;

/// Bytes of memory that many holders share. Clones share the same bytes.
#[derive(Clone, Debug)]
pub(crate) struct ByteBudget {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    bytes_max: u64,
    holder_bytes_max: u64,
    held: Mutex<Holdings>,
    metrics: BudgetMetrics,
}

#[derive(Debug, Default)]
struct Holdings {
    all: u64,                          // at most bytes_max
    by_holder: HashMap<Arc<str>, u64>, // at most holder_bytes_max each; only those that hold any
}

/// Gauges of the budget.
#[derive(Clone, Debug, Default)]
pub(crate) struct BudgetMetrics {
    held: Gauge,
    max: Gauge,
    refused: Counter,
}

/// Bytes of a [`ByteBudget`]; dropping it gives them back.
#[derive(Debug)]
pub(crate) struct HeldBytes {
    budget: ByteBudget,
    holder: Arc<str>,
    bytes: u64,
}

impl BudgetMetrics {
    pub(crate) fn new(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        let help = "Memory held by request bodies and waiting epochs";
        registry.register_with_unit("memory_held", help, Unit::Bytes, metrics.held.clone());
        let help = "Memory limit for request bodies and waiting epochs (memory_max)";
        registry.register_with_unit("memory_max", help, Unit::Bytes, metrics.max.clone());
        let help = "Requests for memory refused because the budget was in use";
        registry.register("memory_refused", help, metrics.refused.clone());
        metrics
    }
}

impl ByteBudget {
    pub(crate) fn new(bytes_max: u64, metrics: BudgetMetrics) -> Self {
        metrics.max.set(bytes_max.cast_signed());
        let holder_bytes_max = (bytes_max / HOLDER_SHARE).max(1);
        let held = Mutex::default();
        Self { shared: Arc::new(Shared { bytes_max, holder_bytes_max, held, metrics }) }
    }

    /// Nothing yet, for this holder to grow.
    pub(crate) fn nothing(&self, holder: &str) -> HeldBytes {
        HeldBytes { budget: self.clone(), holder: Arc::from(holder), bytes: 0 }
    }

    /// How much is held, and how much may be.
    pub(crate) fn held(&self) -> (u64, u64) {
        (self.lock().all, self.shared.bytes_max)
    }

    fn lock(&self) -> MutexGuard<'_, Holdings> {
        self.shared.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether so many more bytes were there to be had.
    fn take(&self, holder: &Arc<str>, bytes: u64) -> bool {
        let Shared { bytes_max, holder_bytes_max, metrics, .. } = &*self.shared;
        let mut held = self.lock();
        let all = held.all.saturating_add(bytes);
        let own = held.by_holder.get(holder).copied().unwrap_or(0).saturating_add(bytes);
        if all > *bytes_max || own > *holder_bytes_max {
            metrics.refused.inc();
            return false;
        }
        held.all = all;
        held.by_holder.insert(Arc::clone(holder), own);
        metrics.held.set(all.cast_signed());
        true
    }

    fn give_back(&self, holder: &Arc<str>, bytes: u64) {
        let mut held = self.lock();
        held.all -= bytes;
        self.shared.metrics.held.set(held.all.cast_signed());
        if let Some(own) = held.by_holder.get_mut(holder) {
            *own -= bytes;
            if *own == 0 {
                held.by_holder.remove(holder);
            }
        }
    }
}

impl HeldBytes {
    /// The most that its holder can have, however little others hold.
    pub(crate) fn holder_bytes_max(&self) -> u64 {
        self.budget.shared.holder_bytes_max
    }

    /// Holds so many bytes in all, if the budget has them; else nothing changes.
    #[must_use]
    pub(crate) fn try_grow_to(&mut self, bytes: u64) -> bool {
        let more = bytes.saturating_sub(self.bytes);
        let is_held = more == 0 || self.budget.take(&self.holder, more);
        if is_held {
            self.bytes = self.bytes.max(bytes);
        }
        is_held
    }

    /// Gives back all but so many bytes.
    pub(crate) fn shrink_to(&mut self, bytes: u64) {
        drop(self.split(self.bytes.saturating_sub(bytes)));
    }

    /// Splits off this many bytes (at most all), for another holder.
    pub(crate) fn split(&mut self, bytes: u64) -> Self {
        let bytes = bytes.min(self.bytes);
        self.bytes -= bytes;
        Self { budget: self.budget.clone(), holder: Arc::clone(&self.holder), bytes }
    }
}

impl Drop for HeldBytes {
    fn drop(&mut self) {
        if self.bytes > 0 {
            self.budget.give_back(&self.holder, self.bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn budget(bytes_max: u64) -> ByteBudget {
        ByteBudget::new(bytes_max, BudgetMetrics::default())
    }

    fn held(budget: &ByteBudget) -> u64 {
        let all = budget.lock().all;
        assert_eq!(all, budget.lock().by_holder.values().sum::<u64>());
        assert_eq!(all.cast_signed(), budget.shared.metrics.held.get());
        all
    }

    #[test]
    fn what_is_dropped_can_be_held_again() {
        let budget = budget(400);
        let mut first = budget.nothing("a");
        assert!(first.try_grow_to(60) && first.try_grow_to(50));
        assert_eq!(held(&budget), 60, "growing to less changes nothing");
        let part = first.split(20);
        first.shrink_to(30);
        assert_eq!(held(&budget), 50);
        drop(first);
        assert_eq!(held(&budget), 20);
        drop(part);
        assert_eq!(held(&budget), 0);
        assert!(
            budget.lock().by_holder.is_empty(),
            "nothing is remembered of whoever holds nothing"
        );
    }

    #[test]
    fn neither_one_holder_nor_all_together_have_more_than_their_share() {
        let budget = budget(400);
        let mut all: Vec<HeldBytes> =
            ["a", "b", "c", "d"].map(|holder| budget.nothing(holder)).into();
        for own in &mut all {
            assert!(!own.try_grow_to(101), "one holder has a quarter at most");
            assert!(own.try_grow_to(100));
        }
        assert!(!budget.nothing("e").try_grow_to(1), "all of it is held");
        assert!(!budget.nothing("a").try_grow_to(u64::MAX));
        all.pop();
        assert!(!budget.nothing("a").try_grow_to(1), "the same holder, elsewhere");
        assert!(budget.nothing("e").try_grow_to(1));
        assert_eq!(budget.shared.metrics.refused.get(), 7);
    }
}
