//! What is answered, as JSON.

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use serde::Serialize;
use twixt_delivery::{COLLECTOR_HEADER, COLLECTOR_HEADER_VALUE, Receipt, RequestError};

use super::FILES_MAX;
use crate::journal::Unavailable;

/// How long to wait when storing fails, in seconds.
const STORAGE_RETRY_SECONDS: u64 = 5;

/// All that is stored is durable.
pub(crate) fn accepted(receipt: &Receipt) -> Response {
    json(StatusCode::OK, receipt)
}

/// Why nothing was taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Problem {
    /// No certificate, and no known token.
    #[error("authentication required: send a token or a client certificate")]
    Unauthenticated,
    /// A point that the token or certificate does not cover.
    #[error("not allowed to write point {point:?}")]
    Forbidden { point: String },
    #[error("no such path")]
    NoSuchPath,
    #[error("use POST to send epochs")]
    Method,
    /// Neither plain nor zstd.
    #[error("unsupported content encoding: use none or zstd")]
    Encoding,
    #[error("malformed body: {0}")]
    Malformed(String),
    #[error("the body has more than {bytes_max} bytes")]
    TooLarge { bytes_max: usize },
    /// Each day of each point is a file to be made durable.
    #[error("the body has epochs of more than {FILES_MAX} days of points: send fewer at a time")]
    TooWide,
    /// Decoded, the epochs need more memory than one caller may hold.
    #[error(
        "the epochs need {needed_bytes} bytes of memory, {bytes_max} are allowed: send fewer at a \
         time"
    )]
    TooMuchMemory { needed_bytes: u64, bytes_max: u64 },
    #[error("the body took too long")]
    Slow,
    /// The sender went away.
    #[error("the body ended early")]
    Cut,
    /// More epochs than the caller may send, or too many requests at once.
    #[error("too many requests or epochs: retry in {seconds} s")]
    TooMuch { seconds: u64 },
    /// All memory for bodies and epochs is in use.
    #[error("no memory left for requests (memory_max): retry")]
    Crowded,
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
    /// A bug in the collector.
    #[error("the request could not be handled")]
    Failed,
}

impl Problem {
    pub(crate) fn status(&self) -> StatusCode {
        match self {
            Self::Unauthenticated => StatusCode::UNAUTHORIZED,
            Self::Forbidden { .. } => StatusCode::FORBIDDEN,
            Self::NoSuchPath => StatusCode::NOT_FOUND,
            Self::Method => StatusCode::METHOD_NOT_ALLOWED,
            Self::Encoding => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::Malformed(_) | Self::Cut => StatusCode::BAD_REQUEST,
            Self::TooLarge { .. } | Self::TooWide | Self::TooMuchMemory { .. } => {
                StatusCode::PAYLOAD_TOO_LARGE
            }
            Self::Slow => StatusCode::REQUEST_TIMEOUT,
            Self::TooMuch { .. } => StatusCode::TOO_MANY_REQUESTS,
            Self::Crowded | Self::Unavailable(_) => StatusCode::SERVICE_UNAVAILABLE,
            Self::Failed => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    pub(crate) fn into_response(self) -> Response {
        let mut response = json(self.status(), &RequestError { error: self.to_string() });
        let headers = response.headers_mut();
        if let Some(seconds) = self.retry_seconds() {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if self == Self::Unauthenticated {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        // The rest of the body is not read, so nothing can follow it.
        if self.leaves_body() {
            headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        response
    }

    fn retry_seconds(&self) -> Option<u64> {
        match self {
            Self::TooMuch { seconds } => Some(*seconds),
            Self::Crowded | Self::Unavailable(Unavailable::Crowded) => Some(1),
            Self::Unavailable(_) => Some(STORAGE_RETRY_SECONDS),
            _ => None,
        }
    }

    fn leaves_body(&self) -> bool {
        !matches!(
            self,
            Self::Unavailable(_)
                | Self::Malformed(_)
                | Self::Forbidden { .. }
                | Self::TooWide
                | Self::TooMuchMemory { .. }
        )
    }
}

fn json(status: StatusCode, document: &impl Serialize) -> Response {
    let body = serde_json::to_vec(document).expect("texts and numbers make JSON");
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(COLLECTOR_HEADER, HeaderValue::from_static(COLLECTOR_HEADER_VALUE));
    response
}
