//! Epochs of two points that saw the same packets.

use std::time::SystemTime;

use twixt_delivery::UploadWriter;
use twixt_measure::{Meter, MeterConfig, Sealed};
use twixt_model::{
    Batch, Delay, Detail, EpochRule, FlowHash, FlowKey, Observation, PacketDigest, PointId,
    Timestamp,
};
use twixt_synopsis::{Purpose, find};

pub(crate) const EPOCH_NS: i64 = 100_000_000;
/// From one point to the next.
pub(crate) const DELAY_NS: i64 = 1_000_000;
const PACKETS: i64 = 50;
const FLOWS: u64 = 7;

/// What an agent at a point seals.
#[derive(Clone, Debug)]
pub(crate) struct Agent {
    pub(crate) point: &'static str,
    pub(crate) domain: &'static str,
    pub(crate) run: u64,
    pub(crate) delay_ns: i64,
    /// Further delays differ by less than this.
    pub(crate) spread_ns: i64,
    pub(crate) purpose: Purpose,
    pub(crate) algorithm: &'static str,
    pub(crate) flows: u64,
}

impl Agent {
    pub(crate) fn at(point: &'static str) -> Self {
        let (purpose, algorithm) = (Purpose::Delay, "lda");
        let (domain, flows) = ("lab", FLOWS);
        Self { point, domain, run: 1, delay_ns: 0, spread_ns: 1, purpose, algorithm, flows }
    }

    pub(crate) fn after(self, delay_ns: i64) -> Self {
        Self { delay_ns, ..self }
    }

    pub(crate) fn spread(self, spread_ns: i64) -> Self {
        Self { spread_ns, ..self }
    }

    /// Of so many flows, with a packet of each in an epoch if there are many.
    pub(crate) fn of_flows(self, flows: u64) -> Self {
        Self { flows, ..self }
    }

    /// With a sample in place of sums.
    pub(crate) fn sampling(self) -> Self {
        self.keeping(Purpose::Delay, "sample")
    }

    /// With another synopsis.
    pub(crate) fn keeping(self, purpose: Purpose, algorithm: &'static str) -> Self {
        Self { purpose, algorithm, ..self }
    }

    /// So many epochs from this one on.
    pub(crate) fn seal(&self, first: i64, count: i64) -> Vec<Sealed> {
        let config = MeterConfig {
            domain: self.domain.to_owned(),
            run: self.run,
            guard: Delay::from_nanos(20_000_000),
            clock_bound: Some(Delay::from_nanos(1_000)),
            ..MeterConfig::new(PointId(self.point.to_owned()), EpochRule::every(EPOCH_NS).unwrap())
        };
        let settings = match self.algorithm {
            "lda" => toml::toml! { rows = 64 },
            _ => toml::Table::new(),
        };
        let algorithm = find(self.purpose, self.algorithm).unwrap();
        let synopsis = (algorithm.start)(&settings).unwrap();
        let mut meter = Meter::new(config, synopsis).unwrap();
        let mut sealed = Vec::new();
        // An epoch before and after, so that those in between are whole downstream as well.
        for epoch in first - 1..=first + count {
            let packets: Vec<Observation> =
                (0..self.packets()).map(|number| self.packet(epoch, number)).collect();
            let details: Vec<Detail> = packets.iter().map(|packet| detail(packet.flow)).collect();
            meter.observe(Batch { observations: &packets, details: &details });
            sealed.extend(std::iter::from_fn(|| meter.poll()));
        }
        meter.finish();
        sealed.extend(std::iter::from_fn(|| meter.poll()));
        sealed.retain(|sealed| (first..first + count).contains(&sealed.epoch.0));
        sealed
    }

    /// Packets in an epoch.
    fn packets(&self) -> i64 {
        PACKETS.max(self.flows as i64)
    }

    fn packet(&self, epoch: i64, number: i64) -> Observation {
        let left_ns = epoch * EPOCH_NS + number * (EPOCH_NS / self.packets());
        let digest = (epoch * self.packets() + number) as u64;
        // Squared, so that large delays are rare.
        let share = (digest.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as f64 / f64::from(1 << 24);
        let spread_ns = (share * share * self.spread_ns as f64) as i64;
        Observation {
            time: Timestamp::from_nanos(left_ns + self.delay_ns + spread_ns),
            digest: PacketDigest(digest.wrapping_mul(0x9e37_79b9_7f4a_7c15)),
            flow: FlowHash(digest % self.flows),
            length: 100,
            ..Observation::default()
        }
    }
}

/// The names of flows are numbers.
fn detail(flow: FlowHash) -> Detail {
    let source = [10, 0, (flow.0 >> 8) as u8, flow.0 as u8].into();
    Detail { key: FlowKey { source, ..FlowKey::default() }, ..Detail::default() }
}

/// The number of the present epoch.
pub(crate) fn epoch_now() -> i64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    now.as_nanos() as i64 / EPOCH_NS
}

/// The body of a request.
pub(crate) fn body(epochs: &[Sealed]) -> Vec<u8> {
    let mut writer = UploadWriter::new();
    for sealed in epochs {
        writer.push(&sealed.to_bytes()).unwrap();
    }
    writer.into_body()
}
