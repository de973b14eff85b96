//! Agents that send the epochs of points, and remember what was acknowledged.

use std::collections::VecDeque;
use std::time::{Duration, Instant, SystemTime};

use twixt_delivery::{UPLOAD_PATH, UploadWriter};
use twixt_measure::{Meter, MeterConfig, Sealed};
use twixt_model::{
    Batch, Delay, EpochRule, FlowHash, Observation, PacketDigest, PointId, Timestamp,
};
use twixt_synopsis::{AnySynopsis, Purpose, find};

use crate::serving::points;

/// Packets of an epoch.
const PACKETS: i64 = 40;

/// How agents observe.
#[derive(Clone, Copy)]
pub(crate) struct Observing {
    pub(crate) epoch_ns: i64,
    /// Size of the synopsis.
    pub(crate) rows: i64,
}

/// One agent: a point of a segment.
pub(crate) struct Agent {
    point: String,
    epoch_ns: i64,
    meter: Meter,
    next: i64,
    /// The packets of an epoch.
    packets: Box<dyn Fn(i64) -> Vec<Observation> + Send>,
    /// Sealed, and not acknowledged.
    spool: VecDeque<Sealed>,
    pub(crate) acknowledged: u64,
}

impl Agent {
    /// Of one end of a segment, from an epoch on.
    pub(crate) fn new(segment: usize, end: usize, first: i64, observing: Observing) -> Self {
        let Observing { epoch_ns, rows } = observing;
        let settings = toml::toml! { rows = rows };
        let synopsis = (find(Purpose::Delay, "lda").unwrap().start)(&settings).unwrap();
        let delay_ns = end as i64 * (1_000_000 + 1_000 * segment as i64);
        let packet = move |epoch: i64, number: i64| {
            let left_ns = epoch * epoch_ns + number * (epoch_ns / PACKETS);
            // The same in every run: numbers count from the first epoch.
            let digest = ((epoch - first) * PACKETS + number) as u64 * 8_191 + segment as u64;
            Observation {
                time: Timestamp::from_nanos(left_ns + delay_ns),
                digest: PacketDigest(digest.wrapping_mul(0x9e37_79b9_7f4a_7c15)),
                flow: FlowHash(digest % 7),
                length: 100,
                ..Observation::default()
            }
        };
        let packets = move |epoch| (0..PACKETS).map(|number| packet(epoch, number)).collect();
        Self::sending(points(segment)[end].clone(), (epoch_ns, first), synopsis, packets)
    }

    /// Of a point that sees such packets in epochs of this length, from one on.
    pub(crate) fn sending(
        point: String,
        (epoch_ns, first): (i64, i64),
        synopsis: Box<dyn AnySynopsis>,
        packets: impl Fn(i64) -> Vec<Observation> + Send + 'static,
    ) -> Self {
        let config = MeterConfig {
            domain: "load".to_owned(),
            run: 1,
            guard: Delay::from_nanos(20_000_000),
            clock_bound: Some(Delay::from_nanos(1_000)),
            ..MeterConfig::new(PointId(point.clone()), EpochRule::every(epoch_ns).unwrap())
        };
        let meter = Meter::new(config, synopsis).unwrap();
        let (packets, spool) = (Box::new(packets), VecDeque::new());
        Self { point, epoch_ns, meter, next: first, packets, spool, acknowledged: 0 }
    }

    /// Seals the epochs that were over at a moment.
    pub(crate) fn observe(&mut self, now_ns: i64) {
        // A meter waits for packets that come late.
        while (self.next + 1) * self.epoch_ns < now_ns {
            self.meter.observe(Batch::of(&(self.packets)(self.next)));
            self.next += 1;
        }
        self.spool.extend(std::iter::from_fn(|| self.meter.poll()));
    }

    /// Sends what is not acknowledged. How long that took, if it was.
    pub(crate) fn send(&mut self, client: &ureq::Agent, address: &str) -> Option<Duration> {
        const BATCH: usize = 64;
        if self.spool.is_empty() {
            return None;
        }
        let mut writer = UploadWriter::new();
        let count = self.spool.len().min(BATCH);
        for sealed in self.spool.iter().take(count) {
            writer.push(&sealed.to_bytes()).unwrap();
        }
        let started = Instant::now();
        let url = format!("http://{address}{UPLOAD_PATH}");
        let mut response = client.post(&url).send(&writer.into_body()).ok()?;
        response.body_mut().read_to_string().ok()?;
        if response.status() != 200 {
            return None;
        }
        self.spool.drain(..count);
        self.acknowledged += count as u64;
        Some(started.elapsed())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.spool.is_empty()
    }

    pub(crate) fn point(&self) -> &str {
        &self.point
    }
}

pub(crate) fn client() -> ureq::Agent {
    ureq::Agent::config_builder()
        .http_status_as_error(false)
        .timeout_global(Some(Duration::from_secs(30)))
        .build()
        .into()
}

pub(crate) fn now_ns() -> i64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_nanos() as i64
}
