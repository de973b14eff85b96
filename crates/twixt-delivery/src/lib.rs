//! What an agent and a collector say to each other, defined once for both.
//!
//! An agent posts sealed epochs ([`UploadWriter`]) to [`UPLOAD_PATH`]. The collector replies with a
//! [`Receipt`] that accounts for every one of them, or with an [`RequestError`]. Only a receipt
//! settles an epoch: whatever else is replied, by the collector or by a proxy in between, leaves it
//! in the agent's spool ([`Reply`]).
//!
//! Either side may be the older one. Unknown keys are ignored, missing keys have defaults, and a
//! refusal whose code is not known leaves the epoch with the agent. Connections, compression and
//! storage are not known here.

mod agent;
mod receipt;
mod reply;
mod upload;

pub use agent::{AGENT_PRODUCT, NoSpoolState, SPOOL_HEADER, SpoolState, agent_version};
pub use receipt::{Receipt, RefusalCode, RefusedEpoch, RequestError};
pub use reply::{Reply, ResponseParts};
pub use upload::{UPLOAD_EPOCHS_MAX, UploadError, UploadWriter, read_upload};

/// Where epochs are posted to.
pub const UPLOAD_PATH: &str = "/v1/epochs";
/// `Content-Type` of the body.
pub const UPLOAD_MEDIA_TYPE: &str = "application/vnd.twixt.epochs";
/// `Content-Encoding` of a compressed body.
pub const UPLOAD_ENCODING: &str = "zstd";
/// Header that a collector sends with every reply to an upload, so that its replies can be
/// distinguished from those of a proxy. Releases before it did not send it.
pub const COLLECTOR_HEADER: &str = "twixt-collector";
/// Its value: the version of what is defined here.
pub const COLLECTOR_HEADER_VALUE: &str = "1";
/// How a name in a client certificate begins that allows to write a point.
pub const POINT_URI_PREFIX: &str = "twixt:point:";
