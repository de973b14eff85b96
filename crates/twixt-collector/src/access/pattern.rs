//! Which names of points are meant.

use std::fmt;
use std::str::FromStr;

use twixt_model::{NameError, check_name};

/// The name of a point, or the beginning of many: `r-in`, `r-*`, `*`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PointPattern {
    start: String,
    is_whole: bool,
}

/// Why a text is not a pattern.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PatternError {
    /// A `*` stands elsewhere than at the end.
    #[error("{text:?}: * is allowed only at the end")]
    Star {
        /// What was written.
        text: String,
    },
    /// No point can have such a name.
    #[error("{text:?}: {source}")]
    Name {
        /// What was written.
        text: String,
        /// What is wrong with it.
        source: NameError,
    },
}

impl PointPattern {
    /// Every point.
    #[must_use]
    pub const fn all() -> Self {
        Self { start: String::new(), is_whole: false }
    }

    /// Whether a point is meant.
    #[must_use]
    pub fn matches(&self, point: &str) -> bool {
        match self.is_whole {
            true => point == self.start,
            false => point.starts_with(&self.start),
        }
    }
}

impl FromStr for PointPattern {
    type Err = PatternError;

    fn from_str(text: &str) -> Result<Self, PatternError> {
        let (start, is_whole) = text.strip_suffix('*').map_or((text, true), |start| (start, false));
        if start.contains('*') {
            return Err(PatternError::Star { text: text.to_owned() });
        }
        check_name(text).map_err(|source| PatternError::Name { text: text.to_owned(), source })?;
        Ok(Self { start: start.to_owned(), is_whole })
    }
}

impl fmt::Display for PointPattern {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.start)?;
        formatter.write_str(if self.is_whole { "" } else { "*" })
    }
}
