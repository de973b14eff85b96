//! The referee of reordering: every flow is followed.

use std::collections::{HashMap, VecDeque};

use twixt_model::{Detail, FlowHash, FlowKey, Observation, ReorderEstimate};

use super::config::{DEFINITION_OPTION, Judging, PREFIX_OPTION, PREFIX6_OPTION};
use super::handshake::Handshakes;
use super::judge::{DataPacket, TcpSegment, Tracker, Verdict};
use super::tally::{self, Tallies, Tally};
use crate::codec::{DecodeError, Reader, Writer};
use crate::question::Question;
use crate::synopsis::{ConfigOption, Needs, OnePoint, Reading, SplitMerge, Synopsis};
use crate::totals::Totals;

/// The referee. Memory grows with flows.
#[derive(Clone, Debug, PartialEq)]
pub struct ReorderExact {
    config: Judging,
    totals: Totals,
    tallies: Tallies,
    flows: HashMap<FlowHash, Followed>,
    handshakes: Handshakes,
}

/// Holes of a flow that are remembered: more than a loss of 5 % leaves open in 500 packets in flight.
const HOLES_MAX: usize = 32;
/// How far back is looked for the packet that overtook another.
const EXTENT_MAX: usize = 64;

#[derive(Clone, Debug, PartialEq)]
struct Followed {
    tracker: Tracker<HOLES_MAX>,
    /// Sequence numbers of the last packets with data, oldest first.
    recent: VecDeque<u32>,
}

impl Followed {
    fn remember(&mut self, packet: &DataPacket) {
        if self.recent.len() >= EXTENT_MAX {
            self.recent.pop_front();
        }
        self.recent.push_back(packet.sequence);
    }

    /// Packets from the earliest that is ahead of this one, RFC 4737 section 4.2.3.
    fn extent(&self, packet: &DataPacket) -> u32 {
        let ahead = |&sequence: &u32| (sequence.wrapping_sub(packet.sequence) as i32) > 0;
        let earliest = self.recent.iter().position(ahead).unwrap_or(self.recent.len());
        (self.recent.len() - earliest) as u32
    }
}

impl ReorderExact {
    fn see(&mut self, flow: FlowHash, key: &FlowKey, packet: &DataPacket) -> Tally {
        let mut tally = Tally::default();
        let Some(followed) = self.flows.get_mut(&flow) else {
            let tracker = Tracker::new(packet, self.handshakes.reaction_ns(key));
            let recent = VecDeque::from([packet.sequence]);
            self.flows.insert(flow, Followed { tracker, recent });
            tally.count(Verdict::InOrder);
            return tally;
        };
        let verdict = followed.tracker.judge(packet, self.config.definition());
        tally.count(verdict);
        if verdict == Verdict::OutOfOrder {
            tally.extent_max = followed.extent(packet);
            tally.extent_sum = u64::from(tally.extent_max);
        }
        if !matches!(verdict, Verdict::Ignored | Verdict::Duplicate) {
            followed.remember(packet);
        }
        tally
    }
}

impl Synopsis for ReorderExact {
    const NAME: &'static str = "exact";
    const TAG: u16 = 48;
    const SUMMARY: &'static str = "every flow tracked; memory grows with flows";
    const NEEDS: Needs =
        Needs { digest: false, flow: true, detail: true, group: false, exchange: false };
    const OPTIONS: &'static [ConfigOption] = &[PREFIX_OPTION, PREFIX6_OPTION, DEFINITION_OPTION];
    const PAGE: &'static str = "reorder";
    // A flow that is split is judged in each part without the other.
    const SPLIT_MERGE: SplitMerge = SplitMerge::Expected;
    const VERSION: u8 = tally::VERSION;
    type Config = Judging;

    fn sized(_memory_bytes: u64) -> Option<Judging> {
        None
    }

    fn new(config: &Judging) -> Self {
        Self {
            config: config.clone(),
            totals: Totals::default(),
            tallies: Tallies::unbounded(),
            flows: HashMap::new(),
            handshakes: Handshakes::new(None),
        }
    }

    fn config(&self) -> &Judging {
        &self.config
    }

    fn update(&mut self, observation: &Observation) {
        self.totals.add(observation.length);
    }

    fn update_detailed(&mut self, observation: &Observation, detail: &Detail) {
        self.totals.add(observation.length);
        let (time, key) = (observation.time, &detail.key);
        match TcpSegment::of(time, detail) {
            TcpSegment::Other => {}
            TcpSegment::Opening { tcp, answer } => {
                self.handshakes.opened(time, key, &tcp, answer);
                self.flows.remove(&observation.flow);
            }
            TcpSegment::Acknowledgement(tcp) => self.handshakes.acknowledged(time, key, &tcp),
            TcpSegment::Data(packet) => {
                let tally = self.see(observation.flow, key, &packet);
                self.tallies.add(self.config.prefix_of(key), &tally);
            }
        }
    }

    fn merge(&mut self, other: &Self) {
        self.totals.merge(other.totals);
        self.tallies.merge(&other.tallies);
    }

    fn totals(&self) -> Totals {
        self.totals
    }

    fn state_bytes(&self) -> u64 {
        let each = size_of::<(FlowHash, Followed)>() + EXTENT_MAX * size_of::<u32>();
        (size_of::<Totals>() + self.flows.len() * each) as u64
            + self.handshakes.state_bytes()
            + self.tallies.state_bytes()
    }

    fn encode(&self, out: &mut Writer) {
        self.config.encode(out);
        self.totals.encode(out);
        self.tallies.encode(out);
    }

    fn decode(input: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Self::decode_for(input, Reading { version: Self::VERSION, flows: None })
    }

    fn decode_for(input: &mut Reader<'_>, reading: Reading<'_>) -> Result<Self, DecodeError> {
        let config = Judging::decode(input)?;
        let totals = Totals::decode(input)?;
        let tallies = Tallies::decode(usize::MAX, input, reading.version)?;
        Ok(Self { totals, tallies, ..Self::new(&config) })
    }
}

impl OnePoint for ReorderExact {
    type Conclusion = ReorderEstimate;

    fn conclude(&self, _question: &Question<'_>) -> Vec<ReorderEstimate> {
        self.tallies.conclude(true)
    }

    fn cut(&mut self) -> Self {
        let fresh = Self::new(&self.config);
        let totals = std::mem::replace(&mut self.totals, fresh.totals);
        let tallies = std::mem::replace(&mut self.tallies, fresh.tallies);
        Self { totals, tallies, ..Self::new(&self.config) }
    }
}
