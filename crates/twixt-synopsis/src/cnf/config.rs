//! What a meter selects, when it closes records, and how records are associated.

use serde::{Deserialize, Serialize};
use twixt_model::Observation;

use super::association::{Rule, TimingBounds};
use super::cache::FlowCacheConfig;
use crate::codec::{DecodeError, Reader, Writer};
use crate::synopsis::{DetailsOf, HashShare};

/// Settings of Consistent NetFlow. By default 1 % of packets, timeouts of 30 minutes and 15
/// seconds, association by label.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Settings", into = "Settings")]
pub struct CnfConfig {
    sampling: f64, // in (0, 1]
    select: Select,
    rule: Rule,
    active_timeout_ns: u64,   // in [1, TIMEOUT_MAX_NS]
    inactive_timeout_ns: u64, // in [1, TIMEOUT_MAX_NS]
    outliers: f64,            // in [0, OUTLIERS_MAX]
    /// `sampling` in units of 2^-32, as the update compares it.
    threshold: u64,
}

/// What is sampled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Select {
    /// Packets, by their digest.
    #[default]
    Packet,
    /// Flows with all of their packets, by their flow hash.
    Flow,
}

impl Select {
    /// As users write them.
    pub const NAMES: &'static [&'static str] = &["packet", "flow"];
}

/// Ways of association, as users write them.
pub(super) const ASSOCIATE_NAMES: &[&str] = &["label", "timing"];

/// Keeps the bits that select apart from the label, which is the digest itself (trajectory
/// sampling needs two hashes: one selects, the other names).
const SELECT_SALT: u64 = 0x434e_462d_7365_6c00;
/// A day: no exporter waits longer.
const TIMEOUT_MAX_NS: u64 = 86_400_000_000_000;
/// More than half of the delays are no outliers.
const OUTLIERS_MAX: f64 = 0.5;

/// What users write; times in nanoseconds. Everything has a default.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Settings {
    sampling: f64,
    select: String,
    active_timeout: u64,
    inactive_timeout: u64,
    associate: String,
    propagation_min: i64,
    propagation_max: i64,
    processing: i64,
    clock_bound: i64,
    outliers: f64,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            sampling: 0.01,
            select: "packet".to_owned(),
            active_timeout: FlowCacheConfig::DEFAULT.active_timeout_ns,
            inactive_timeout: FlowCacheConfig::DEFAULT.inactive_timeout_ns,
            associate: "label".to_owned(),
            propagation_min: 0,
            propagation_max: 20_000_000,
            processing: 50_000_000,
            clock_bound: 1_000_000,
            outliers: 0.0,
        }
    }
}

impl TryFrom<Settings> for CnfConfig {
    type Error = String;

    fn try_from(settings: Settings) -> Result<Self, String> {
        let Settings { sampling, outliers, active_timeout, inactive_timeout, .. } = settings;
        if !(sampling > 0.0 && sampling <= 1.0) {
            return Err(format!("sampling must be above 0 and at most 1, not {sampling}"));
        }
        if !(0.0..=OUTLIERS_MAX).contains(&outliers) {
            return Err(format!("outliers must be between 0 and {OUTLIERS_MAX}, not {outliers}"));
        }
        for (name, timeout) in
            [("active_timeout", active_timeout), ("inactive_timeout", inactive_timeout)]
        {
            if !(1..=TIMEOUT_MAX_NS).contains(&timeout) {
                return Err(format!("{name} must be above 0 and at most a day"));
            }
        }
        let select = match settings.select.as_str() {
            "packet" => Select::Packet,
            "flow" => Select::Flow,
            other => return Err(format!("select must be packet or flow, not {other:?}")),
        };
        let rule = match settings.associate.as_str() {
            "label" => Rule::Label,
            "timing" => Rule::Timing(bounds(&settings)?),
            other => return Err(format!("associate must be label or timing, not {other:?}")),
        };
        Ok(Self {
            sampling,
            select,
            rule,
            active_timeout_ns: active_timeout,
            inactive_timeout_ns: inactive_timeout,
            outliers,
            threshold: (sampling * 2_f64.powi(32)).round() as u64,
        })
    }
}

fn bounds(settings: &Settings) -> Result<TimingBounds, String> {
    let Settings { propagation_min, propagation_max, processing, clock_bound, .. } = *settings;
    if propagation_min > propagation_max || processing < 0 || clock_bound < 0 {
        return Err(
            "propagation_min must not exceed propagation_max, and processing and clock_bound \
                    must not be negative"
                .to_owned(),
        );
    }
    Ok(TimingBounds {
        propagation_min_ns: propagation_min,
        propagation_max_ns: propagation_max,
        processing_ns: processing,
        clock_ns: clock_bound,
        active_timeout_ns: settings.active_timeout as i64,
        inactive_timeout_ns: settings.inactive_timeout as i64,
    })
}

impl From<CnfConfig> for Settings {
    fn from(config: CnfConfig) -> Self {
        let settings = Self {
            sampling: config.sampling,
            select: Select::NAMES[usize::from(config.select == Select::Flow)].to_owned(),
            active_timeout: config.active_timeout_ns,
            inactive_timeout: config.inactive_timeout_ns,
            outliers: config.outliers,
            ..Self::default()
        };
        match config.rule {
            Rule::Label => settings,
            Rule::Timing(bounds) => Self {
                associate: "timing".to_owned(),
                propagation_min: bounds.propagation_min_ns,
                propagation_max: bounds.propagation_max_ns,
                processing: bounds.processing_ns,
                clock_bound: bounds.clock_ns,
                ..settings
            },
        }
    }
}

impl Default for CnfConfig {
    fn default() -> Self {
        Self::try_from(Settings::default()).expect("the defaults are valid")
    }
}

impl CnfConfig {
    /// The share of packets or flows that are metered.
    #[must_use]
    pub const fn sampling(&self) -> f64 {
        self.sampling
    }

    /// The share of packets of a metered flow that are metered.
    #[must_use]
    pub fn packet_rate(&self) -> f64 {
        if self.select == Select::Packet { self.sampling } else { 1.0 }
    }

    /// The share of the largest delays that is left out.
    #[must_use]
    pub const fn outliers(&self) -> f64 {
        self.outliers
    }

    /// How records are associated.
    #[must_use]
    pub const fn rule(&self) -> Rule {
        self.rule
    }

    /// Whether a packet is metered. Both points answer alike.
    #[must_use]
    #[inline]
    pub fn selects(&self, observation: &Observation) -> bool {
        self.details_of().includes(observation)
    }

    /// Which packets are metered.
    #[inline]
    pub(super) const fn details_of(&self) -> DetailsOf {
        let share = HashShare { salt: SELECT_SALT, below: self.threshold };
        match self.select {
            Select::Packet => DetailsOf::Packets(share),
            Select::Flow => DetailsOf::Flows(share),
        }
    }

    /// The longest that a record lasts.
    #[must_use]
    pub const fn active_timeout_ns(&self) -> u64 {
        self.active_timeout_ns
    }

    /// The meter's cache. What was selected is all in memory already: no bound is needed.
    pub(super) const fn cache(&self) -> FlowCacheConfig {
        FlowCacheConfig {
            active_timeout_ns: self.active_timeout_ns,
            inactive_timeout_ns: self.inactive_timeout_ns,
            entries_max: u32::MAX,
        }
    }

    /// How long a record may wait for its partner: until the meters have closed all records that
    /// begin within a timeout of it.
    #[must_use]
    pub const fn window_ns(&self) -> u64 {
        self.active_timeout_ns.saturating_add(self.inactive_timeout_ns.saturating_mul(2))
    }

    pub(super) fn encode(&self, out: &mut Writer) {
        let settings = Settings::from(self.clone());
        out.f64(settings.sampling);
        out.u8(u8::from(self.select == Select::Flow));
        out.u64(settings.active_timeout);
        out.u64(settings.inactive_timeout);
        out.u8(u8::from(self.rule != Rule::Label));
        for time in [
            settings.propagation_min,
            settings.propagation_max,
            settings.processing,
            settings.clock_bound,
        ] {
            out.i64(time);
        }
        out.f64(settings.outliers);
    }

    pub(super) fn decode(input: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let settings = Settings {
            sampling: input.f64("sampling")?,
            select: name(Select::NAMES, input.u8("select")?, "select")?,
            active_timeout: input.u64("active timeout")?,
            inactive_timeout: input.u64("inactive timeout")?,
            associate: name(ASSOCIATE_NAMES, input.u8("associate")?, "associate")?,
            propagation_min: input.i64("smallest propagation")?,
            propagation_max: input.i64("largest propagation")?,
            processing: input.i64("processing")?,
            clock_bound: input.i64("clock")?,
            outliers: input.f64("outliers")?,
        };
        Self::try_from(settings).map_err(|problem| DecodeError::invalid("settings", problem))
    }
}

fn name(names: &[&str], number: u8, field: &'static str) -> Result<String, DecodeError> {
    let name = names.get(usize::from(number)).copied();
    name.map(str::to_owned)
        .ok_or_else(|| DecodeError::invalid(field, format!("unknown code {number}")))
}
