//! Which epochs of a point are sent next, and what a reply means for them.
//!
//! Every point has a spool, and a delivery with waits of its own: a point that the collector does not
//! take holds up no other. One batch at a time, oldest first, so that an epoch is confirmed only after
//! all before it. Nothing else than a receipt takes an epoch out of the spool. One that the collector
//! does not take now, or that nothing in between lets through, goes to the back of the spool and is
//! sent again after the others. Opens no connection and reads no clock: see `sender`.

mod back_off;

use std::time::Duration;

use twixt_delivery::{Receipt, RefusedEpoch, Reply, UploadWriter};

use crate::metrics::SenderMetrics;
use crate::spool::{Spool, SpoolError, Spooled};
use back_off::BackOff;

/// Epochs in one body at most.
pub const BATCH_EPOCHS_MAX: usize = 256;
/// Bytes of epochs in one body, unless a single one has more.
pub const BATCH_BYTES_MAX: usize = 4 << 20;
/// Fast, and epochs are small.
const ZSTD_LEVEL: i32 = 3;

/// The epochs of one point on their way from the spool to the collector.
#[derive(Debug)]
pub(crate) struct Delivery {
    point: String,
    back_off: BackOff,
    /// Epochs in the next body: fewer after one was refused as a whole.
    epochs_max: usize,
    /// The collector does not allow this point, and that was logged.
    is_forbidden: bool,
    /// Why the spool could not be read, as it was logged last.
    unreadable: Option<String>,
    metrics: SenderMetrics,
}

/// What all deliveries of an agent know of the collector.
#[derive(Debug, Default)]
pub(crate) struct CollectorTrouble {
    /// What went wrong last, whatever the point, so that it is logged once.
    reason: Option<String>,
}

impl Delivery {
    /// Nothing is sent yet. The seed is for the jitter of its waits.
    pub(crate) fn new(point: &str, seed: u64, metrics: SenderMetrics) -> Self {
        Self {
            point: point.to_owned(),
            back_off: BackOff::new(seed),
            epochs_max: BATCH_EPOCHS_MAX,
            is_forbidden: false,
            unreadable: None,
            metrics,
        }
    }

    /// What to send next; nothing if the spool is empty, or cannot be read now.
    pub(crate) fn batch(&mut self, spool: &Spool) -> Vec<Spooled> {
        match spool.batch(self.epochs_max, BATCH_BYTES_MAX) {
            Ok(batch) => {
                self.unreadable = None;
                batch
            }
            Err(error) => {
                self.note_unreadable(&error);
                Vec::new()
            }
        }
    }

    /// Settles what the reply to a batch settles; how long to wait before the next, if not all of it
    /// was settled.
    pub(crate) fn settle(
        &mut self,
        spool: &Spool,
        batch: &[Spooled],
        reply: Reply,
        trouble: &mut CollectorTrouble,
    ) -> Option<Duration> {
        self.metrics.replied(&reply);
        match reply {
            Reply::Receipt(receipt) => self.take_receipt(spool, batch, &receipt, trouble),
            Reply::TooLarge { .. } if batch.len() > 1 => {
                self.epochs_max = batch.len().div_ceil(2);
                None
            }
            Reply::TooLarge { reason } => {
                for Spooled { epoch, .. } in batch {
                    let (point, epoch) = (&self.point, epoch.0);
                    tracing::warn!(point, epoch, reason, "epoch not delivered, kept");
                }
                self.put_back(spool, batch, batch)
            }
            Reply::Forbidden { reason } => {
                if !std::mem::replace(&mut self.is_forbidden, true) {
                    tracing::warn!(point = self.point, reason, "epochs not delivered, kept");
                }
                Some(self.back_off.next(None))
            }
            Reply::Unavailable { after, reason } => {
                if trouble.reason.as_ref() != Some(&reason) {
                    tracing::warn!(reason, "epochs not delivered, kept");
                    trouble.reason = Some(reason);
                }
                Some(self.back_off.next(after))
            }
        }
    }

    /// The receipt accounts for all epochs: those that it settles leave the spool.
    fn take_receipt(
        &mut self,
        spool: &Spool,
        batch: &[Spooled],
        receipt: &Receipt,
        trouble: &mut CollectorTrouble,
    ) -> Option<Duration> {
        self.log_refusals(&receipt.refused);
        self.metrics.received(receipt);
        let unsettled = receipt.refused.iter().filter(|refused| !refused.is_final());
        let unsettled: Vec<Spooled> =
            unsettled.filter_map(|refused| batch.get(refused.index?)).cloned().collect();
        self.epochs_max = (self.epochs_max * 2).min(BATCH_EPOCHS_MAX);
        if trouble.reason.take().is_some() | std::mem::take(&mut self.is_forbidden) {
            tracing::info!(point = self.point, "the collector accepts epochs again");
        }
        if unsettled.len() < batch.len() {
            self.back_off.reset();
        }
        match unsettled.is_empty() {
            true => {
                spool.confirm(batch.last()?);
                None
            }
            false => self.put_back(spool, batch, &unsettled),
        }
    }

    /// The spool cannot be read, and that is logged once. Its epochs wait.
    fn note_unreadable(&mut self, error: &SpoolError) {
        let problem = error.to_string();
        if self.unreadable.as_ref() != Some(&problem) {
            tracing::error!(point = self.point, problem, "cannot read the spool; epochs wait");
            self.unreadable = Some(problem);
        }
    }

    /// Puts these epochs of the batch to the back of the spool, and confirms the batch. If the disk
    /// does not take them, all of it stays where it is.
    fn put_back(
        &mut self,
        spool: &Spool,
        batch: &[Spooled],
        epochs: &[Spooled],
    ) -> Option<Duration> {
        let append = |spooled: &Spooled| spool.append(spooled.epoch, &spooled.payload);
        match epochs.iter().try_for_each(append).and_then(|()| spool.sync()) {
            Ok(()) => {
                self.metrics.put_back(epochs.len() as u64);
                spool.confirm(batch.last()?);
            }
            Err(error) => tracing::warn!(point = self.point, %error, "the spool cannot be written"),
        }
        Some(self.back_off.next(None))
    }

    /// One line for all that are discarded, and one for all that are kept: a collector that is to be
    /// upgraded refuses every epoch.
    fn log_refusals(&self, refused: &[RefusedEpoch]) {
        for (is_final, consequence) in [(true, "discarded"), (false, "kept")] {
            let mut such = refused.iter().filter(|epoch| epoch.is_final() == is_final);
            if let Some(RefusedEpoch { epoch, reason, .. }) = such.next() {
                let (point, epochs) = (&self.point, 1 + such.count());
                tracing::warn!(point, epoch, reason, epochs, consequence, "epochs refused");
            }
        }
    }
}

/// The compressed body of an upload.
pub(crate) fn body_of(batch: &[Spooled]) -> Result<Vec<u8>, String> {
    let mut writer = UploadWriter::new();
    for spooled in batch {
        writer.push(&spooled.payload).map_err(|error| error.to_string())?;
    }
    zstd::bulk::compress(&writer.into_body(), ZSTD_LEVEL).map_err(|error| error.to_string())
}
