//! HashPipe: every packet enters the first stage, and what it pushes out goes on to the next.
//!
//! Sivaraman, Narayana, Rottenstreich, Muthukrishnan, Rexford: "Heavy-Hitter Detection Entirely
//! in the Data Plane", SOSR 2017. A flow may have counters in several stages; their sum is what
//! is reported. Packets are forgotten with the counters that drop out behind the last stage, so
//! that it never counts too many.

use twixt_model::{FlowHash, FlowKey, HeavyFlow};

use super::chance::{Placement, Stages};
use super::config::{ENTRIES_OPTION, WaysConfig};
use super::entry::{Entry, concluded};
use super::slots::Slots;
use super::table::FlowTable;
use crate::codec::{DecodeError, Reader, Writer};
use crate::synopsis::{ConfigOption, OptionKind};

/// Stages that its authors recommend between four and eight of.
const STAGES: u32 = 6;

/// HashPipe's counters.
#[derive(Clone, Debug, PartialEq)]
pub struct HashPipeTable {
    config: WaysConfig<STAGES>,
    slots: Slots<Stages>,
}

/// Sends a packet down the pipe.
pub(super) fn push<P: Placement>(slots: &mut Slots<P>, flow: FlowHash, key: &FlowKey, bytes: u32) {
    let mut carried = Entry::first(flow, key, bytes, 0);
    for stage in 0..slots.ways() {
        let place = slots.place(carried.flow, stage);
        match slots.at(place) {
            Some(entry) if entry.flow == carried.flow => return entry.absorb(&carried),
            Some(entry) if stage == 0 || entry.packets < carried.packets => {
                std::mem::swap(entry, &mut carried);
            }
            Some(_) => {}
            free @ None => {
                *free = Some(carried);
                return;
            }
        }
    }
}

impl FlowTable for HashPipeTable {
    const NAME: &'static str = "hashpipe";
    const TAG: u16 = 36;
    const SUMMARY: &'static str = "counters pushed through a pipeline of stages; never overcounts";
    const OPTIONS: &'static [ConfigOption] =
        &[ENTRIES_OPTION, ConfigOption { name: "ways", kind: OptionKind::Integer, help: "stages" }];
    type Config = WaysConfig<STAGES>;

    fn sized(memory_bytes: u64) -> Option<Self::Config> {
        WaysConfig::within(memory_bytes, Slots::<Stages>::bytes_for)
    }

    fn start(config: &Self::Config) -> Self {
        Self { config: config.clone(), slots: Slots::new(config, Stages) }
    }

    fn config(&self) -> &Self::Config {
        &self.config
    }

    fn add(&mut self, flow: FlowHash, key: &FlowKey, bytes: u32) {
        push(&mut self.slots, flow, key, bytes);
    }

    fn merge(&mut self, other: &Self) {
        self.slots.merge(&other.slots);
    }

    fn flows(&self) -> Vec<HeavyFlow> {
        concluded(self.slots.iter())
    }

    fn state_bytes(&self) -> u64 {
        self.slots.state_bytes()
    }

    fn encode(&self, out: &mut Writer) {
        self.config.encode(out);
        self.slots.encode(out);
    }

    /// A counter that no flow has takes one byte of the bytes.
    fn decoded_bytes(input: &mut Reader<'_>) -> Result<u64, DecodeError> {
        Ok(Slots::<Stages>::bytes_for(Self::Config::decode(input)?.entries() as usize))
    }

    fn decode(input: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let config = WaysConfig::decode(input)?;
        let slots = Slots::decode(&config, Stages, input)?;
        Ok(Self { config, slots })
    }
}
