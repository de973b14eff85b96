//! Who may write which points: bearer tokens and the names in client certificates.
//!
//! Knows neither connections nor requests: a header or a certificate goes in, a `Caller` comes
//! out. Tokens are kept as hashes only.

mod certificate;
mod pattern;

pub use pattern::{PatternError, PointPattern};

pub(crate) use certificate::caller_of;

use std::fmt;
use std::sync::Arc;

use ring::digest;

/// Shortest token that is accepted. Shorter ones can be guessed.
pub const TOKEN_BYTES_MIN: usize = 16;

/// The sender, once authenticated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Caller {
    /// For logs and limits.
    pub(crate) name: String,
    points: Vec<PointPattern>,
    may_silence: bool,
}

impl Caller {
    pub(crate) fn new(name: String, points: Vec<PointPattern>) -> Self {
        Self { name, points, may_silence: false }
    }

    /// A process on this machine, where no authentication is required.
    pub(crate) fn anonymous() -> Self {
        Self::new("anonymous".to_owned(), vec![PointPattern::all()])
    }

    /// Whether it may acknowledge and silence alerts.
    pub(crate) const fn may_silence(&self) -> bool {
        self.may_silence
    }

    /// Whether epochs of a point are taken from this caller.
    pub(crate) fn may_write(&self, point: &str) -> bool {
        self.points.iter().any(|pattern| pattern.matches(point))
    }
}

/// SHA-256 of a token: what the collector keeps of it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct TokenHash([u8; 32]);

impl fmt::Debug for TokenHash {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("TokenHash(..)")
    }
}

/// Why a text is not a token, or not the hash of one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TokenError {
    /// The token can be guessed. Make one with `openssl rand -hex 32`.
    #[error("a token needs at least {TOKEN_BYTES_MIN} characters")]
    TooShort,
    /// A token travels in a header, where not all characters may stand.
    #[error("a token must be ASCII without spaces")]
    Characters,
    /// A hash is written as 64 hexadecimal digits, as `sha256sum` prints it.
    #[error("the hash of a token must be 64 hexadecimal digits")]
    Hash,
}

impl TokenHash {
    /// Of a token. Blanks and line ends around it do not count.
    ///
    /// # Errors
    /// When it is too short, or cannot stand in a header.
    pub fn of_token(token: &str) -> Result<Self, TokenError> {
        let token = token.trim();
        if token.len() < TOKEN_BYTES_MIN {
            return Err(TokenError::TooShort);
        }
        if !token.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(TokenError::Characters);
        }
        Ok(Self::of(token.as_bytes()))
    }

    /// As `sha256sum` prints it.
    ///
    /// # Errors
    /// When these are not 64 hexadecimal digits.
    pub fn from_hexadecimal(text: &str) -> Result<Self, TokenError> {
        let digits = text.trim().as_bytes();
        let mut hash = [0; 32];
        if digits.len() != 2 * hash.len() {
            return Err(TokenError::Hash);
        }
        for (byte, pair) in hash.iter_mut().zip(digits.chunks_exact(2)) {
            let digit = |byte: u8| (byte as char).to_digit(16).ok_or(TokenError::Hash);
            *byte = (digit(pair[0])? << 4 | digit(pair[1])?) as u8;
        }
        Ok(Self(hash))
    }

    fn of(bytes: &[u8]) -> Self {
        let mut hash = [0; 32];
        hash.copy_from_slice(digest::digest(&digest::SHA256, bytes).as_ref());
        Self(hash)
    }

    /// Takes as long whatever the difference, so that time tells nothing of it.
    fn is(&self, other: &Self) -> bool {
        let difference = self.0.iter().zip(&other.0).fold(0, |sum, (one, two)| sum | (one ^ two));
        std::hint::black_box(difference) == 0
    }
}

/// A token, and what it allows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenConfig {
    /// For logs and limits.
    pub name: String,
    /// What is known of the token.
    pub hash: TokenHash,
    /// Points that may be written with it.
    pub points: Vec<PointPattern>,
}

/// A token that allows to read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReaderConfig {
    /// For logs and limits.
    pub name: String,
    /// What is known of the token.
    pub hash: TokenHash,
    /// Whether it allows to acknowledge and silence alerts.
    pub may_silence: bool,
}

/// All tokens.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tokens {
    tokens: Vec<(TokenHash, Arc<Caller>)>,
}

impl Tokens {
    pub(crate) fn new(configs: &[TokenConfig]) -> Self {
        let tokens = configs.iter().map(|config| {
            let name = format!("token {}", config.name);
            (config.hash, Arc::new(Caller::new(name, config.points.clone())))
        });
        Self { tokens: tokens.collect() }
    }

    /// Of readers, who may write no point.
    pub(crate) fn of_readers(configs: &[ReaderConfig]) -> Self {
        let tokens = configs.iter().map(|config| {
            let name = format!("reader {}", config.name);
            let reader = Caller::new(name, Vec::new());
            (config.hash, Arc::new(Caller { may_silence: config.may_silence, ..reader }))
        });
        Self { tokens: tokens.collect() }
    }

    /// The caller whose token stands in a header `Authorization`. All tokens are looked at, so
    /// that time does not tell which one came near.
    pub(crate) fn caller(&self, authorization: &[u8]) -> Option<Arc<Caller>> {
        const SCHEME: &[u8] = b"bearer ";
        let (scheme, token) = authorization.split_at_checked(SCHEME.len())?;
        if !scheme.eq_ignore_ascii_case(SCHEME) {
            return None;
        }
        let hash = TokenHash::of(token.trim_ascii());
        let all = self.tokens.iter();
        all.fold(None, |found, (known, caller)| known.is(&hash).then_some(caller).or(found))
            .cloned()
    }
}

#[cfg(test)]
mod tests;
