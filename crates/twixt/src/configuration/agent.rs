//! The configuration file of an agent.

use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::Context;
use serde::Deserialize;
use twixt_agent::{AgentConfig, DeliveryConfig, PointConfig, SpoolConfig};
use twixt_capture::{FrameDirection, LiveOptions, RingSize, TimePreference};
use twixt_model::quantity::Nanoseconds;
use twixt_model::{Delay, EpochRule};
use twixt_synopsis::{ALGORITHMS, AnySynopsis};
use twixt_wire::{Digester, Filter};

use super::{ClassSettings, Configuration, DigestSettings, EpochSettings, SynopsisSettings};
use crate::args::{EpochLength, bytes};
use crate::exit::usage;

/// What was written. The keys of the general configuration file mean the same here.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "a table")]
pub(crate) struct AgentSettings {
    pub(crate) algorithm: Option<String>,
    pub(crate) domain: String,
    pub(crate) digest: DigestSettings,
    pub(crate) epoch: AgentEpochSettings,
    pub(crate) synopsis: Vec<SynopsisSettings>,
    pub(crate) class: Vec<ClassSettings>,
    pub(crate) point: Vec<PointSettings>,
    pub(crate) spool: SpoolSettings,
    pub(crate) collector: CollectorSettings,
    pub(crate) metrics: MetricsSettings,
    pub(crate) run: RunSettings,
}

/// How time is cut.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "a table")]
pub(crate) struct AgentEpochSettings {
    pub(crate) length: Option<String>,
    pub(crate) guard: Option<String>,
}

/// Where packets are observed.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(crate) struct PointSettings {
    pub(crate) name: String,
    pub(crate) interface: String,
    pub(crate) direction: Option<String>,
    pub(crate) filter: Option<String>,
    pub(crate) threads: Option<usize>,
    #[serde(default)]
    pub(crate) outer: bool,
    pub(crate) promiscuous: Option<bool>,
    pub(crate) snap_length: Option<NonZeroU32>,
    pub(crate) times: Option<String>,
    pub(crate) ring: Option<String>,
}

/// Where epochs wait.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "a table")]
pub(crate) struct SpoolSettings {
    pub(crate) directory: Option<PathBuf>,
    pub(crate) bytes_max: Option<String>,
}

/// Where epochs go.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "a table")]
pub(crate) struct CollectorSettings {
    pub(crate) url: Option<String>,
    pub(crate) token_file: Option<PathBuf>,
    pub(crate) ca: Option<PathBuf>,
    pub(crate) certificate: Option<PathBuf>,
    pub(crate) key: Option<PathBuf>,
    pub(crate) plain_http: Option<String>,
}

/// Where metrics are served.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "a table")]
pub(crate) struct MetricsSettings {
    pub(crate) listen: Option<String>,
}

/// As whom it runs.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "a table")]
pub(crate) struct RunSettings {
    pub(crate) user: Option<String>,
}

/// Default size of a spool.
const SPOOL_BYTES_MAX: u64 = 1 << 30;
const EPOCH_LENGTH: &str = "1s";

impl AgentSettings {
    /// Reads a file; nothing written when there is none.
    pub(crate) fn load(path: Option<&Path>) -> anyhow::Result<Self> {
        let Some(path) = path else { return Ok(Self::default()) };
        let shown = path.display();
        let text = std::fs::read_to_string(path)
            .with_context(|| format!("cannot read configuration {shown}"))?;
        let settings: Self =
            toml::from_str(&text).map_err(|error| usage(format!("{shown}: {error}")))?;
        let general = settings.general();
        general.check().map_err(|problem| usage(format!("{shown}: {problem}")))?;
        Ok(settings)
    }

    /// What it has in common with the general configuration file.
    pub(crate) fn general(&self) -> Configuration {
        Configuration {
            algorithm: self.algorithm.clone(),
            digest: self.digest.clone(),
            epoch: EpochSettings { length: self.epoch.length.clone() },
            synopsis: self.synopsis.clone(),
            class: self.class.clone(),
        }
    }

    /// What the agent is to do, with its files read.
    pub(crate) fn resolve(
        &self,
        algorithms: &[String],
        digester: Digester,
    ) -> anyhow::Result<AgentConfig> {
        let class = |class: &ClassSettings| Ok((class.name.clone(), filter(&class.filter)?));
        Ok(AgentConfig {
            domain: self.domain.clone(),
            rule: self.rule()?,
            guard: self.guard()?,
            digester,
            classes: self.class.iter().map(class).collect::<anyhow::Result<_>>()?,
            synopses: self.synopses(algorithms)?,
            points: self.point.iter().map(PointSettings::resolve).collect::<Result<_, _>>()?,
            spool: self.spool.resolve()?,
            delivery: self.collector.resolve()?,
            metrics: self.metrics.resolve()?,
            user: self.run.user.clone(),
        })
    }

    fn rule(&self) -> anyhow::Result<EpochRule> {
        let text = self.epoch.length.as_deref().unwrap_or(EPOCH_LENGTH);
        Ok(read::<EpochLength>("epoch.length", text)?.0)
    }

    fn guard(&self) -> anyhow::Result<Option<Delay>> {
        let guard = |text: &String| read::<Nanoseconds>("epoch.guard", text);
        let guard = self.epoch.guard.as_ref().map(guard).transpose()?;
        Ok(guard.map(|length| Delay::from_nanos(length.0)))
    }

    /// What was named on the command line, or all that the file names, or LDA.
    fn synopses(&self, algorithms: &[String]) -> anyhow::Result<Vec<Box<dyn AnySynopsis>>> {
        if algorithms.is_empty() && !self.synopsis.is_empty() {
            return self.synopsis.iter().map(start).collect();
        }
        let default = self.algorithm.clone().unwrap_or_else(|| "lda".to_owned());
        let names = if algorithms.is_empty() { &[default] } else { algorithms };
        let named = |name: &String| {
            let algorithm = ALGORITHMS.iter().find(|algorithm| algorithm.name == name);
            let written = self
                .synopsis
                .iter()
                .find(|written| algorithm.is_some_and(|algorithm| written.is_of(algorithm)));
            let plain = SynopsisSettings {
                algorithm: name.clone(),
                command: None,
                options: toml::Table::new(),
            };
            start(written.unwrap_or(&plain))
        };
        names.iter().map(named).collect()
    }
}

fn start(synopsis: &SynopsisSettings) -> anyhow::Result<Box<dyn AnySynopsis>> {
    let algorithm = synopsis
        .of_registry()
        .ok_or_else(|| usage(format!("unknown algorithm {:?}", synopsis.algorithm)))?;
    (algorithm.start)(&synopsis.options).map_err(|error| usage(error.to_string()))
}

impl PointSettings {
    fn resolve(&self) -> anyhow::Result<PointConfig> {
        let wrong = |key: &str, words: &str| {
            usage(format!("point {}: {key}: use one of {words}", self.name))
        };
        let defaults = LiveOptions::default();
        let direction = match self.direction.as_deref() {
            Some("in") => Some(FrameDirection::Inbound),
            Some("out") => Some(FrameDirection::Outbound),
            Some("both") | None => None,
            Some(_) => return Err(wrong("direction", "in, out, both")),
        };
        let times = match self.times.as_deref() {
            Some("kernel") | None => TimePreference::Kernel,
            Some("adapter") => TimePreference::Adapter,
            Some("switch-on-adapter") => TimePreference::SwitchOnAdapter,
            Some(_) => return Err(wrong("times", "kernel, adapter, switch-on-adapter")),
        };
        let ring = self.ring.as_ref().map(|text| size("ring", text)).transpose()?;
        Ok(PointConfig {
            name: self.name.clone(),
            interface: self.interface.clone(),
            filter: self.filter.as_deref().map(filter).transpose()?,
            outer: self.outer,
            threads: self.threads.unwrap_or(1),
            options: LiveOptions {
                direction,
                times,
                promiscuous: self.promiscuous.unwrap_or(true),
                snap_length: self.snap_length,
                ring: ring.map_or(defaults.ring, RingSize::of_bytes),
                ..defaults
            },
        })
    }
}

impl SpoolSettings {
    fn resolve(&self) -> anyhow::Result<SpoolConfig> {
        let folder = self
            .directory
            .clone()
            .ok_or_else(|| usage("no spool: use --spool DIR, or `directory` in [spool]"))?;
        let bytes_max = self.bytes_max.as_ref().map(|text| size("spool.bytes_max", text));
        Ok(SpoolConfig { folder, bytes_max: bytes_max.transpose()?.unwrap_or(SPOOL_BYTES_MAX) })
    }
}

impl CollectorSettings {
    fn resolve(&self) -> anyhow::Result<DeliveryConfig> {
        let url = self
            .url
            .clone()
            .ok_or_else(|| usage("no collector: use --collector URL, or `url` in [collector]"))?;
        let identity = match (&self.certificate, &self.key) {
            (Some(certificate), Some(key)) => Some((contents(certificate)?, contents(key)?)),
            (None, None) => None,
            _ => {
                return Err(usage(
                    "a certificate needs its key, and a key its certificate: set both",
                ));
            }
        };
        let token = self.token_file.as_deref().map(contents).transpose()?;
        let token = token.map(String::from_utf8).transpose();
        let plain_http_forced = match self.plain_http.as_deref() {
            None => false,
            Some("forced") => true,
            Some(_) => {
                return Err(usage("collector.plain_http: the only valid value is \"forced\""));
            }
        };
        Ok(DeliveryConfig {
            url,
            token: token.map_err(|_| usage("the token is not text"))?,
            ca: self.ca.as_deref().map(contents).transpose()?,
            identity,
            plain_http_forced,
        })
    }
}

impl MetricsSettings {
    fn resolve(&self) -> anyhow::Result<Option<SocketAddr>> {
        let listen = |text: &String| {
            text.parse().map_err(|_| {
                usage(format!("metrics.listen: {text:?} is not an address such as 127.0.0.1:9470"))
            })
        };
        self.listen.as_ref().map(listen).transpose()
    }
}

fn filter(text: &str) -> anyhow::Result<Filter> {
    text.parse().map_err(|error| usage(format!("filter {text:?}: {error}")))
}

fn size(key: &str, text: &str) -> anyhow::Result<u64> {
    bytes(text).map_err(|problem| usage(format!("{key}: {problem}")))
}

fn read<T: FromStr>(key: &str, text: &str) -> anyhow::Result<T>
where
    T::Err: std::fmt::Display,
{
    text.parse().map_err(|problem| usage(format!("{key}: {problem}")))
}

fn contents(path: &Path) -> anyhow::Result<Vec<u8>> {
    std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))
}
