//! Agents that send the epochs of points, and remember what was acknowledged.

use std::collections::VecDeque;
use std::time::{Duration, Instant, SystemTime};

use twixt_measure::{Meter, MeterConfig, Sealed, UploadWriter};
use twixt_model::{
    Batch, Delay, EpochRule, FlowHash, Observation, PacketDigest, PointId, Timestamp,
};
use twixt_synopsis::{Purpose, find};

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
    segment: usize,
    delay_ns: i64,
    epoch_ns: i64,
    meter: Meter,
    first: i64,
    next: i64,
    /// Sealed, and not acknowledged.
    spool: VecDeque<Sealed>,
    pub(crate) acknowledged: u64,
}

impl Agent {
    /// Of one end of a segment, from an epoch on.
    pub(crate) fn new(segment: usize, end: usize, first: i64, observing: Observing) -> Self {
        let Observing { epoch_ns, rows } = observing;
        let point = points(segment)[end].clone();
        let config = MeterConfig {
            domain: "load".to_owned(),
            run: 1,
            guard: Delay::from_nanos(20_000_000),
            clock_bound: Some(Delay::from_nanos(1_000)),
            ..MeterConfig::new(PointId(point.clone()), EpochRule::every(epoch_ns).unwrap())
        };
        let settings = toml::toml! { rows = rows };
        let synopsis = (find(Purpose::Delay, "lda").unwrap().start)(&settings).unwrap();
        let meter = Meter::new(config, synopsis).unwrap();
        let delay_ns = end as i64 * (1_000_000 + 1_000 * segment as i64);
        let spool = VecDeque::new();
        Self {
            point,
            segment,
            delay_ns,
            epoch_ns,
            meter,
            first,
            next: first,
            spool,
            acknowledged: 0,
        }
    }

    /// Seals the epochs that were over at a moment.
    pub(crate) fn observe(&mut self, now_ns: i64) {
        // A meter waits for packets that come late.
        while (self.next + 1) * self.epoch_ns < now_ns {
            let packets: Vec<Observation> =
                (0..PACKETS).map(|number| self.packet(self.next, number)).collect();
            self.meter.observe(Batch::of(&packets));
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
        let url = format!("http://{address}{}", twixt_measure::UPLOAD_PATH);
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

    fn packet(&self, epoch: i64, number: i64) -> Observation {
        let left_ns = epoch * self.epoch_ns + number * (self.epoch_ns / PACKETS);
        // The same in every run: numbers count from the first epoch.
        let digest = ((epoch - self.first) * PACKETS + number) as u64 * 8_191 + self.segment as u64;
        Observation {
            time: Timestamp::from_nanos(left_ns + self.delay_ns),
            digest: PacketDigest(digest.wrapping_mul(0x9e37_79b9_7f4a_7c15)),
            flow: FlowHash(digest % 7),
            length: 100,
            ..Observation::default()
        }
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
