//! RAP, randomised admission: a new flow takes over the smallest counter with a probability that
//! its count makes small.
//!
//! Basat, Chen, Einziger, Friedman, Kassner: "Randomized Admission Policy for Efficient Top-k,
//! Frequency, and Volume Estimation", ToN 2019. Small flows, most of which would take a counter
//! only to lose it again, hardly ever get one, so that large flows keep theirs.

use twixt_model::{FlowHash, FlowKey, HeavyFlow};

use super::chance::{Coin, CountedCoin};
use super::config::{ENTRIES_OPTION, EntriesConfig};
use super::entry::{Entry, concluded};
use super::summary::Summary;
use super::table::FlowTable;
use crate::codec::{DecodeError, Reader, Writer};
use crate::synopsis::ConfigOption;

/// RAP's counters. The table that other synopses keep beside them to learn which flows there are.
#[derive(Clone, Debug)]
pub struct RapTable<C: Coin = CountedCoin> {
    config: EntriesConfig,
    coin: C,
    /// Ranked by age: of equal counters the one that its flow has had longest is taken over.
    summary: Summary,
    /// Rank of the next flow, above all others.
    next_rank: u64,
}

/// Ranks are an order only: two tables may number the same one differently.
impl<C: Coin> PartialEq for RapTable<C> {
    fn eq(&self, other: &Self) -> bool {
        self.config == other.config && self.coin == other.coin && self.summary == other.summary
    }
}

impl RapTable {
    /// A table of so many counters.
    ///
    /// # Errors
    /// When there are none, or more than a million.
    pub fn new(entries: u32) -> Result<Self, String> {
        Ok(Self::start(&EntriesConfig::new(entries)?))
    }
}

impl<C: Coin> RapTable<C> {
    pub(super) fn with_coin(config: &EntriesConfig, coin: C) -> Self {
        let summary = Summary::new(config.entries() as usize);
        Self { config: config.clone(), coin, summary, next_rank: 0 }
    }

    pub(super) fn admit(&mut self, flow: FlowHash, key: &FlowKey, bytes: u32) {
        if self.summary.count(flow, bytes) {
            return;
        }
        let inherited = match self.summary.smallest() {
            Some(smallest) if self.summary.is_full() => {
                let outcomes = smallest.packets.saturating_add(1);
                if !self.coin.one_in(outcomes, flow) {
                    return;
                }
                Some(smallest.packets)
            }
            _ => None,
        };
        let rank = self.next_rank;
        self.next_rank += 1;
        let entry = Entry::first(flow, key, bytes, inherited.unwrap_or(0));
        match inherited {
            Some(_) => self.summary.replace_smallest(entry, Some(rank)),
            None => self.summary.insert(entry, rank),
        }
    }

    pub(super) fn entries(&self) -> &[Entry] {
        self.summary.entries()
    }
}

impl FlowTable for RapTable {
    const NAME: &'static str = "rap";
    const TAG: u16 = 34;
    const SUMMARY: &'static str =
        "new flows rarely take over the smallest counter, so that large flows keep theirs";
    const OPTIONS: &'static [ConfigOption] = &[ENTRIES_OPTION];
    type Config = EntriesConfig;

    fn sized(memory_bytes: u64) -> Option<EntriesConfig> {
        EntriesConfig::within(memory_bytes, Summary::bytes_for)
    }

    fn start(config: &EntriesConfig) -> Self {
        Self::with_coin(config, CountedCoin::default())
    }

    fn config(&self) -> &EntriesConfig {
        &self.config
    }

    fn add(&mut self, flow: FlowHash, key: &FlowKey, bytes: u32) {
        self.admit(flow, key, bytes);
    }

    fn merge(&mut self, other: &Self) {
        let both: Vec<Entry> = [self.entries(), other.entries()].concat();
        self.coin.merge(other.coin);
        self.summary.refill(&both);
        self.next_rank = self.summary.len() as u64;
    }

    fn flows(&self) -> Vec<HeavyFlow> {
        concluded(self.entries())
    }

    fn state_bytes(&self) -> u64 {
        Summary::bytes_for(self.summary.capacity())
    }

    fn encode(&self, out: &mut Writer) {
        self.config.encode(out);
        self.coin.encode(out);
        self.summary.encode(out);
    }

    fn decode(input: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let config = EntriesConfig::decode(input)?;
        let coin = CountedCoin::decode(input)?;
        let summary = Summary::decode(config.entries() as usize, input)?;
        let next_rank = summary.len() as u64;
        Ok(Self { config, coin, summary, next_rank })
    }
}
