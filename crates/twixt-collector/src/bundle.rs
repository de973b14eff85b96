//! Incident bundles: what is known of one segment in one interval of time, in one file that can be
//! looked at on another machine.
//!
//! | module | the question it answers |
//! |---|---|
//! | `manifest` | What is in a bundle, who wrote it, and what was left out? |
//! | `configuration` | How was the collector configured, without its secrets? |
//! | `packing` | How does a collector's directory become a bundle? |
//! | `epochs` | Which raw epochs belong to it? |
//! | `opening` | How does a bundle become a directory again? |
//! | `viewing` | How does a browser look at it? |
//!
//! The file is made of checked sections (`twixt-store`). It has rows of estimates and raw epochs, never
//! files with names: what is opened is written anew, into a folder that the caller chose, by what writes
//! the same at a collector. So every program that reads a collector's directory reads a bundle.

mod configuration;
mod epochs;
mod manifest;
mod opening;
mod packing;
mod viewing;

pub use configuration::{ConfigurationDocument, SegmentEntryDocument};
pub use manifest::{
    BundleCountsDocument, BundleEpochsDocument, BundleWriterDocument, ManifestDocument,
    SegmentNameDocument,
};
pub use opening::{check_bundle, is_bundle, open_bundle};
pub use packing::{BundleAsked, BundleOrigin, EstimateSource, pack};
pub use viewing::view_bundle;

use std::io;
use std::time::Duration;

use twixt_history::{HistoryError, RebuildError};
use twixt_store::{SectionError, StoreError};

/// Longest time of a bundle.
pub const DAYS_MAX: u64 = 31;
/// Raw epochs of a bundle, both points together. Later ones are left out.
pub const EPOCHS_MAX: usize = 50_000;
/// Bytes of raw epochs, both points together. Later ones are left out.
pub const EPOCH_BYTES_MAX: u64 = 256 << 20;
/// Bytes of a bundle that is opened, unpacked.
pub const UNPACKED_BYTES_MAX: u64 = 1 << 30;
/// Problems and the like that a manifest lists.
const LISTED_MAX: usize = 1_000;
/// Series of a bundle.
const SERIES_MAX: usize = 10_000;

const SPAN_MAX: Duration = Duration::from_secs(DAYS_MAX * 24 * 3_600);

/// Kinds of sections. They are never used for something else.
mod kind {
    /// What is in the bundle, as JSON: one, and the last.
    pub(super) const MANIFEST: u16 = 1;
    /// Minutes and hours: when their hour starts, and a record of rows.
    pub(super) const SUMS: u16 = 2;
    /// Rows of epochs, likewise.
    pub(super) const EPOCH_ROWS: u16 = 3;
    /// A raw epoch of the upstream point.
    pub(super) const UPSTREAM: u16 = 4;
    /// A raw epoch of the downstream point.
    pub(super) const DOWNSTREAM: u16 = 5;
}

/// Why there is no bundle, or it cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BundleError {
    /// The time is too long. Ask for less.
    #[error("a bundle covers {DAYS_MAX} days at most: request a shorter time")]
    TooLong,
    /// There is nothing to pack. Check names and time.
    #[error("nothing is stored of that segment and time")]
    Empty,
    /// The file is no bundle, damaged, or of a newer release.
    #[error(transparent)]
    Sections(#[from] SectionError),
    /// The file is whole, but twixt did not write what is in it. Do not trust it.
    #[error("the bundle makes no sense: {0}")]
    Content(String),
    /// Estimates cannot be read or written. See the message of the history.
    #[error(transparent)]
    History(#[from] HistoryError),
    /// Raw epochs cannot be read or written. See the message of the store.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A file cannot be read or written, or an address not be listened on.
    #[error("cannot {action}: {source}")]
    Io {
        /// What was tried.
        action: String,
        /// What the system says.
        source: io::Error,
    },
}

impl BundleError {
    fn content(problem: impl Into<String>) -> Self {
        Self::Content(problem.into())
    }

    fn io(action: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { action: action.into(), source }
    }
}

impl From<RebuildError> for BundleError {
    fn from(error: RebuildError) -> Self {
        match error {
            RebuildError::Rows(problem) => Self::content(problem),
            RebuildError::History(error) => Self::History(error),
            other => Self::content(other.to_string()),
        }
    }
}
