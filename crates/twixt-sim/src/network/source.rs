//! Traffic without end: laps of flows, one after the other.
//!
//! A lap is a trace as [`crate::Simulation`] draws it, which is a loop: packets are as likely at one time as
//! at any other, so that laps follow each other without a seam.

use twixt_model::{FlowKey, mix};

use super::{LinkCrossing, NetworkError, NetworkPacket, TrafficConfig};
use crate::arrivals::schedule;
use crate::config::FLOWS_MAX;
use crate::crossing::packets_of;
use crate::flows::synthetic_key;
use crate::random::{Purpose, Stream};
use crate::{Config, SimulatedPacket};

/// Flows of a lap at most: so many five-tuples are set aside for each.
pub(super) const FLOWS_PER_LAP_MAX: u32 = 4_096;

/// One traffic of the configuration.
#[derive(Debug)]
pub(super) struct Source {
    config: TrafficConfig,
    seed: u64,
    index: usize,
    /// All sources of the network.
    sources: usize,
    lap: u64,
    packets: Vec<SimulatedPacket>,
    keys: Vec<FlowKey>,
    /// The next of the packets.
    next: usize,
    /// When the lap began, and when it ends.
    begins_ns: i64,
    ends_ns: i64,
}

impl Source {
    pub(super) fn new(config: &TrafficConfig, seed: u64, index: usize, sources: usize) -> Self {
        let begins_ns = config.during_ns.as_ref().map_or(0, |during| during.start);
        Self {
            config: config.clone(),
            seed,
            index,
            sources,
            lap: 0,
            packets: Vec::new(),
            keys: Vec::new(),
            next: 0,
            begins_ns,
            ends_ns: begins_ns,
        }
    }

    /// Sends what is due before a time.
    pub(super) fn take_until(
        &mut self,
        until_ns: i64,
        out: &mut Vec<LinkCrossing>,
    ) -> Result<(), NetworkError> {
        let stops_ns = self.config.during_ns.as_ref().map_or(i64::MAX, |during| during.end);
        let until_ns = until_ns.min(stops_ns);
        loop {
            while let Some(&packet) = self.packets.get(self.next) {
                let entered_ns = self.begins_ns + packet.entered_ns();
                if entered_ns >= until_ns {
                    return Ok(());
                }
                self.next += 1;
                let packet = self.packet(packet);
                out.push(LinkCrossing { packet, hop: 0, entered_ns, left_ns: None });
            }
            if self.ends_ns >= until_ns {
                return Ok(());
            }
            self.begin_lap()?;
        }
    }

    fn begin_lap(&mut self) -> Result<(), NetworkError> {
        // Whatever other traffic there is.
        let seed = mix(self.seed ^ mix((self.index as u64) << 32 | self.lap));
        let config = Config {
            seed,
            flows: self.config.flows,
            rate: self.config.rate,
            packets: None,
            flow_size: self.config.flow_size,
            burst: self.config.burst,
            packet_size: self.config.packet_size,
            ..Config::default()
        };
        self.packets = packets_of(&config, &schedule(&config)?);
        self.next = 0;
        self.begins_ns = self.ends_ns;
        let lap_ns = self.packets.len() as f64 / self.config.rate.0 as f64 * 1e9;
        self.ends_ns = self.begins_ns + lap_ns as i64;
        self.keys = self.draw_keys(seed);
        self.lap += 1;
        Ok(())
    }

    /// Numbers flows of all sources and laps; they repeat after more than 4000 laps.
    const fn first_key(&self) -> u64 {
        (self.lap * self.sources as u64 + self.index as u64) * FLOWS_PER_LAP_MAX as u64
    }

    fn draw_keys(&self, seed: u64) -> Vec<FlowKey> {
        let mut stream = Stream::new(seed, Purpose::FlowKey);
        let first = self.first_key();
        let (protocol, destination_port) = self.config.service;
        (0..u64::from(self.config.flows))
            .map(|flow| {
                let number = (first + flow) % u64::from(FLOWS_MAX);
                let key = synthetic_key(number as u32, &mut stream);
                FlowKey { protocol, destination_port, ..key }
            })
            .collect()
    }

    fn packet(&self, packet: SimulatedPacket) -> NetworkPacket {
        let number = (self.lap * self.sources as u64 + self.index as u64) << 32;
        NetworkPacket {
            key: self.keys[packet.flow as usize],
            traffic: self.index,
            class: self.config.class,
            hosts: mix(self.seed ^ mix(number | u64::from(packet.flow))),
            packet,
        }
    }
}
