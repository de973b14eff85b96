//! What an agent says of itself beside epochs: its version, and how much waits in its spool. A collector
//! shows it, and decides nothing by it.

use std::fmt;
use std::str::FromStr;

/// How `User-Agent` of an agent begins; the version follows.
pub const AGENT_PRODUCT: &str = "twixt-agent/";
/// Header with the [`SpoolState`] of the point whose epochs are sent.
pub const SPOOL_HEADER: &str = "twixt-spool";
/// Letters of a version.
const VERSION_MAX: usize = 32;

/// What waits at an agent, the epochs of this request included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SpoolState {
    /// Epochs.
    pub epochs: u64,
    /// Bytes on its disk.
    pub bytes: u64,
    /// Epochs that it discarded since it started, because there was no room.
    pub discarded: u64,
}

impl fmt::Display for SpoolState {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { epochs, bytes, discarded } = self;
        write!(formatter, "epochs={epochs}, bytes={bytes}, discarded={discarded}")
    }
}

/// It is not the state of a spool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoSpoolState;

impl FromStr for SpoolState {
    type Err = NoSpoolState;

    /// Values that are not known yet are for later releases.
    fn from_str(text: &str) -> Result<Self, NoSpoolState> {
        let value = |wanted: &str| {
            let mut pairs = text.split(',').filter_map(|pair| pair.trim().split_once('='));
            let (_, number) = pairs.find(|(name, _)| *name == wanted).ok_or(NoSpoolState)?;
            number.parse().map_err(|_| NoSpoolState)
        };
        Ok(Self {
            epochs: value("epochs")?,
            bytes: value("bytes")?,
            discarded: value("discarded")?,
        })
    }
}

/// The version in a `User-Agent`, if an agent sent it and it can be shown as it is.
#[must_use]
pub fn agent_version(user_agent: &str) -> Option<&str> {
    let version = user_agent.strip_prefix(AGENT_PRODUCT)?;
    let is_shown = |byte: u8| byte.is_ascii_alphanumeric() || b".-+".contains(&byte);
    let is_version = (1..=VERSION_MAX).contains(&version.len()) && version.bytes().all(is_shown);
    is_version.then_some(version)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spool_is_read_as_it_was_written_and_nothing_else_is() {
        let state = SpoolState { epochs: 3, bytes: u64::MAX, discarded: 0 };
        assert_eq!(state.to_string().parse(), Ok(state));
        assert_eq!(format!("{state}, later=words").parse(), Ok(state));
        for text in ["", "epochs=3", "epochs=-1, bytes=0, discarded=0", "epochs=3 bytes=0", "=,=,="]
        {
            assert_eq!(text.parse::<SpoolState>(), Err(NoSpoolState), "{text}");
        }
    }

    #[test]
    fn a_version_is_short_and_plain() {
        assert_eq!(agent_version("twixt-agent/0.1.0"), Some("0.1.0"));
        assert_eq!(agent_version("twixt-agent/1.0.0-rc.1+x"), Some("1.0.0-rc.1+x"));
        let long = format!("twixt-agent/{}", "1".repeat(33));
        for other in ["curl/8", "twixt-agent/", "twixt-agent/<b>", "twixt-agent/1 2", &long] {
            assert_eq!(agent_version(other), None, "{other}");
        }
    }
}
