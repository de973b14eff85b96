//! Configuration of a collector. The binary reads files and flags; here are values, with their
//! defaults, and what must hold between them.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use twixt_engine::EngineConfig;
use twixt_history::HistoryConfig;
use twixt_model::{NameError, check_name};

use crate::access::{ReaderConfig, TokenConfig};
use crate::alerts::{ALERTS_MAX, AlertConfig};
use crate::clock::WallClock;
use crate::journal::EpochRetention;
use crate::server::{Limits, TlsConfig};

/// Configuration of a collector.
#[derive(Clone, Debug)]
pub struct CollectorConfig {
    /// Where agents connect to.
    pub listen: SocketAddr,
    /// Everything that must survive lies here.
    pub directory: PathBuf,
    /// The only domain whose epochs are taken; every domain's when `None`.
    pub domain: Option<String>,
    /// Encrypted connections; plain ones when `None`.
    pub tls: Option<TlsConfig>,
    /// Whether plain connections are allowed where others might listen.
    pub plain_http: PlainHttp,
    /// Who may write which points, beside the owners of certificates.
    pub tokens: Vec<TokenConfig>,
    /// Readers. If empty, and writing needs no authentication, anyone may read.
    pub readers: Vec<ReaderConfig>,
    /// What is paired, and how.
    pub engine: EngineConfig,
    /// Alerts.
    pub alerts: Vec<AlertConfig>,
    /// What one caller, and all together, may use.
    pub limits: Limits,
    /// Where metrics and health can be asked for.
    pub metrics: Option<SocketAddr>,
    /// What is forgotten of epochs, and when.
    pub retention: EpochRetention,
    /// How estimates are kept.
    pub history: HistoryConfig,
    /// How long, after a start, points that were there before are waited for until epochs are
    /// paired again: agents have a backlog then, and do not all come back at once.
    pub resume_wait: Duration,
    /// What time it is.
    pub clock: WallClock,
}

/// Where connections may be plain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PlainHttp {
    /// On the machine itself.
    #[default]
    Loopback,
    /// Everywhere: something else encrypts, or it does not matter.
    Forced,
}

/// What does not go together.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CollectorConfigError {
    /// Tokens and epochs could be read on their way. Give a certificate, listen on a loopback
    /// address, or force it.
    #[error(
        "{listen} is not a loopback address, and connections would not be encrypted: set [tls] \
         certificate and key, or plain_http = \"forced\""
    )]
    Plain {
        /// Where to listen.
        listen: SocketAddr,
    },
    /// Anyone could write. Set tokens or a client authority.
    #[error(
        "{listen} is not a loopback address, and anyone could write epochs: add a [[token]] or \
         [tls] client_ca"
    )]
    Open {
        /// Where to listen.
        listen: SocketAddr,
    },
    /// Two tokens of one name cannot be distinguished in logs and limits.
    #[error("duplicate token name {name:?}")]
    TokenName {
        /// The name.
        name: String,
    },
    /// A reader could also write. Create another token.
    #[error("reader {name:?} has a token that may also write: give it its own token")]
    SharedToken {
        /// The reader's name.
        name: String,
    },
    /// A token without points allows nothing.
    #[error("token {name:?} allows no point: set points, such as [\"r-*\"]")]
    NoPoints {
        /// Its name.
        name: String,
    },
    /// An alert makes no sense. Mend what the message says.
    #[error("alert {name:?}: {problem}")]
    Alert {
        /// Its name.
        name: String,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// There are too many alerts. Use patterns of segments.
    #[error("more than {ALERTS_MAX} alerts")]
    Alerts,
    /// A name is too long, or cannot be shown. Choose another.
    #[error("{field} {name:?}: {source}")]
    Name {
        /// Whose name.
        field: &'static str,
        /// The name.
        name: String,
        /// What is wrong with it.
        source: NameError,
    },
    /// A limit of zero admits nothing.
    #[error("{name} must not be 0")]
    Zero {
        /// Which.
        name: &'static str,
    },
}

impl CollectorConfig {
    /// The defaults.
    #[must_use]
    pub fn new(listen: SocketAddr, directory: PathBuf) -> Self {
        Self {
            listen,
            directory,
            domain: None,
            tls: None,
            plain_http: PlainHttp::default(),
            tokens: Vec::new(),
            readers: Vec::new(),
            engine: EngineConfig::default(),
            alerts: Vec::new(),
            limits: Limits::default(),
            metrics: None,
            retention: EpochRetention::default(),
            history: HistoryConfig::default(),
            resume_wait: Duration::from_secs(60),
            clock: WallClock::system(),
        }
    }

    /// Whether all of it goes together.
    ///
    /// # Errors
    /// When it does not.
    pub fn check(&self) -> Result<(), CollectorConfigError> {
        let listen = self.listen;
        let is_private = is_loopback(listen.ip());
        if self.tls.is_none() && !is_private && self.plain_http != PlainHttp::Forced {
            return Err(CollectorConfigError::Plain { listen });
        }
        if self.allows_anonymous() && !is_private {
            return Err(CollectorConfigError::Open { listen });
        }
        for (index, token) in self.tokens.iter().enumerate() {
            let name = token.name.clone();
            if token.points.is_empty() {
                return Err(CollectorConfigError::NoPoints { name });
            }
            if self.tokens[..index].iter().any(|other| other.name == name) {
                return Err(CollectorConfigError::TokenName { name });
            }
        }
        self.check_readers()?;
        self.check_alerts()?;
        self.check_names()?;
        match self.limits.zero() {
            Some(name) => Err(CollectorConfigError::Zero { name }),
            None => Ok(()),
        }
    }

    /// Names of what agents send, by the rule that agents have.
    fn check_names(&self) -> Result<(), CollectorConfigError> {
        let segments = self.engine.segments.iter().flat_map(|of| {
            let points = [&of.segment.upstream.0, &of.segment.downstream.0];
            let class = of.class.iter().map(|class| ("class", class));
            points.map(|point| ("point", point)).into_iter().chain(class)
        });
        let domain = self.domain.iter().map(|domain| ("domain", domain));
        for (field, name) in domain.chain(segments) {
            let wrong = |source| CollectorConfigError::Name { field, name: name.clone(), source };
            check_name(name).map_err(wrong)?;
        }
        Ok(())
    }

    fn check_readers(&self) -> Result<(), CollectorConfigError> {
        for (index, reader) in self.readers.iter().enumerate() {
            let name = reader.name.clone();
            if self.readers[..index].iter().any(|other| other.name == name) {
                return Err(CollectorConfigError::TokenName { name });
            }
            if self.tokens.iter().any(|token| token.hash == reader.hash) {
                return Err(CollectorConfigError::SharedToken { name });
            }
        }
        Ok(())
    }

    fn check_alerts(&self) -> Result<(), CollectorConfigError> {
        if self.alerts.len() > ALERTS_MAX {
            return Err(CollectorConfigError::Alerts);
        }
        for (index, alert) in self.alerts.iter().enumerate() {
            let is_taken = self.alerts[..index].iter().any(|other| other.name == alert.name);
            let taken = is_taken.then_some("duplicate name");
            if let Some(problem) = alert.problem().or(taken) {
                return Err(CollectorConfigError::Alert { name: alert.name.clone(), problem });
            }
        }
        Ok(())
    }

    /// Whether agents need no authentication.
    pub(crate) fn allows_anonymous(&self) -> bool {
        let asks_for_certificates = self.tls.as_ref().is_some_and(|tls| tls.client_ca.is_some());
        self.tokens.is_empty() && !asks_for_certificates
    }
}

fn is_loopback(address: IpAddr) -> bool {
    address.to_canonical().is_loopback()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::{PointPattern, TokenHash};

    fn token(name: &str, points: Vec<PointPattern>) -> TokenConfig {
        let hash = TokenHash::of_token("0123456789abcdef").unwrap();
        TokenConfig { name: name.to_owned(), hash, points }
    }

    #[track_caller]
    fn check(listen: &str, change: impl FnOnce(&mut CollectorConfig), problem: Option<&str>) {
        let mut config = CollectorConfig::new(listen.parse().unwrap(), PathBuf::from("x"));
        change(&mut config);
        let found = config.check().err().map(|error| error.to_string());
        match problem {
            Some(problem) => {
                assert!(found.as_ref().is_some_and(|text| text.contains(problem)), "{found:?}");
            }
            None => assert_eq!(found, None),
        }
    }

    #[test]
    fn access_is_restricted_by_default() {
        check("127.0.0.1:1", |_| {}, None);
        check("[::1]:1", |_| {}, None);
        check("[::ffff:127.0.0.1]:1", |_| {}, None);
        check("0.0.0.0:1", |_| {}, Some("not be encrypted"));
        check("10.0.0.1:1", |config| config.plain_http = PlainHttp::Forced, Some("anyone"));
        let forced = |config: &mut CollectorConfig| {
            config.plain_http = PlainHttp::Forced;
            config.tokens = vec![token("a", vec![PointPattern::all()])];
        };
        check("10.0.0.1:1", forced, None);
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        let all = || vec![PointPattern::all()];
        check("[::1]:1", |config| config.tokens = vec![token("a", vec![])], Some("no point"));
        check(
            "[::1]:1",
            |config| config.tokens = vec![token("a", all()), token("a", all())],
            Some("duplicate token name"),
        );
        check("[::1]:1", |config| config.limits.body_bytes_max = 0, Some("body_bytes_max"));
        let forged = |config: &mut CollectorConfig| config.domain = Some("a\nb".to_owned());
        check("[::1]:1", forged, Some("must not contain \\u{a}"));
    }
}
