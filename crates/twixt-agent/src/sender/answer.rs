//! What a collector answers, and what that means for the epochs.

use std::time::Duration;

use serde::Deserialize;

/// Of a stranger's text, so much is shown.
const SHOWN_CHARS_MAX: usize = 200;

/// What became of a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// All of it is settled: stored, known there, or refused for good.
    Stored { stored: u64, duplicates: u64, refused: Vec<Refusal> },
    /// Too large, or something in it is wrong: try with less.
    TooMuch { reason: String },
    /// This agent may not write a point of it: keep it, try again, and go on with other points.
    Forbidden { reason: String },
    /// Keep it, and try again.
    NotNow { after: Option<Duration>, reason: String },
}

/// An epoch that the collector will not take.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(crate) struct Refusal {
    #[serde(default)]
    pub(crate) epoch: i64,
    #[serde(default)]
    pub(crate) reason: String,
}

#[derive(Deserialize)]
struct Receipt {
    stored: u64,
    duplicates: u64,
    #[serde(default)]
    refused: Vec<Refusal>,
}

#[derive(Deserialize)]
struct Complaint {
    error: String,
}

impl Answer {
    /// What a response to so many epochs means.
    pub(super) fn of(status: u16, retry_after: Option<&str>, text: &str, epochs: usize) -> Self {
        let after = retry_after.and_then(|text| text.trim().parse().ok()).map(Duration::from_secs);
        let complaint = complaint(text);
        let not_now = |why: &str| Self::NotNow { after, reason: format!("{why}{complaint}") };
        match status {
            200 => Self::receipt(text, epochs),
            400 | 413 => Self::TooMuch { reason: format!("status {status}{complaint}") },
            401 => not_now(
                "the collector does not know this agent (401): check its token or certificate",
            ),
            403 => Self::Forbidden {
                reason: format!("this agent may not write that point (403){complaint}"),
            },
            404 | 405 => not_now("there is no collector at this address (404): check the URL"),
            429 => not_now("the collector wants fewer requests (429)"),
            503 => not_now("the collector cannot store epochs now (503)"),
            _ => not_now(&format!("unexpected status {status}")),
        }
    }

    /// An epoch counts as settled only if the answer accounts for all of them.
    fn receipt(text: &str, epochs: usize) -> Self {
        let no_collector = |problem: String| Self::NotNow {
            after: None,
            reason: format!("whoever answers is no collector of ours: {problem}"),
        };
        let receipt: Receipt = match serde_json::from_str(text) {
            Ok(receipt) => receipt,
            Err(error) => return no_collector(error.to_string()),
        };
        let Receipt { stored, duplicates, refused } = receipt;
        let told = stored.saturating_add(duplicates).saturating_add(refused.len() as u64);
        match told == epochs as u64 {
            true => Self::Stored { stored, duplicates, refused },
            false => no_collector(format!("it answers for {told} epochs instead of {epochs}")),
        }
    }

    /// The word for it in metrics.
    pub(crate) const fn name(&self) -> &'static str {
        match self {
            Self::Stored { .. } => "stored",
            Self::TooMuch { .. } => "refused",
            Self::Forbidden { .. } | Self::NotNow { .. } => "failed",
        }
    }
}

/// What the collector says is wrong.
fn complaint(text: &str) -> String {
    let said = serde_json::from_str::<Complaint>(text).map(|complaint| complaint.error);
    let said: String = said.unwrap_or_default().chars().take(SHOWN_CHARS_MAX).collect();
    if said.is_empty() { said } else { format!(": {said}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(status: u16, retry_after: Option<&str>, text: &str, shown: &str) {
        let answer = Answer::of(status, retry_after, text, 3);
        assert!(format!("{answer:?}").starts_with(shown), "{answer:?}");
    }

    #[test]
    fn answers_are_understood() {
        check(
            200,
            None,
            r#"{"stored": 2, "duplicates": 1, "refused": []}"#,
            "Stored { stored: 2, duplicates: 1, refused: [] }",
        );
        let refused = r#"{"stored": 1, "duplicates": 1,
            "refused": [{"index": 2, "point": "r-in", "epoch": 17, "reason": "no"}]}"#;
        check(
            200,
            None,
            refused,
            "Stored { stored: 1, duplicates: 1, refused: [Refusal { epoch: 17",
        );
        check(413, None, "", "TooMuch { reason: \"status 413\" }");
        check(400, None, r#"{"error": "torn"}"#, "TooMuch { reason: \"status 400: torn\" }");
        check(503, Some("7"), "", "NotNow { after: Some(7s), reason: \"the collector cannot");
        check(429, Some("soon"), "", "NotNow { after: None, reason: \"the collector wants");
        check(
            403,
            None,
            r#"{"error": "no"}"#,
            "Forbidden { reason: \"this agent may not write that",
        );
        check(401, None, "<html>", "NotNow { after: None, reason: \"the collector does not know");
    }

    #[test]
    fn nothing_is_settled_that_the_answer_does_not_account_for() {
        check(200, None, "<html>hello</html>", "NotNow");
        check(200, None, r#"{"stored": 2, "duplicates": 0, "refused": []}"#, "NotNow");
        check(200, None, r#"{"stored": 18446744073709551615, "duplicates": 3}"#, "NotNow");
        check(204, None, "", "NotNow");
        check(302, None, "", "NotNow");
    }
}
