//! What time it is. The only place of the collector that asks.

use std::time::SystemTime;

use twixt_model::Timestamp;

/// The system's clock.
pub(crate) fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_nanos(i64::try_from(since.as_nanos()).unwrap_or(i64::MAX))
}
