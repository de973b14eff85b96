//! What is answered, as JSON.

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use serde::Serialize;

use super::FILES_MAX;
use crate::journal::{Outcome, Refusal, Unavailable};

/// How long to wait when storing fails, in seconds.
const STORAGE_RETRY_SECONDS: u64 = 5;

/// What became of the epochs. Keys are part of the contract with agents.
#[derive(Serialize)]
struct AcceptedDocument<'a> {
    stored: u64,
    duplicates: u64,
    refused: Vec<RefusedDocument<'a>>,
}

/// An epoch that was not taken; point and epoch are null where the record does not tell.
#[derive(Serialize)]
struct RefusedDocument<'a> {
    index: usize,
    point: Option<&'a str>,
    epoch: Option<i64>,
    reason: String,
}

#[derive(Serialize)]
struct ErrorDocument {
    error: String,
}

/// All that is stored is durable.
pub(super) fn accepted(outcome: &Outcome) -> Response {
    let refused = outcome.refused.iter().map(|refused| {
        let is_known = !matches!(refused.reason, Refusal::Undecodable(_));
        RefusedDocument {
            index: refused.index,
            point: is_known.then_some(&refused.point),
            epoch: is_known.then_some(refused.epoch),
            reason: refused.reason.to_string(),
        }
    });
    let document = AcceptedDocument {
        stored: outcome.stored,
        duplicates: outcome.duplicates,
        refused: refused.collect(),
    };
    json(StatusCode::OK, &document)
}

/// Why nothing was taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Problem {
    /// No certificate, and no known token.
    #[error("say who you are: a known token or a client certificate is needed")]
    Stranger,
    /// Somebody else's point.
    #[error("you may not write point {point:?}")]
    Forbidden { point: String },
    #[error("no such path")]
    NoSuchPath,
    #[error("epochs are sent with POST")]
    Method,
    /// Neither plain nor zstd.
    #[error("the body may be plain or packed with zstd")]
    Encoding,
    #[error("malformed body: {0}")]
    Malformed(String),
    #[error("the body has more than {bytes_max} bytes")]
    TooLarge { bytes_max: usize },
    /// Each day of each point is a file to be made durable.
    #[error("the body has epochs of more than {FILES_MAX} days of points")]
    TooWide,
    #[error("the body took too long")]
    Slow,
    /// The sender went away.
    #[error("the body ended early")]
    Cut,
    /// More epochs than the caller may send, or too many requests at once.
    #[error("too much at once: come again in {seconds} s")]
    TooMuch { seconds: u64 },
    /// All memory for bodies is in use.
    #[error("too many bodies are being read")]
    Crowded,
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
    /// A mistake of ours.
    #[error("the request could not be handled")]
    Failed,
}

impl Problem {
    pub(super) fn status(&self) -> StatusCode {
        match self {
            Self::Stranger => StatusCode::UNAUTHORIZED,
            Self::Forbidden { .. } => StatusCode::FORBIDDEN,
            Self::NoSuchPath => StatusCode::NOT_FOUND,
            Self::Method => StatusCode::METHOD_NOT_ALLOWED,
            Self::Encoding => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::Malformed(_) | Self::Cut => StatusCode::BAD_REQUEST,
            Self::TooLarge { .. } | Self::TooWide => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Slow => StatusCode::REQUEST_TIMEOUT,
            Self::TooMuch { .. } => StatusCode::TOO_MANY_REQUESTS,
            Self::Crowded | Self::Unavailable(_) => StatusCode::SERVICE_UNAVAILABLE,
            Self::Failed => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    pub(super) fn into_response(self) -> Response {
        let mut response = json(self.status(), &ErrorDocument { error: self.to_string() });
        let headers = response.headers_mut();
        if let Some(seconds) = self.retry_seconds() {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if self == Self::Stranger {
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
            Self::Unavailable(_) | Self::Malformed(_) | Self::Forbidden { .. } | Self::TooWide
        )
    }
}

fn json(status: StatusCode, document: &impl Serialize) -> Response {
    let body = serde_json::to_vec(document).expect("texts and numbers make JSON");
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
