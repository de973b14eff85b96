//! The collector's configuration file: what was written, and what it means.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use anyhow::Context;
use serde::Deserialize;
use twixt_collector::access::{ReaderConfig, TokenConfig, TokenHash};
use twixt_collector::{CollectorConfig, EpochRetention, Limits, PlainHttp, TlsConfig};
use twixt_history::HistoryConfig;
use twixt_model::Delay;
use twixt_model::quantity::{ByteCount, Nanoseconds};

use super::alert::AlertWritten;
use crate::exit::usage;

const LISTEN_DEFAULT: &str = "127.0.0.1:9443";
const DAY: Duration = Duration::from_secs(24 * 3_600);

/// What was written. Everything but the directory may be left out.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "a table")]
pub(super) struct Written {
    pub(super) listen: Option<SocketAddr>,
    pub(super) directory: Option<PathBuf>,
    domain: Option<String>,
    pub(super) patience: Option<String>,
    resume_wait: Option<String>,
    pub(super) discover: bool,
    plain_http: Option<String>,
    tls: Option<Tls>,
    pub(super) token: Vec<Token>,
    reader: Vec<Reader>,
    pub(super) segment: Vec<SegmentEntry>,
    alert: Vec<AlertWritten>,
    limits: LimitsWritten,
    pub(super) metrics: Option<Metrics>,
    retention: RetentionWritten,
    history: HistoryWritten,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
struct Tls {
    certificate: PathBuf,
    key: PathBuf,
    client_ca: Option<PathBuf>,
}

/// A token: itself in a file, or its hash.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(super) struct Token {
    name: String,
    token_file: Option<PathBuf>,
    hash: Option<String>,
    points: Vec<String>,
}

/// Who may ask: a token in a file, or its hash.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
struct Reader {
    name: String,
    token_file: Option<PathBuf>,
    hash: Option<String>,
    #[serde(default)]
    may_silence: bool,
}

/// How estimates are kept.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "a table")]
struct HistoryWritten {
    epochs_days: Option<u32>,
    rollups_days: Option<u32>,
    bytes_max: Option<String>,
    seal_wait: Option<String>,
}

/// A segment: names of points, and a class if only that is meant.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(super) struct SegmentEntry {
    pub(super) upstream: String,
    pub(super) downstream: String,
    pub(super) class: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(super) struct Metrics {
    pub(super) listen: SocketAddr,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "a table")]
struct RetentionWritten {
    days: Option<u32>,
    bytes_max: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "a table")]
struct LimitsWritten {
    body_bytes_max: Option<String>,
    /// Also by its name before, which bounded bodies only.
    #[serde(alias = "bodies_bytes_max")]
    memory_max: Option<String>,
    connections_max: Option<usize>,
    connections_per_address_max: Option<usize>,
    requests_per_caller_max: Option<usize>,
    epochs_per_second: Option<u64>,
    epochs_burst: Option<u64>,
    queries_per_second: Option<u64>,
    queries_burst: Option<u64>,
    points_max: Option<usize>,
    header_time: Option<String>,
    body_time: Option<String>,
}

impl Written {
    pub(super) fn load(path: &Path) -> anyhow::Result<Self> {
        let shown = path.display();
        let text = std::fs::read_to_string(path)
            .with_context(|| format!("cannot read configuration {shown}"))?;
        toml::from_str(&text).map_err(|error| usage(format!("{shown}: {error}")))
    }

    /// What it means.
    pub(super) fn config(self) -> anyhow::Result<CollectorConfig> {
        let directory = self.directory.ok_or_else(|| {
            usage(
                "no directory for persistent state: set --directory DIR, or directory in the \
                 file",
            )
        })?;
        let default = || LISTEN_DEFAULT.parse().expect("it is an address");
        let mut config = CollectorConfig::new(self.listen.unwrap_or_else(default), directory);
        config.domain = self.domain;
        config.plain_http = plain_http(self.plain_http.as_deref())?;
        config.tls = self.tls.map(|Tls { certificate, key, client_ca }| TlsConfig {
            certificate,
            key,
            client_ca,
        });
        config.tokens = self.token.iter().map(Token::config).collect::<anyhow::Result<_>>()?;
        config.engine.segments = self.segment.iter().map(Into::into).collect();
        config.engine.discover = self.discover;
        if let Some(patience) = self.patience {
            let patience = duration("patience", &patience)?;
            config.engine.patience = Delay::from_nanos(patience.as_nanos() as i64);
        }
        if let Some(wait) = self.resume_wait {
            config.resume_wait = duration("resume_wait", &wait)?;
        }
        config.limits = self.limits.over(Limits::default())?;
        config.metrics = self.metrics.map(|metrics| metrics.listen);
        config.retention = self.retention.retention()?;
        config.readers = self.reader.iter().map(Reader::config).collect::<anyhow::Result<_>>()?;
        config.history = self.history.config()?;
        config.alerts =
            self.alert.iter().map(AlertWritten::config).collect::<anyhow::Result<_>>()?;
        Ok(config)
    }
}

impl Token {
    /// The one of the command line.
    pub(super) fn of_file(path: &Path) -> Self {
        let (name, points) = ("command-line".to_owned(), vec!["*".to_owned()]);
        Self { name, token_file: Some(path.to_owned()), hash: None, points }
    }

    fn config(&self) -> anyhow::Result<TokenConfig> {
        let name = &self.name;
        let what = format!("token {name:?}");
        let problem = |problem: String| usage(format!("{what}: {problem}"));
        let points = self.points.iter().map(|point| point.parse());
        Ok(TokenConfig {
            name: name.clone(),
            hash: token_hash(&what, self.token_file.as_deref(), self.hash.as_deref())?,
            points: points
                .collect::<Result<_, twixt_collector::access::PatternError>>()
                .map_err(|error| problem(error.to_string()))?,
        })
    }
}

impl Reader {
    fn config(&self) -> anyhow::Result<ReaderConfig> {
        let what = format!("reader {:?}", self.name);
        let hash = token_hash(&what, self.token_file.as_deref(), self.hash.as_deref())?;
        Ok(ReaderConfig { name: self.name.clone(), hash, may_silence: self.may_silence })
    }
}

impl HistoryWritten {
    fn config(&self) -> anyhow::Result<HistoryConfig> {
        let age_ns = |days: Option<u32>| days.map(|days| (DAY * days).as_nanos() as i64);
        let bytes_max = self.bytes_max.as_deref().map(|text| bytes("history.bytes_max", text));
        let mut config = HistoryConfig::default();
        config.retention.epochs_age_ns = age_ns(self.epochs_days);
        config.retention.rollups_age_ns = age_ns(self.rollups_days);
        config.retention.bytes_max = bytes_max.transpose()?;
        if let Some(wait) = &self.seal_wait {
            let wait = duration("history.seal_wait", wait)?;
            config.seal_wait_ns = i64::try_from(wait.as_nanos()).unwrap_or(i64::MAX);
        }
        Ok(config)
    }
}

impl RetentionWritten {
    fn retention(&self) -> anyhow::Result<EpochRetention> {
        let bytes_max = self.bytes_max.as_deref().map(|text| bytes("retention.bytes_max", text));
        Ok(EpochRetention {
            age_max: self.days.map(|days| DAY * days),
            bytes_max: bytes_max.transpose()?,
        })
    }
}

impl LimitsWritten {
    /// With the defaults of the collector in place of what was left out.
    fn over(self, defaults: Limits) -> anyhow::Result<Limits> {
        let sized = |name, written: Option<String>, default: usize| match written {
            Some(text) => bytes(name, &text).map(|bytes| bytes as usize),
            None => Ok(default),
        };
        let timed = |name, written: Option<String>, default| match written {
            Some(text) => duration(name, &text),
            None => Ok(default),
        };
        Ok(Limits {
            body_bytes_max: sized("body_bytes_max", self.body_bytes_max, defaults.body_bytes_max)?,
            memory_bytes_max: match self.memory_max {
                Some(text) => bytes("memory_max", &text)?,
                None => defaults.memory_bytes_max,
            },
            connections_max: self.connections_max.unwrap_or(defaults.connections_max),
            connections_per_address_max: self
                .connections_per_address_max
                .unwrap_or(defaults.connections_per_address_max),
            requests_per_caller_max: self
                .requests_per_caller_max
                .unwrap_or(defaults.requests_per_caller_max),
            epochs_per_second: self.epochs_per_second.unwrap_or(defaults.epochs_per_second),
            epochs_burst: self.epochs_burst.unwrap_or(defaults.epochs_burst),
            queries_per_second: self.queries_per_second.unwrap_or(defaults.queries_per_second),
            queries_burst: self.queries_burst.unwrap_or(defaults.queries_burst),
            points_max: self.points_max.unwrap_or(defaults.points_max),
            header_time: timed("header_time", self.header_time, defaults.header_time)?,
            body_time: timed("body_time", self.body_time, defaults.body_time)?,
        })
    }
}

/// Of a token in a file, or as it is written.
fn token_hash(what: &str, file: Option<&Path>, hash: Option<&str>) -> anyhow::Result<TokenHash> {
    let problem = |problem: String| usage(format!("{what}: {problem}"));
    let hash = match (file, hash) {
        (Some(path), None) => {
            let token = std::fs::read_to_string(path)
                .with_context(|| format!("{what}: cannot read {}", path.display()))?;
            TokenHash::of_token(&token)
        }
        (None, Some(hash)) => TokenHash::from_hexadecimal(hash),
        _ => return Err(problem("set either token_file or hash".to_owned())),
    };
    hash.map_err(|error| problem(error.to_string()))
}

fn plain_http(written: Option<&str>) -> anyhow::Result<PlainHttp> {
    match written {
        None | Some("loopback") => Ok(PlainHttp::Loopback),
        Some("forced") => Ok(PlainHttp::Forced),
        Some(other) => {
            Err(usage(format!("plain_http: {other:?} is neither \"loopback\" nor \"forced\"")))
        }
    }
}

pub(super) fn duration(name: &str, text: &str) -> anyhow::Result<Duration> {
    let length = Nanoseconds::from_str(text).map_err(|error| usage(format!("{name}: {error}")))?;
    let nanos = u64::try_from(length.0)
        .map_err(|_| usage(format!("{name}: {text:?} must not be negative")))?;
    Ok(Duration::from_nanos(nanos))
}

fn bytes(name: &str, text: &str) -> anyhow::Result<u64> {
    let bytes = ByteCount::from_str(text).map_err(|error| usage(format!("{name}: {error}")))?;
    Ok(bytes.0)
}
