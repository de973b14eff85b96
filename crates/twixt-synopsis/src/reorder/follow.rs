//! `sampled` and `hybrid`: reordering by prefix from a fixed number of flow records.

use twixt_model::{Detail, Observation, ReorderEstimate};

use super::config::{DEFINITION_OPTION, FollowConfig, PREFIX_OPTION, PREFIX6_OPTION};
use super::handshake::Handshakes;
use super::judge::TcpSegment;
use super::record::{LargeFlows, RECORD_BYTES, SampledFlows, Seen};
use super::tally::{self, Tallies};
use crate::codec::{DecodeError, Reader, Writer};
use crate::question::Question;
use crate::synopsis::{ConfigOption, Needs, OnePoint, OptionKind, Reading, SplitMerge, Synopsis};
use crate::totals::Totals;

/// Flows in turns, each for a short while.
pub type ReorderSampled = Follow<false>;
/// The same, and large flows besides for as long as they last.
pub type ReorderHybrid = Follow<true>;

/// Follows some flows at a time, with `LARGE` the large ones for as long as they last.
///
/// The flows that are being followed go on across epochs and are not written: what they showed so
/// far is in the tallies of their prefixes, and that is.
#[derive(Clone, Debug, PartialEq)]
pub struct Follow<const LARGE: bool> {
    config: FollowConfig<LARGE>,
    totals: Totals,
    sampled: SampledFlows,
    large: LargeFlows,
    handshakes: Handshakes,
    tallies: Tallies,
}

/// Prefixes that are distinguished, for each record.
const PREFIXES_PER_RECORD: usize = 4;

const RECORDS_OPTION: ConfigOption =
    ConfigOption { name: "records", kind: OptionKind::Integer, help: "flows tracked at a time" };
const STALE_OPTION: ConfigOption = ConfigOption {
    name: "stale",
    kind: OptionKind::Duration,
    help: "a record idle for this long may be taken over",
};
const CAP_OPTION: ConfigOption = ConfigOption {
    name: "cap",
    kind: OptionKind::Integer,
    help: "a record that judged this many packets may be taken over",
};
const SHARE_OPTION: ConfigOption = ConfigOption {
    name: "share",
    kind: OptionKind::Number,
    help: "share of the records for large flows",
};

impl<const LARGE: bool> Follow<LARGE> {
    fn following_none(config: FollowConfig<LARGE>, totals: Totals, tallies: Tallies) -> Self {
        let sampled = SampledFlows::new(&config);
        let large = LargeFlows::new(config.large_records());
        let handshakes = Handshakes::new(Some(config.records()));
        Self { config, totals, sampled, large, handshakes, tallies }
    }

    fn most_prefixes(config: &FollowConfig<LARGE>) -> usize {
        config.records() as usize * PREFIXES_PER_RECORD
    }

    /// All that is known of prefixes, also from flows that are being followed.
    fn known(&self) -> Tallies {
        let mut all = self.clone();
        all.report_all();
        all.tallies
    }

    fn report_all(&mut self) {
        self.sampled.report_all(&mut self.tallies);
        self.large.report_all(&mut self.tallies);
    }
}

impl<const LARGE: bool> Synopsis for Follow<LARGE> {
    const NAME: &'static str = if LARGE { "hybrid" } else { "sampled" };
    const TAG: u16 = if LARGE { 50 } else { 49 };
    const SUMMARY: &'static str = if LARGE {
        "like sampled, plus large flows for as long as they last"
    } else {
        "flows tracked in turn, each for a short time, with a fixed number of records"
    };
    const NEEDS: Needs =
        Needs { digest: false, flow: true, detail: true, group: false, exchange: false };
    const OPTIONS: &'static [ConfigOption] = if LARGE {
        &[
            RECORDS_OPTION,
            STALE_OPTION,
            CAP_OPTION,
            SHARE_OPTION,
            PREFIX_OPTION,
            PREFIX6_OPTION,
            DEFINITION_OPTION,
        ]
    } else {
        &[
            RECORDS_OPTION,
            STALE_OPTION,
            CAP_OPTION,
            PREFIX_OPTION,
            PREFIX6_OPTION,
            DEFINITION_OPTION,
        ]
    };
    const PAGE: &'static str = "reorder";
    const VERSION: u8 = tally::VERSION;
    const SPLIT_MERGE: SplitMerge = SplitMerge::Expected;
    type Config = FollowConfig<LARGE>;

    fn sized(memory_bytes: u64) -> Option<Self::Config> {
        let each =
            (RECORD_BYTES + Handshakes::BYTES) as u64 + Tallies::bytes_for(PREFIXES_PER_RECORD);
        FollowConfig::of_records(memory_bytes.saturating_sub(size_of::<Totals>() as u64) / each)
    }

    fn new(config: &Self::Config) -> Self {
        let tallies = Tallies::new(Self::most_prefixes(config));
        let mut follow = Self::following_none(config.clone(), Totals::default(), tallies);
        follow.sampled.reserve();
        follow.large.reserve();
        follow
    }

    fn config(&self) -> &Self::Config {
        &self.config
    }

    fn update(&mut self, observation: &Observation) {
        self.totals.add(observation.length);
    }

    #[inline]
    fn update_detailed(&mut self, observation: &Observation, detail: &Detail) {
        self.totals.add(observation.length);
        let (time, flow, key) = (observation.time, observation.flow, &detail.key);
        match TcpSegment::of(time, detail) {
            TcpSegment::Other => {}
            TcpSegment::Acknowledgement(tcp) => self.handshakes.acknowledged(time, key, &tcp),
            TcpSegment::Opening { tcp, answer } => {
                let prefix = self.config.judging.prefix_of(key);
                self.handshakes.opened(time, key, &tcp, answer);
                self.large.reopen(flow, &mut self.tallies);
                self.sampled.reopen(flow, prefix, &mut self.tallies);
            }
            TcpSegment::Data(packet) => {
                let prefix = self.config.judging.prefix_of(key);
                let handshakes = &self.handshakes;
                let seen = Seen { flow, prefix, packet: &packet, key, handshakes };
                let definition = self.config.judging.definition();
                if !self.large.see(&seen, definition, &mut self.tallies) {
                    self.sampled.see(&seen, definition, &mut self.tallies);
                }
            }
        }
    }

    fn merge(&mut self, other: &Self) {
        self.totals.merge(other.totals);
        self.tallies.merge(&other.known());
    }

    fn totals(&self) -> Totals {
        self.totals
    }

    fn state_bytes(&self) -> u64 {
        let records = self.config.records() as usize * (RECORD_BYTES + Handshakes::BYTES);
        (size_of::<Totals>() + records) as u64 + self.tallies.state_bytes()
    }

    fn encode(&self, out: &mut Writer) {
        self.config.encode(out);
        self.totals.encode(out);
        self.known().encode(out);
    }

    fn decode(input: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Self::decode_for(input, Reading { version: Self::VERSION, flows: None })
    }

    fn decode_for(input: &mut Reader<'_>, reading: Reading<'_>) -> Result<Self, DecodeError> {
        let config = FollowConfig::decode(input)?;
        let totals = Totals::decode(input)?;
        let most = Self::most_prefixes(&config);
        let tallies = Tallies::decode(most, input, reading.version)?;
        Ok(Self::following_none(config, totals, tallies))
    }
}

impl<const LARGE: bool> OnePoint for Follow<LARGE> {
    type Conclusion = ReorderEstimate;

    fn conclude(&self, _question: &Question<'_>) -> Vec<ReorderEstimate> {
        self.known().conclude(false)
    }

    fn cut(&mut self) -> Self {
        self.report_all();
        let fresh = Tallies::new(Self::most_prefixes(&self.config));
        let tallies = std::mem::replace(&mut self.tallies, fresh);
        Self::following_none(self.config.clone(), std::mem::take(&mut self.totals), tallies)
    }
}
