//! What time it is. The only place that asks, so that tests can say it.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::SystemTime;

use twixt_model::Timestamp;

/// Tells the time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Clock {
    /// Nanoseconds since 1970, where a test says so.
    told: Option<Arc<AtomicI64>>,
}

impl Clock {
    /// A clock that stands until it is set.
    #[cfg(test)]
    pub(crate) fn standing_at(now: Timestamp) -> Self {
        Self { told: Some(Arc::new(AtomicI64::new(now.as_nanos()))) }
    }

    pub(crate) fn now(&self) -> Timestamp {
        if let Some(told) = &self.told {
            return Timestamp::from_nanos(told.load(Ordering::Relaxed));
        }
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Timestamp::from_nanos(i64::try_from(since.as_nanos()).unwrap_or(i64::MAX))
    }
}
