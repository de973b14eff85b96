//! Randomised admission among the few counters that a flow may have: d-way RAP, and PRECISION.
//!
//! Both look into d counters, count a known flow, give a free counter to a new one, and else let
//! it take over the smallest with a probability that its count makes small. d-way RAP has its
//! counters side by side, as a processor's cache does. PRECISION (Basat, Chen, Einziger,
//! Rottenstreich, ICNP 2018) has one in each of d stages, as a switch does. A switch can write a
//! counter only when the packet comes round a second time; that is before the next packet is
//! looked at, so here it is done at once.

use std::marker::PhantomData;

use twixt_model::{FlowHash, FlowKey, HeavyFlow};

use super::chance::{Coin, CountedCoin, Placement, Sets, Stages};
use super::config::{ENTRIES_OPTION, WaysConfig};
use super::entry::{Entry, concluded};
use super::slots::Slots;
use super::table::FlowTable;
use crate::codec::{DecodeError, Reader, Writer};
use crate::synopsis::{ConfigOption, OptionKind};

/// Counters with randomised admission.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Admission<P, C = CountedCoin> {
    coin: C,
    slots: Slots<P>,
}

impl<P: Placement, C: Coin> Admission<P, C> {
    pub(super) const fn new(slots: Slots<P>, coin: C) -> Self {
        Self { coin, slots }
    }

    pub(super) fn admit(&mut self, flow: FlowHash, key: &FlowKey, bytes: u32) {
        let mut smallest = (u64::MAX, 0);
        for way in 0..self.slots.ways() {
            let place = self.slots.place(flow, way);
            match self.slots.at(place) {
                Some(entry) if entry.flow == flow => return entry.count(bytes),
                _ => {}
            }
            // Of equal counters the first is the smallest.
            let packets = self.slots.packets_at(place);
            if packets < smallest.0 {
                smallest = (packets, place);
            }
        }
        let (packets, place) = smallest;
        if packets == 0 || self.coin.one_in(packets.saturating_add(1), flow) {
            *self.slots.at(place) = Some(Entry::first(flow, key, bytes, packets));
        }
    }

    pub(super) const fn slots(&self) -> &Slots<P> {
        &self.slots
    }
}

/// What distinguishes the two: their names, and where counters are.
pub trait Arrangement: Clone + std::fmt::Debug + PartialEq + Send + 'static {
    /// Where counters are.
    type Placement: Placement;
    /// Name of the algorithm.
    const NAME: &'static str;
    /// Its tag.
    const TAG: u16;
    /// What it is, in one line.
    const SUMMARY: &'static str;
    /// Its settings.
    const OPTIONS: &'static [ConfigOption];
    /// Where counters are in a table of so many ways.
    fn placement(ways: usize) -> Self::Placement;
}

/// d-way RAP: a flow's counters lie side by side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SideBySide;

/// PRECISION: a flow has one counter in every stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Staged;

impl Arrangement for SideBySide {
    type Placement = Sets;
    const NAME: &'static str = "rap-way";
    const TAG: u16 = 35;
    const SUMMARY: &'static str = "RAP within small sets of counters: constant time per packet";
    const OPTIONS: &'static [ConfigOption] = &[
        ENTRIES_OPTION,
        ConfigOption { name: "ways", kind: OptionKind::Integer, help: "counters per set" },
    ];

    fn placement(ways: usize) -> Sets {
        Sets::of(ways)
    }
}

impl Arrangement for Staged {
    type Placement = Stages;
    const NAME: &'static str = "precision";
    const TAG: u16 = 37;
    const SUMMARY: &'static str = "RAP in stages, as in switches";
    const OPTIONS: &'static [ConfigOption] =
        &[ENTRIES_OPTION, ConfigOption { name: "ways", kind: OptionKind::Integer, help: "stages" }];

    fn placement(_ways: usize) -> Stages {
        Stages
    }
}

/// The table of d-way RAP. Sixteen ways lose next to nothing against looking at all counters.
pub type RapWayTable = AdmissionTable<SideBySide, 16>;
/// The table of PRECISION. Two stages are what its authors found worth their cost.
pub type PrecisionTable = AdmissionTable<Staged, 2>;

/// Counters with randomised admission, and their settings.
#[derive(Clone, Debug, PartialEq)]
pub struct AdmissionTable<A: Arrangement, const WAYS: u32> {
    config: WaysConfig<WAYS>,
    admission: Admission<A::Placement>,
    arrangement: PhantomData<A>,
}

impl<A: Arrangement, const WAYS: u32> AdmissionTable<A, WAYS> {
    fn of(config: WaysConfig<WAYS>, coin: CountedCoin, slots: Slots<A::Placement>) -> Self {
        Self { config, admission: Admission::new(slots, coin), arrangement: PhantomData }
    }
}

impl<A: Arrangement, const WAYS: u32> FlowTable for AdmissionTable<A, WAYS> {
    const NAME: &'static str = A::NAME;
    const TAG: u16 = A::TAG;
    const SUMMARY: &'static str = A::SUMMARY;
    const OPTIONS: &'static [ConfigOption] = A::OPTIONS;
    type Config = WaysConfig<WAYS>;

    fn sized(memory_bytes: u64) -> Option<WaysConfig<WAYS>> {
        WaysConfig::within(memory_bytes, Slots::<A::Placement>::bytes_for)
    }

    fn start(config: &WaysConfig<WAYS>) -> Self {
        let slots = Slots::new(config, A::placement(config.ways() as usize));
        Self::of(config.clone(), CountedCoin::default(), slots)
    }

    fn config(&self) -> &WaysConfig<WAYS> {
        &self.config
    }

    fn add(&mut self, flow: FlowHash, key: &FlowKey, bytes: u32) {
        self.admission.admit(flow, key, bytes);
    }

    fn merge(&mut self, other: &Self) {
        self.admission.coin.merge(other.admission.coin);
        self.admission.slots.merge(&other.admission.slots);
    }

    fn flows(&self) -> Vec<HeavyFlow> {
        concluded(self.admission.slots().iter())
    }

    fn state_bytes(&self) -> u64 {
        self.admission.slots().state_bytes()
    }

    fn encode(&self, out: &mut Writer) {
        self.config.encode(out);
        self.admission.coin.encode(out);
        self.admission.slots().encode(out);
    }

    /// A counter that no flow has takes one byte of the bytes.
    fn decoded_bytes(input: &mut Reader<'_>) -> Result<u64, DecodeError> {
        Ok(Slots::<A::Placement>::bytes_for(Self::Config::decode(input)?.entries() as usize))
    }

    fn decode(input: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let config = WaysConfig::decode(input)?;
        let coin = CountedCoin::decode(input)?;
        let slots = Slots::decode(&config, A::placement(config.ways() as usize), input)?;
        Ok(Self::of(config, coin, slots))
    }
}
