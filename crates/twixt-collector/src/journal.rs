//! Makes epochs durable, and decides which are taken.
//!
//! One thread has all writers of the log. It takes what several requests brought, appends all of
//! it, makes the files durable once, and only then answers: many agents share the cost of a disk
//! (group commit). What was stored goes on to the thread that estimates. It knows no connections.

mod judge;
mod metrics;
mod runs;
mod thread;
mod writers;

pub use judge::Refusal;
pub(crate) use metrics::JournalMetrics;
pub(crate) use thread::Journal;

use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::time::Duration;

use axum::body::Bytes;
use tokio::sync::oneshot;
use twixt_delivery::{Receipt, RefusedEpoch};
use twixt_measure::Sealed;

use crate::budget::HeldBytes;
use crate::clock::WallClock;

/// Requests that wait to be stored; further ones are asked to retry.
pub(crate) const SUBMISSIONS_MAX: usize = 64;

/// How long storing may take before waiting requests are asked to retry. Agents wait longer.
const STORE_TIME: Duration = Duration::from_secs(10);

/// What is forgotten, and when.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EpochRetention {
    /// Epochs are deleted when they are older; older ones are not taken.
    pub age_max: Option<Duration>,
    /// Days are deleted, the oldest first, when the log has more bytes.
    pub bytes_max: Option<u64>,
}

/// Configuration of a journal.
#[derive(Clone, Debug)]
pub(crate) struct JournalConfig {
    pub(crate) domain: Option<String>,
    pub(crate) retention: EpochRetention,
    pub(crate) points_max: usize,
    /// Logs of points that stay open.
    pub(crate) writers_max: usize,
    pub(crate) clock: WallClock,
}

/// An epoch on its way to the disk.
#[derive(Debug)]
pub(crate) struct Arrived {
    /// Its place in the request.
    pub(crate) index: usize,
    pub(crate) sealed: Sealed,
    /// A part of the request's body.
    pub(crate) bytes: Bytes,
    pub(crate) memory: HeldBytes,
}

/// A durable epoch on its way to the engine, with the memory that it holds until it is there.
#[derive(Debug)]
pub(crate) struct StoredEpoch {
    pub(crate) sealed: Sealed,
    pub(crate) memory: HeldBytes,
}

/// Nothing of a request counts as stored. It may be sent again, later.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unavailable {
    /// More requests come than the disk takes.
    #[error("too many requests wait to be stored")]
    Crowded,
    /// The disk is slow, or estimates cannot be stored: storing waits for them.
    #[error("storing takes too long: the disk is slow, or has no space for estimates")]
    Slow,
    /// The disk is full, read-only or broken.
    #[error("cannot store: {0}")]
    Storage(String),
    /// The collector ends.
    #[error("the collector is stopping")]
    Stopping,
}

/// What a request hands over.
#[derive(Debug)]
pub(crate) struct Submission {
    pub(crate) epochs: Vec<Arrived>,
    /// Records that cannot be stored.
    pub(crate) refused: Vec<RefusedEpoch>,
    pub(crate) answer: oneshot::Sender<Result<Receipt, Unavailable>>,
}

/// Hands requests to the journal's thread. The thread ends when the last of these is gone.
#[derive(Clone, Debug)]
pub(crate) struct JournalSender {
    sender: SyncSender<Submission>,
}

impl JournalSender {
    /// Waits until the epochs are durable, or cannot be. The receipt accounts for `refused` too.
    pub(crate) async fn store(
        &self,
        epochs: Vec<Arrived>,
        refused: Vec<RefusedEpoch>,
    ) -> Result<Receipt, Unavailable> {
        let (answer, answered) = oneshot::channel();
        let submission = Submission { epochs, refused, answer };
        self.sender.try_send(submission).map_err(|error| match error {
            TrySendError::Full(_) => Unavailable::Crowded,
            TrySendError::Disconnected(_) => Unavailable::Stopping,
        })?;
        // If it is stored after all, it is a duplicate when it comes again.
        match tokio::time::timeout(STORE_TIME, answered).await {
            Ok(answered) => answered.unwrap_or(Err(Unavailable::Stopping)),
            Err(_) => Err(Unavailable::Slow),
        }
    }
}

pub(crate) fn channel() -> (JournalSender, std::sync::mpsc::Receiver<Submission>) {
    let (sender, receiver) = sync_channel(SUBMISSIONS_MAX);
    (JournalSender { sender }, receiver)
}
