//! An agent that is stepped from outside: frames, clocks, disk and replies are handed in, and nothing
//! happens by itself. The parts are those of [`Agent`](crate::Agent); only its threads, interfaces and
//! connections are missing. For simulations.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::Duration;

use twixt_delivery::{Reply, ResponseParts};
use twixt_model::{Timestamp, mix};
use twixt_observe::SealedPart;
use twixt_store::SharedDisk;

use crate::agent::{AgentError, PARTS_MAX, newest_run};
use crate::clock::ClockQuality;
use crate::config::AgentConfig;
use crate::delivery::{CollectorTrouble, Delivery, body_of};
use crate::metrics::{Metrics, PointMetrics};
use crate::rehearsal::{Moment, ScriptedPoint};
use crate::sealing::Sealing;
pub use crate::sealing::WrittenEpochs;
use crate::spool::{Now, SpoolCounts, Spooled, Spools};

/// An agent without threads, interfaces and connections.
pub struct SteppedAgent {
    points: Vec<ScriptedPoint>,
    parts: Receiver<(usize, SealedPart)>,
    sealing: Sealing,
    spools: Spools,
    deliveries: Vec<Delivery>,
    trouble: CollectorTrouble,
}

/// A request that was not answered yet.
#[derive(Clone, Debug)]
pub struct Upload {
    spool: usize,
    batch: Vec<Spooled>,
    /// What is posted.
    pub body: Vec<u8>,
}

impl Upload {
    /// Which spool it is from.
    #[must_use]
    pub const fn spool(&self) -> usize {
        self.spool
    }
}

/// What came back.
#[derive(Clone, Copy, Debug)]
pub enum Response<'a> {
    /// A response, from the collector or from something in between.
    Http(ResponseParts<'a>),
    /// The connection failed, or nothing came in time.
    Nothing,
}

impl SteppedAgent {
    /// Opens the spools, and begins to observe when the clocks show this: the steady one and the
    /// system's.
    ///
    /// # Errors
    /// When the configuration makes no sense, or the disk refuses.
    pub fn open(
        config: &AgentConfig,
        disk: &SharedDisk,
        (steady, wall): (Duration, Timestamp),
    ) -> Result<Self, AgentError> {
        let metrics = Metrics::new();
        let (out, parts) = sync_channel(PARTS_MAX);
        let told: Vec<PointMetrics> =
            config.points.iter().map(|point| metrics.point(&point.name, point.threads)).collect();
        let begin = |(index, told): (usize, &PointMetrics)| {
            let newest = newest_run(disk, config, &config.points[index])?;
            ScriptedPoint::begin(config, index, (steady, wall), newest, out.clone(), told.clone())
        };
        let points = told.iter().enumerate().map(begin).collect::<Result<Vec<_>, _>>()?;
        let names = config.points.iter().map(|point| point.name.as_str());
        let (spool, now): (_, Now) = (&config.spool, Arc::new(move || wall));
        let spools = Spools::open_on(disk, &now, &spool.folder, names, spool.bytes_max)?;
        let seed = points.first().map_or(0, ScriptedPoint::run);
        let deliveries = spools.iter().zip(0_u64..).map(|((name, _), number)| {
            Delivery::new(name, mix(seed ^ number), metrics.sender.clone())
        });
        Ok(Self {
            deliveries: deliveries.collect(),
            sealing: Sealing::new(config, told),
            trouble: CollectorTrouble::default(),
            points,
            parts,
            spools,
        })
    }

    /// The thread of a point takes a block of frames.
    pub fn observe(&mut self, point: usize, moment: Moment) {
        self.points[point].step(Some(moment));
    }

    /// The thread of a point is told to stop: all that is open is sealed.
    pub fn stop_observing(&mut self, point: usize) {
        self.points[point].step(None);
    }

    /// Epochs that are whole are written to the spools.
    pub fn seal(&mut self) -> Vec<WrittenEpochs> {
        self.parts.try_iter().for_each(|(point, part)| self.sealing.add(point, part));
        self.sealing.store(&self.spools, ClockQuality::default())
    }

    /// How many spools there are: those of the points come first.
    #[must_use]
    pub fn spools(&self) -> usize {
        self.deliveries.len()
    }

    /// What a sender posts next of a spool, if anything can be read.
    pub fn next_upload(&mut self, spool: usize) -> Option<Upload> {
        let (_, own) = self.spools.iter().nth(spool)?;
        let batch = self.deliveries[spool].batch(own);
        let body = body_of(&batch).ok()?;
        (!batch.is_empty()).then_some(Upload { spool, batch, body })
    }

    /// What the sender does about a response; how long it waits before the next upload.
    pub fn settle(&mut self, upload: &Upload, response: Response<'_>) -> Option<Duration> {
        let (_, spool) = self.spools.iter().nth(upload.spool)?;
        let reply = match response {
            Response::Http(parts) => Reply::read(parts, upload.batch.len()),
            Response::Nothing => {
                Reply::Unavailable { after: None, reason: "no response".to_owned() }
            }
        };
        let delivery = &mut self.deliveries[upload.spool];
        delivery.settle(spool, &upload.batch, reply, &mut self.trouble)
    }

    /// What the spools hold, and what they lost.
    #[must_use]
    pub fn counts(&self) -> SpoolCounts {
        self.spools.counts()
    }
}
