//! Why there is no answer.

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Why the request was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Problem {
    /// No valid reader token. The answer is the same on every path.
    #[error("authentication required: send a token or a client certificate")]
    Unauthorised,
    /// The token allows to read only.
    #[error(
        "this token may not acknowledge or silence alerts: its [[reader]] needs may_silence = true"
    )]
    Forbidden,
    /// More questions than a reader may ask.
    #[error("too many requests: retry in {seconds} s")]
    TooMuch { seconds: u64 },
    /// All turns are taken.
    #[error("too many requests are waiting")]
    Crowded,
    /// The question makes no sense.
    #[error("{0}")]
    Question(String),
    /// Files cannot be listed.
    #[error("{0}")]
    Failed(String),
}

/// Why the request was refused.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ErrorDocument {
    /// Human-readable message.
    pub error: String,
}

impl Problem {
    const fn status(&self) -> StatusCode {
        match self {
            Self::Unauthorised => StatusCode::UNAUTHORIZED,
            Self::Forbidden => StatusCode::FORBIDDEN,
            Self::TooMuch { .. } => StatusCode::TOO_MANY_REQUESTS,
            Self::Crowded => StatusCode::SERVICE_UNAVAILABLE,
            Self::Question(_) => StatusCode::BAD_REQUEST,
            Self::Failed(_) => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let document = ErrorDocument { error: self.to_string() };
        let mut response = (self.status(), Json(document)).into_response();
        let headers = response.headers_mut();
        match self {
            Self::Unauthorised => {
                headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            }
            Self::TooMuch { seconds } => {
                headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
            }
            Self::Crowded => {
                headers.insert(header::RETRY_AFTER, HeaderValue::from(1));
            }
            Self::Forbidden | Self::Question(_) | Self::Failed(_) => {}
        }
        response
    }
}
