//! What a store keeps: old days are deleted as new epochs are written.

use twixt_model::{Delay, Timestamp};
use twixt_store::{Log, StoreError};

use crate::args::bytes;
use crate::exit::note;
use crate::output::units;

const DAY_NS: i64 = 86_400_000_000_000;

/// How much of a store is kept. Days of all points count.
#[derive(Clone, Copy, Default, clap::Args)]
pub(super) struct Retention {
    /// Delete days of the store that ended more than this many days before the newest epoch
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    keep_days: Option<u32>,
    /// Delete the oldest days of the store while its files exceed this size in total
    #[arg(long, value_name = "SIZE", value_parser = bytes)]
    keep_bytes: Option<u64>,
}

/// Days that were deleted so far.
#[derive(Default)]
pub(super) struct Forgotten {
    days: u64,
    bytes: u64,
    /// Bytes of the store, if they are still too many.
    left_bytes: Option<u64>,
}

impl Retention {
    /// Whether anything is to be deleted.
    pub(super) const fn is_asked_for(&self) -> bool {
        self.keep_days.is_some() || self.keep_bytes.is_some()
    }

    /// Deletes what is too old or too much, now that there is an epoch of this time. Time is that
    /// of the packets: an old capture does not expire as it is recorded.
    pub(super) fn apply(
        &self,
        log: &Log,
        newest: Timestamp,
        forgotten: &mut Forgotten,
    ) -> Result<(), StoreError> {
        if let Some(days) = self.keep_days {
            let removed = log.expire(newest - Delay::from_nanos(i64::from(days) * DAY_NS))?;
            forgotten.days += removed.days;
            forgotten.bytes += removed.bytes;
        }
        if let Some(most) = self.keep_bytes {
            let removed = log.bound(most)?;
            forgotten.days += removed.days;
            forgotten.bytes += removed.bytes;
            forgotten.left_bytes = removed.left_bytes.filter(|&left| left > most);
        }
        Ok(())
    }
}

impl Forgotten {
    /// Says what is no longer there.
    pub(super) fn note(&self, store: &str) {
        if self.days > 0 {
            let (days, bytes) = (units::count(self.days), units::bytes(self.bytes));
            note(format_args!("{store}: {days} old days of points were deleted, {bytes}"));
        }
        if let Some(left) = self.left_bytes {
            let left = units::bytes(left);
            note(format_args!(
                "{store}: {left} remain, more than --keep-bytes: days being written are kept"
            ));
        }
    }
}
