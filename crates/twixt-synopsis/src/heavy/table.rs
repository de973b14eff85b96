//! What every table of large flows can do, and the synopsis made of one.

use std::fmt::Debug;

use serde::Serialize;
use serde::de::DeserializeOwned;
use twixt_model::{Detail, FlowHash, FlowKey, HeavyFlow, Observation};

use crate::codec::{DecodeError, Reader, Writer};
use crate::question::Question;
use crate::synopsis::{ConfigOption, DECODED_PER_BYTE, Needs, OnePoint, SplitMerge, Synopsis};
use crate::totals::Totals;

/// Counters for the largest flows. Other synopses may keep one beside them, to know which flows
/// to answer for.
pub trait FlowTable: Clone + PartialEq + Debug + Send + Sized + 'static {
    /// See [`Synopsis::NAME`].
    const NAME: &'static str;
    /// See [`Synopsis::TAG`].
    const TAG: u16;
    /// See [`Synopsis::SUMMARY`].
    const SUMMARY: &'static str;
    /// See [`Synopsis::OPTIONS`].
    const OPTIONS: &'static [ConfigOption];
    /// See [`Synopsis::SPLIT_MERGE`].
    const SPLIT_MERGE: SplitMerge = SplitMerge::Expected;

    /// How large it is.
    type Config: Clone + PartialEq + Debug + Default + Send + Serialize + DeserializeOwned;

    /// The largest table within `memory_bytes`.
    fn sized(memory_bytes: u64) -> Option<Self::Config>;

    /// An empty table.
    fn start(config: &Self::Config) -> Self;

    /// What it was made with.
    fn config(&self) -> &Self::Config;

    /// Counts a packet. The flow is known by its hash; the key is what it is called.
    fn add(&mut self, flow: FlowHash, key: &FlowKey, bytes: u32);

    /// Adds all that a table of the same size has counted.
    fn merge(&mut self, other: &Self);

    /// The flows that have counters, largest first.
    fn flows(&self) -> Vec<HeavyFlow>;

    /// Bytes of state.
    fn state_bytes(&self) -> u64;

    /// Appends size and counters.
    fn encode(&self, out: &mut Writer);

    /// See [`Synopsis::decoded_bytes`].
    ///
    /// # Errors
    /// When there is no size.
    fn decoded_bytes(input: &mut Reader<'_>) -> Result<u64, DecodeError> {
        Ok(DECODED_PER_BYTE * input.left() as u64)
    }

    /// Reads back what [`encode`](Self::encode) wrote.
    ///
    /// # Errors
    /// When the bytes are not such a table.
    fn decode(input: &mut Reader<'_>) -> Result<Self, DecodeError>;
}

/// A table on its own, as a synopsis that tells the largest flows.
///
/// Flows have names in the details of packets; packets that come without are only in the totals.
#[derive(Clone, Debug, PartialEq)]
pub struct Heavy<T> {
    totals: Totals,
    table: T,
}

impl<T: FlowTable> Synopsis for Heavy<T> {
    const NAME: &'static str = T::NAME;
    const TAG: u16 = T::TAG;
    const SUMMARY: &'static str = T::SUMMARY;
    const NEEDS: Needs =
        Needs { digest: false, flow: true, detail: true, group: false, exchange: false };
    const OPTIONS: &'static [ConfigOption] = T::OPTIONS;
    const PAGE: &'static str = "heavy";
    const SPLIT_MERGE: SplitMerge = T::SPLIT_MERGE;
    type Config = T::Config;

    fn sized(memory_bytes: u64) -> Option<T::Config> {
        T::sized(memory_bytes.checked_sub(size_of::<Totals>() as u64)?)
    }

    fn new(config: &T::Config) -> Self {
        Self { totals: Totals::default(), table: T::start(config) }
    }

    fn config(&self) -> &T::Config {
        self.table.config()
    }

    fn update(&mut self, observation: &Observation) {
        self.totals.add(observation.length);
    }

    #[inline]
    fn update_detailed(&mut self, observation: &Observation, detail: &Detail) {
        self.totals.add(observation.length);
        self.table.add(observation.flow, &detail.key, observation.length);
    }

    fn merge(&mut self, other: &Self) {
        self.totals.merge(other.totals);
        self.table.merge(&other.table);
    }

    fn totals(&self) -> Totals {
        self.totals
    }

    fn state_bytes(&self) -> u64 {
        size_of::<Totals>() as u64 + self.table.state_bytes()
    }

    fn encode(&self, out: &mut Writer) {
        self.totals.encode(out);
        self.table.encode(out);
    }

    fn decoded_bytes(input: &mut Reader<'_>) -> Result<u64, DecodeError> {
        Totals::decode(input)?;
        T::decoded_bytes(input)
    }

    fn decode(input: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self { totals: Totals::decode(input)?, table: T::decode(input)? })
    }
}

impl<T: FlowTable> OnePoint for Heavy<T> {
    type Conclusion = HeavyFlow;

    fn conclude(&self, _question: &Question<'_>) -> Vec<HeavyFlow> {
        self.table.flows()
    }
}
