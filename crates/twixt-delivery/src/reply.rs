//! What a reply means for the epochs that were sent.

use std::time::Duration;

use crate::receipt::{Receipt, RequestError};

/// Of another program's text, so much is shown.
const SHOWN_CHARS_MAX: usize = 200;
/// Appended where the reply lacks the collector's header.
const UNMARKED: &str = " (sent by a proxy in between, or by a collector of an earlier release)";

/// What a reply means for the epochs that were sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// The collector accounts for every epoch.
    Receipt(Receipt),
    /// The body is too large or not readable, for the collector or something in between: send fewer
    /// epochs at a time.
    TooLarge {
        /// For people.
        reason: String,
    },
    /// This agent may not write the point: keep its epochs, and go on with other points.
    Forbidden {
        /// For people.
        reason: String,
    },
    /// Keep the epochs, and try again.
    Unavailable {
        /// How long the collector wants to be left alone.
        after: Option<Duration>,
        /// For people.
        reason: String,
    },
}

/// The parts of an HTTP response that matter.
#[derive(Clone, Copy, Debug)]
pub struct ResponseParts<'a> {
    /// The status code.
    pub status: u16,
    /// Whether it has the header [`COLLECTOR_HEADER`](crate::COLLECTOR_HEADER).
    pub is_marked: bool,
    /// `Retry-After`, as it stands.
    pub retry_after: Option<&'a str>,
    /// The body.
    pub body: &'a str,
}

impl Reply {
    /// What a response to so many epochs means.
    #[must_use]
    pub fn read(response: ResponseParts<'_>, epochs: usize) -> Self {
        let ResponseParts { status, retry_after, body, .. } = response;
        let after = retry_after.and_then(|text| text.trim().parse().ok()).map(Duration::from_secs);
        let explained = |what: &str| format!("{what}{}", explanation(response));
        let unavailable = |what: &str| Self::Unavailable { after, reason: explained(what) };
        match status {
            200 => Self::read_receipt(body, epochs),
            400 => Self::TooLarge { reason: explained("the body cannot be read (400)") },
            413 => Self::TooLarge { reason: explained("the body is too large (413)") },
            401 => {
                unavailable("authentication failed (401): check the agent's token or certificate")
            }
            403 => {
                Self::Forbidden { reason: explained("this agent may not write that point (403)") }
            }
            404 | 405 => unavailable("no collector at this address (404): check the URL"),
            429 => unavailable("the collector limits the request rate (429)"),
            503 => unavailable("the collector cannot store epochs now (503)"),
            _ => unavailable(&format!("unexpected status {status}")),
        }
    }

    /// A document is a receipt only if it accounts for all epochs: a proxy's greeting is none.
    fn read_receipt(body: &str, epochs: usize) -> Self {
        let unexpected = |problem: String| Self::Unavailable {
            after: None,
            reason: format!("unexpected reply: is this URL a twixt collector? {problem}"),
        };
        match serde_json::from_str::<Receipt>(body) {
            Ok(receipt) if receipt.epochs() != epochs as u64 => {
                let accounted = receipt.epochs();
                unexpected(format!("it accounts for {accounted} epochs, {epochs} were sent"))
            }
            Ok(receipt) if !receipt.names_unsettled(epochs) => {
                unexpected("it does not say which epochs are to be kept".to_owned())
            }
            Ok(receipt) => Self::Receipt(receipt),
            Err(error) => unexpected(error.to_string()),
        }
    }

    /// The name in metrics.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Receipt(_) => "stored",
            Self::TooLarge { .. } => "refused",
            Self::Forbidden { .. } | Self::Unavailable { .. } => "failed",
        }
    }
}

/// What the reply says of the reason, and who may have sent it.
fn explanation(response: ResponseParts<'_>) -> String {
    let document = serde_json::from_str::<RequestError>(response.body).unwrap_or_default();
    let error: String = document.error.chars().take(SHOWN_CHARS_MAX).collect();
    let separator = if error.is_empty() { "" } else { ": " };
    let sender = if response.is_marked { "" } else { UNMARKED };
    format!("{separator}{error}{sender}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(status: u16, is_marked: bool, retry_after: Option<&str>, body: &str) -> Reply {
        Reply::read(ResponseParts { status, is_marked, retry_after, body }, 3)
    }

    #[track_caller]
    fn check(status: u16, retry_after: Option<&str>, body: &str, shown: &str) {
        let reply = format!("{:?}", read(status, true, retry_after, body));
        assert!(reply.starts_with(shown), "{reply}");
    }

    #[test]
    fn replies_are_understood() {
        let receipt = r#"{"stored": 2, "duplicates": 1, "refused": []}"#;
        check(200, None, receipt, "Receipt(Receipt { stored: 2, duplicates: 1, refused: [] })");
        check(413, None, "", r#"TooLarge { reason: "the body is too large (413)" }"#);
        let torn = r#"{"error": "torn"}"#;
        check(400, None, torn, r#"TooLarge { reason: "the body cannot be read (400): torn" }"#);
        check(503, Some("7"), "", "Unavailable { after: Some(7s), reason: \"the collector cannot");
        check(429, Some("soon"), "", "Unavailable { after: None, reason: \"the collector limits");
        let no = r#"{"error": "no"}"#;
        check(403, None, no, "Forbidden { reason: \"this agent may not write that point (403): no");
        check(
            401,
            None,
            "<html>",
            "Unavailable { after: None, reason: \"authentication failed (401)",
        );
    }

    #[test]
    fn nothing_is_settled_that_the_reply_does_not_account_for() {
        check(200, None, "<html>hello</html>", "Unavailable");
        check(200, None, "{}", "Unavailable");
        check(200, None, r#"{"stored": 2, "duplicates": 0, "refused": []}"#, "Unavailable");
        check(200, None, r#"{"stored": 18446744073709551615, "duplicates": 3}"#, "Unavailable");
        let kept =
            |index: &str| format!(r#"{{"stored": 2, "refused": [{{{index} "code": "future"}}]}}"#);
        check(200, None, &kept(r#""index": 2,"#), "Receipt");
        check(200, None, &kept(r#""index": 3,"#), "Unavailable");
        check(200, None, &kept(""), "Unavailable");
        check(204, None, "", "Unavailable");
        check(302, None, "", "Unavailable");
    }

    #[test]
    fn a_reply_that_a_proxy_may_have_sent_says_so() {
        let is_unmarked = |is_marked| {
            format!("{:?}", read(413, is_marked, None, "<html>")).contains("a proxy in between")
        };
        assert!(is_unmarked(false) && !is_unmarked(true));
    }
}
