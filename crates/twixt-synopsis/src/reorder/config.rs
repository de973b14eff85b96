//! Settings of algorithms for reordering.

use serde::{Deserialize, Serialize};
use twixt_model::{FlowKey, Prefix};

use super::judge::Definition;
use crate::codec::{DecodeError, Reader, Writer};
use crate::synopsis::{ConfigOption, OptionKind};

/// Records at most: about 300 MB with the tallies that belong to them.
const RECORDS_MAX: u32 = 1 << 20;

pub(super) const PREFIX_OPTION: ConfigOption = ConfigOption {
    name: "prefix",
    kind: OptionKind::Integer,
    help: "prefix length of IPv4 source addresses",
};
pub(super) const PREFIX6_OPTION: ConfigOption = ConfigOption {
    name: "prefix6",
    kind: OptionKind::Integer,
    help: "prefix length of IPv6 source addresses",
};
pub(super) const DEFINITION_OPTION: ConfigOption = ConfigOption {
    name: "definition",
    kind: OptionKind::Choice(Definition::NAMES),
    help: "compare a packet with the previous one, or with the highest so far",
};

/// What counts as out of order, and for whom.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "JudgingSettings", into = "JudgingSettings")]
pub struct Judging {
    prefix: u8,  // in [0, 32]
    prefix6: u8, // in [0, 128]
    definition: Definition,
}

/// What users write. Everything has a default.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct JudgingSettings {
    prefix: u8,
    prefix6: u8,
    definition: Definition,
}

impl Default for JudgingSettings {
    fn default() -> Self {
        Self { prefix: 24, prefix6: 48, definition: Definition::default() }
    }
}

impl TryFrom<JudgingSettings> for Judging {
    type Error = String;

    fn try_from(settings: JudgingSettings) -> Result<Self, String> {
        Self::new(settings.prefix, settings.prefix6, settings.definition)
    }
}

impl From<Judging> for JudgingSettings {
    fn from(Judging { prefix, prefix6, definition }: Judging) -> Self {
        Self { prefix, prefix6, definition }
    }
}

impl Default for Judging {
    fn default() -> Self {
        JudgingSettings::default().try_into().expect("the defaults are valid")
    }
}

impl Judging {
    fn new(prefix: u8, prefix6: u8, definition: Definition) -> Result<Self, String> {
        match () {
            () if prefix > 32 => Err(format!("prefix must be at most 32 bits, not {prefix}")),
            () if prefix6 > 128 => Err(format!("prefix6 must be at most 128 bits, not {prefix6}")),
            () => Ok(Self { prefix, prefix6, definition }),
        }
    }

    pub(super) const fn definition(&self) -> Definition {
        self.definition
    }

    /// Where a flow's packets come from.
    pub(super) fn prefix_of(&self, key: &FlowKey) -> Prefix {
        Prefix::of(key.source, if key.source.is_ipv4() { self.prefix } else { self.prefix6 })
    }

    pub(super) fn encode(&self, out: &mut Writer) {
        out.u8(self.prefix);
        out.u8(self.prefix6);
        out.u8(self.definition.code());
    }

    pub(super) fn decode(input: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let (prefix, prefix6) = (input.u8("prefix bits")?, input.u8("IPv6 prefix bits")?);
        let code = input.u8("definition")?;
        let definition = Definition::from_code(code)
            .ok_or_else(|| DecodeError::invalid("definition", format!("{code} is unknown")))?;
        Self::new(prefix, prefix6, definition)
            .map_err(|problem| DecodeError::invalid("prefix bits", problem))
    }
}

/// Settings of `sampled`, and with `LARGE` of `hybrid`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "FollowSettings", into = "FollowSettings")]
pub struct FollowConfig<const LARGE: bool> {
    pub(super) judging: Judging,
    records: u32, // in [4, RECORDS_MAX]
    /// A record that saw nothing for so many nanoseconds may be taken over.
    pub(super) stale: u64,
    /// A record that judged so many packets may be taken over.
    pub(super) cap: u32,
    share: f64, // in [0, 1], 0 without `LARGE`
}

/// What users write. Everything has a default.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct FollowSettings {
    records: Option<u32>,
    stale: Option<u64>,
    cap: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    share: Option<f64>,
    prefix: Option<u8>,
    prefix6: Option<u8>,
    definition: Option<Definition>,
}

impl<const LARGE: bool> TryFrom<FollowSettings> for FollowConfig<LARGE> {
    type Error = String;

    fn try_from(settings: FollowSettings) -> Result<Self, String> {
        let default = JudgingSettings::default();
        let judging = Judging::new(
            settings.prefix.unwrap_or(default.prefix),
            settings.prefix6.unwrap_or(default.prefix6),
            settings.definition.unwrap_or(default.definition),
        )?;
        if !LARGE && settings.share.is_some() {
            return Err("sampled has no share for large flows; use hybrid".to_owned());
        }
        Self {
            judging,
            records: settings.records.unwrap_or(Self::RECORDS_DEFAULT),
            stale: settings.stale.unwrap_or(Self::STALE_DEFAULT_NS),
            cap: settings.cap.unwrap_or(Self::CAP_DEFAULT),
            share: settings.share.unwrap_or(if LARGE { Self::SHARE_DEFAULT } else { 0.0 }),
        }
        .checked()
    }
}

impl<const LARGE: bool> From<FollowConfig<LARGE>> for FollowSettings {
    fn from(config: FollowConfig<LARGE>) -> Self {
        Self {
            records: Some(config.records),
            stale: Some(config.stale),
            cap: Some(config.cap),
            share: LARGE.then_some(config.share),
            prefix: Some(config.judging.prefix),
            prefix6: Some(config.judging.prefix6),
            definition: Some(config.judging.definition),
        }
    }
}

impl<const LARGE: bool> Default for FollowConfig<LARGE> {
    fn default() -> Self {
        FollowSettings::default().try_into().expect("the defaults are valid")
    }
}

impl<const LARGE: bool> FollowConfig<LARGE> {
    const RECORDS_DEFAULT: u32 = 4096;
    const STALE_DEFAULT_NS: u64 = 50_000_000;
    const CAP_DEFAULT: u32 = 32;
    const SHARE_DEFAULT: f64 = 0.25;

    fn checked(self) -> Result<Self, String> {
        let Self { records, cap, share, .. } = self;
        match () {
            () if !(4..=RECORDS_MAX).contains(&records) => {
                Err(format!("records must be between 4 and {RECORDS_MAX}, not {records}"))
            }
            () if cap == 0 => Err("cap must be at least 1".to_owned()),
            () if self.stale > i64::MAX as u64 => Err("stale is too long".to_owned()),
            () if !(0.0..=1.0).contains(&share) => {
                Err(format!("share must be between 0 and 1, not {share}"))
            }
            () => Ok(self),
        }
    }

    /// With so many records, and everything else as by default.
    pub(super) fn of_records(records: u64) -> Option<Self> {
        let records = u32::try_from(records.min(u64::from(RECORDS_MAX))).ok()?;
        Self { records, ..Self::default() }.checked().ok()
    }

    /// Records of both sorts.
    pub(super) const fn records(&self) -> u32 {
        self.records
    }

    /// Records of large flows: an even number, for two stages.
    pub(super) fn large_records(&self) -> usize {
        (f64::from(self.records) * self.share) as usize / 2 * 2
    }

    /// Records of flows in turns.
    pub(super) fn sampled_records(&self) -> usize {
        self.records as usize - self.large_records()
    }

    pub(super) fn encode(&self, out: &mut Writer) {
        self.judging.encode(out);
        out.u32(self.records);
        out.u64(self.stale);
        out.u32(self.cap);
        out.f64(self.share);
    }

    pub(super) fn decode(input: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let judging = Judging::decode(input)?;
        let (records, stale) = (input.u32("records")?, input.u64("stale")?);
        let (cap, share) = (input.u32("cap")?, input.f64("share")?);
        let config = Self { judging, records, stale, cap, share }.checked();
        config.map_err(|problem| DecodeError::invalid("settings", problem))
    }
}
