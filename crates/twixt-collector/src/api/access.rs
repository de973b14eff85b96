//! Who may read, and how often.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use axum::http::{HeaderMap, header};

use super::problem::Problem;
use crate::access::{Caller, ReaderConfig, Tokens};
use crate::server::Limits;

/// Any client, where no authentication is required.
const ANYBODY: &str = "anybody";

/// Who may read.
#[derive(Debug)]
pub(super) struct Readers {
    tokens: Tokens,
    is_open: bool,
    rate: f64,
    burst: f64,
    /// Of each reader, what is left: as many as there are tokens, and one.
    credits: Mutex<HashMap<String, Credit>>,
}

#[derive(Clone, Copy, Debug)]
struct Credit {
    left: f64,
    at: Instant,
}

impl Readers {
    pub(super) fn new(readers: &[ReaderConfig], is_open: bool, limits: Limits) -> Self {
        Self {
            tokens: Tokens::of_readers(readers),
            is_open,
            rate: limits.queries_per_second as f64,
            burst: limits.queries_burst as f64,
            credits: Mutex::default(),
        }
    }

    /// Whether a request may be answered.
    pub(super) fn admit(&self, headers: &HeaderMap) -> Result<(), Problem> {
        self.charge(self.reader(headers)?, Instant::now())
    }

    /// The reader's name, if it may acknowledge and silence alerts. Without authentication, anybody may.
    pub(super) fn operator(&self, headers: &HeaderMap) -> Result<String, Problem> {
        match self.caller(headers) {
            Some(reader) if reader.may_silence() => Ok(reader.name.clone()),
            None if self.is_open => Ok(ANYBODY.to_owned()),
            None => Err(Problem::Unauthorised),
            Some(_) => Err(Problem::Forbidden),
        }
    }

    /// Who asks, for those who want to know later.
    pub(super) fn name(&self, headers: &HeaderMap) -> Option<String> {
        self.reader(headers).ok()
    }

    fn caller(&self, headers: &HeaderMap) -> Option<Arc<Caller>> {
        let shown = headers.get(header::AUTHORIZATION)?;
        self.tokens.caller(shown.as_bytes())
    }

    fn reader(&self, headers: &HeaderMap) -> Result<String, Problem> {
        match self.caller(headers) {
            Some(reader) => Ok(reader.name.clone()),
            None if self.is_open => Ok(ANYBODY.to_owned()),
            None => Err(Problem::Unauthorised),
        }
    }

    fn charge(&self, reader: String, now: Instant) -> Result<(), Problem> {
        let mut credits = self.credits.lock().unwrap_or_else(PoisonError::into_inner);
        let credit = credits.entry(reader).or_insert(Credit { left: self.burst, at: now });
        let earned = now.saturating_duration_since(credit.at).as_secs_f64() * self.rate;
        *credit = Credit { left: (credit.left + earned).min(self.burst), at: now };
        if credit.left < 1.0 {
            let seconds = ((1.0 - credit.left) / self.rate).ceil().max(1.0) as u64;
            return Err(Problem::TooMuch { seconds });
        }
        credit.left -= 1.0;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn who_asks_too_often_waits_and_others_do_not() {
        let limits = Limits { queries_per_second: 2, queries_burst: 3, ..Limits::default() };
        let readers = Readers::new(&[], true, limits);
        let start = Instant::now();
        let ask = |reader: &str, after_ms| {
            readers.charge(reader.to_owned(), start + Duration::from_millis(after_ms))
        };
        assert!((0..3).all(|_| ask("a", 0).is_ok()));
        assert!(matches!(ask("a", 0), Err(Problem::TooMuch { seconds: 1 })));
        assert!(ask("b", 0).is_ok());
        assert!(ask("a", 600).is_ok() && ask("a", 600).is_err());
    }
}
