//! Sealed epochs become the bodies that agents post: one for each router.

use std::collections::BTreeMap;

use twixt_delivery::{Reply, ResponseParts, UploadWriter};

use crate::error::DemoError;
use crate::points::SealedAt;

/// Fast, and epochs are small.
const ZSTD_LEVEL: i32 = 3;

/// What the agent of a router posts.
pub(crate) struct Upload {
    pub(crate) body: Vec<u8>,
    epochs: usize,
}

impl Upload {
    /// What the collector's response means: all is stored, or to be sent again, or an error.
    pub(crate) fn read(&self, response: ResponseParts<'_>) -> Result<UploadOutcome, DemoError> {
        match Reply::read(response, self.epochs) {
            Reply::Receipt(receipt) if receipt.refused.is_empty() => Ok(UploadOutcome::Stored),
            Reply::Receipt(receipt) => Err(DemoError::Upload(
                receipt
                    .refused
                    .into_iter()
                    .map(|refused| refused.reason)
                    .collect::<Vec<_>>()
                    .join("; "),
            )),
            Reply::Unavailable { .. } => Ok(UploadOutcome::Again),
            Reply::TooLarge { reason } | Reply::Forbidden { reason } => {
                Err(DemoError::Upload(reason))
            }
        }
    }
}

/// What became of an upload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UploadOutcome {
    /// It is durable.
    Stored,
    /// The collector is busy.
    Again,
}

/// What the agents of all routers post.
pub(crate) fn uploads(sealed: &[SealedAt]) -> Result<Vec<Upload>, DemoError> {
    let mut writers: BTreeMap<&str, UploadWriter> = BTreeMap::new();
    for SealedAt { router, sealed } in sealed {
        let writer = writers.entry(router).or_default();
        writer.push(&sealed.to_bytes()).map_err(|error| DemoError::Upload(error.to_string()))?;
    }
    let packed = |writer: UploadWriter| {
        let epochs = writer.epochs();
        let body = zstd::bulk::compress(&writer.into_body(), ZSTD_LEVEL);
        body.map(|body| Upload { body, epochs }).map_err(DemoError::Start)
    };
    writers.into_values().map(packed).collect()
}
