//! The story of the demo: a queue that a backup fills.

use anyhow::Context;
use twixt_model::Delay;
use twixt_model::quantity::{BitRate, Nanoseconds, PacketRate};
use twixt_sim::{Arrival, Config, DelayModel, FlowSize, Loss, PacketSize, Side, Simulation};

use crate::output::units;

/// What happens, in numbers; the text that users read is made from them.
pub(super) struct Scenario {
    /// Everyday traffic.
    usual: Config,
    /// What comes on top of it for a while.
    backup: Config,
    drain: BitRate,
    queue_packets: u32,
    /// Share of packets that is lost whatever the queue does.
    damaged: f64,
}

/// When the backup begins, after everything else.
const BACKUP_AFTER: Delay = Delay::from_nanos(600_000_000);
/// The backup's numbers are drawn apart from the others.
const BACKUP_SEED: u64 = 0x6261_636b_7570; // "backup"

impl Scenario {
    /// The same for everybody with this seed.
    pub(super) fn new(seed: u64) -> Self {
        let usual = Config {
            seed,
            flows: 3_000,
            rate: PacketRate(200_000),
            packets: Some(400_000),
            propagation: Nanoseconds(0),
            ..Config::default()
        };
        let backup = Config {
            seed: seed ^ BACKUP_SEED,
            start: usual.start + BACKUP_AFTER,
            flows: 8,
            rate: PacketRate(24_000),
            packets: Some(14_400),
            flow_size: FlowSize::Fixed { packets: 1_800 },
            packet_size: PacketSize::Fixed { bytes: 1_500 },
            ..Config::default()
        };
        Self { usual, backup, drain: BitRate(720_000_000), queue_packets: 4_000, damaged: 0.000_2 }
    }

    /// Sends both through the queue.
    pub(super) fn simulate(&self) -> anyhow::Result<Simulation> {
        let segment = Config {
            delay: DelayModel::DropTail { drain: self.drain, queue: self.queue_packets },
            propagation: Nanoseconds(200_000),
            loss: Loss::Uniform { rate: self.damaged },
            ..self.usual.clone()
        };
        let mut arrivals = entering(&self.usual)?;
        arrivals.extend(entering(&self.backup)?);
        Simulation::with_arrivals(&segment, arrivals).context("the demo's segment")
    }

    /// The story in words.
    pub(super) fn words(&self) -> String {
        let begins_s = BACKUP_AFTER.as_nanos() as f64 / 1e9;
        let backup_s = self.backup.packets.unwrap_or(0) as f64 / self.backup.rate.0 as f64;
        format!(
            "A simulated router sends {} flows out of a {} port, with a queue of up to\n\
             {} packets. At {begins_s:.1} s a backup starts, and ends at {:.1} s: together they\n\
             exceed the port's capacity. One observation point sees packets before the\n\
             queue, one behind it; no packet is added or changed. What happens betwixt the two?\n",
            units::count(u64::from(self.usual.flows)),
            self.drain,
            units::count(u64::from(self.queue_packets)),
            begins_s + backup_s,
        )
    }
}

/// The packets of a configuration as they enter the segment.
fn entering(config: &Config) -> anyhow::Result<Vec<Arrival>> {
    let simulation = Simulation::run(config).context("the demo's traffic")?;
    let arrival = |sighting: twixt_sim::PointPacket| {
        let packet = &simulation.packets()[sighting.packet as usize];
        Arrival {
            time: sighting.time,
            key: simulation.flow_key(packet.flow),
            length: packet.length,
            frame: u64::from(sighting.packet),
        }
    };
    Ok(simulation.sightings(Side::Upstream).map(arrival).collect())
}
