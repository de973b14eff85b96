//! The configuration of a collector as a bundle has it: what bears on numbers, named one by one, so that
//! nothing secret comes along by accident. Tokens, keys, webhooks, addresses and paths are not in it.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use twixt_engine::SegmentConfig;
use utoipa::ToSchema;

use crate::api::AlertRuleDocument;
use crate::config::CollectorConfig;

/// How the collector was configured, without secrets, addresses and paths.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ConfigurationDocument {
    /// The only domain whose epochs are taken; null: every domain.
    pub domain: Option<String>,
    /// Whether points that share packet digests become segments by themselves.
    pub discover: bool,
    /// Segments that the operator named.
    pub segments: Vec<SegmentEntryDocument>,
    /// How long after its end the halves of an epoch are waited for.
    pub patience_ns: i64,
    /// How long points are waited for after a start.
    pub resume_wait_ns: i64,
    /// Age at which raw epochs are deleted; null: none.
    pub epochs_age_ns: Option<i64>,
    /// Bytes at which the oldest raw epochs are deleted; null: none.
    pub epochs_bytes_max: Option<u64>,
    /// Age at which estimates of epochs are deleted; null: none.
    pub estimates_age_ns: Option<i64>,
    /// Age at which minutes and hours are deleted; null: none.
    pub rollups_age_ns: Option<i64>,
    /// Bytes at which the oldest estimates are deleted; null: none.
    pub estimates_bytes_max: Option<u64>,
    /// How long after its end an hour is sealed.
    pub seal_wait_ns: i64,
    /// Alerts, without where they are reported.
    pub alerts: Vec<AlertRuleDocument>,
}

/// A segment that the operator named.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct SegmentEntryDocument {
    /// The point that packets pass first.
    pub upstream: String,
    /// The point that packets pass second.
    pub downstream: String,
    /// Class of traffic; null: every class.
    pub class: Option<String>,
}

impl From<&CollectorConfig> for ConfigurationDocument {
    fn from(config: &CollectorConfig) -> Self {
        let CollectorConfig { engine, retention, history, .. } = config;
        Self {
            domain: config.domain.clone(),
            discover: engine.discover,
            segments: engine.segments.iter().map(SegmentEntryDocument::from).collect(),
            patience_ns: engine.patience.as_nanos(),
            resume_wait_ns: nanos(config.resume_wait),
            epochs_age_ns: retention.age_max.map(nanos),
            epochs_bytes_max: retention.bytes_max,
            estimates_age_ns: history.retention.epochs_age_ns,
            rollups_age_ns: history.retention.rollups_age_ns,
            estimates_bytes_max: history.retention.bytes_max,
            seal_wait_ns: history.seal_wait_ns,
            alerts: config.alerts.iter().map(AlertRuleDocument::from).collect(),
        }
    }
}

impl From<&SegmentConfig> for SegmentEntryDocument {
    fn from(config: &SegmentConfig) -> Self {
        Self {
            upstream: config.segment.upstream.0.clone(),
            downstream: config.segment.downstream.0.clone(),
            class: config.class.clone(),
        }
    }
}

fn nanos(length: Duration) -> i64 {
    i64::try_from(length.as_nanos()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::access::{PointPattern, ReaderConfig, TokenConfig, TokenHash};
    use crate::alerts::{AlertConfig, Measure, SegmentPattern, Thresholds};
    use crate::server::TlsConfig;

    #[test]
    fn nothing_secret_is_in_it() {
        const SECRET: &str = "secret-0123456789abcdef";
        let hash = TokenHash::of_token(SECRET).unwrap();
        let path = |name: &str| PathBuf::from(format!("/{SECRET}/{name}"));
        let mut config = CollectorConfig::new("127.0.0.1:9".parse().unwrap(), path("state"));
        config.tokens =
            vec![TokenConfig { name: SECRET.to_owned(), hash, points: vec![PointPattern::all()] }];
        config.readers = vec![ReaderConfig { name: SECRET.to_owned(), hash, may_silence: true }];
        config.tls = Some(TlsConfig {
            certificate: path("certificate"),
            key: path("key"),
            client_ca: Some(path("ca")),
        });
        config.alerts = vec![AlertConfig {
            name: "slow".to_owned(),
            segment: SegmentPattern::all(),
            round_trips: None,
            class: None,
            algorithm: None,
            measure: Measure::Mean,
            thresholds: Thresholds { above: 1.0, clear_below: None },
            window: Duration::from_secs(60),
            minimum_packets: 1,
            webhook: Some(format!("https://{SECRET}@example.net/{SECRET}")),
        }];
        let text = serde_json::to_string(&ConfigurationDocument::from(&config)).unwrap();
        assert!(text.contains("\"slow\""), "{text}");
        for hidden in [SECRET, "127.0.0.1", "example.net", "hash"] {
            assert!(!text.contains(hidden), "{hidden}: {text}");
        }
    }
}
