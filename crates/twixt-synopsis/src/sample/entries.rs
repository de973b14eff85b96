//! The packets of a sample, close together in memory and in bytes.

use twixt_model::SampleLevel;

use super::config::SampleConfig;
use crate::codec::{DecodeError, Reader, Writer};

/// What is kept of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Entry {
    pub(super) rank: u64,
    pub(super) time_ns: i64,
    /// Where flows are kept: in all packets of a sample, or in none.
    pub(super) flow: Option<u32>,
}

/// Packets in no particular order: equality and bytes sort first. Flows lie apart from the rest,
/// as a struct of both would waste four bytes of every packet.
#[derive(Clone, Debug, Default)]
pub(super) struct Entries {
    packets: Vec<(u64, i64)>,
    /// As long as `packets`, or empty.
    flows: Vec<u32>,
}

impl Entries {
    /// None yet, with room for all that the configuration allows.
    pub(super) fn with_room(config: &SampleConfig) -> Self {
        let flows = if config.keeps_flows() { config.packets() } else { 0 };
        Self { packets: Vec::with_capacity(config.packets()), flows: Vec::with_capacity(flows) }
    }

    pub(super) fn len(&self) -> usize {
        self.packets.len()
    }

    pub(super) fn push(&mut self, entry: Entry) {
        self.packets.push((entry.rank, entry.time_ns));
        self.flows.extend(entry.flow);
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = Entry> {
        self.packets.iter().enumerate().map(|(index, &(rank, time_ns))| Entry {
            rank,
            time_ns,
            flow: self.flows.get(index).copied(),
        })
    }

    /// Drops packets by their ranks.
    pub(super) fn retain(&mut self, keep: impl Fn(u64) -> bool) {
        let mut ranks = self.packets.iter().map(|packet| packet.0);
        self.flows.retain(|_| ranks.next().is_some_and(&keep));
        self.packets.retain(|packet| keep(packet.0));
    }

    /// Takes one packet out. One that is not there was invented by the sender of the epoch: there
    /// is nothing to undo.
    pub(super) fn remove(&mut self, entry: Entry) {
        let found = self.iter().position(|other| other == entry);
        if let Some(index) = found {
            self.packets.swap_remove(index);
            if entry.flow.is_some() {
                self.flows.swap_remove(index);
            }
        }
    }

    fn sorted(&self) -> Vec<Entry> {
        let mut entries: Vec<Entry> = self.iter().collect();
        entries.sort_unstable();
        entries
    }

    pub(super) fn encode(&self, out: &mut Writer) {
        out.u64(self.len() as u64);
        for entry in self.sorted() {
            out.u64(entry.rank);
            out.i64(entry.time_ns);
            if let Some(flow) = entry.flow {
                out.u32(flow);
            }
        }
    }

    pub(super) fn decode(
        input: &mut Reader<'_>,
        config: &SampleConfig,
        level: SampleLevel,
    ) -> Result<Self, DecodeError> {
        let count = input.count("sampled packets", config.packet_bytes() as usize)?;
        if count > config.packets() {
            let problem = format!("{count}, where the budget holds {}", config.packets());
            return Err(DecodeError::invalid("sampled packets", problem));
        }
        let mut entries = Self::default();
        for _ in 0..count {
            let (rank, time_ns) = (input.u64("packet rank")?, input.i64("packet time")?);
            if !level.keeps(rank) {
                return Err(DecodeError::invalid("packet rank", "is not kept at its level"));
            }
            let flow = config.keeps_flows().then(|| input.u32("packet flow")).transpose()?;
            entries.push(Entry { rank, time_ns, flow });
        }
        Ok(entries)
    }
}

impl PartialEq for Entries {
    fn eq(&self, other: &Self) -> bool {
        self.sorted() == other.sorted()
    }
}
