//! A machine with an agent: its disk, its clock, and the process as long as it lives.

use std::collections::BTreeSet;
use std::path::PathBuf;

use twixt_agent::rehearsal::Moment;
use twixt_agent::stepped::{Response, SteppedAgent, Upload, WrittenEpochs};
use twixt_agent::{AgentConfig, AgentError, DeliveryConfig, PointConfig, SpoolConfig};
use twixt_capture::LiveOptions;
use twixt_model::{DigestHash, DigestProfile, EpochRule, Timestamp, mix};
use twixt_store::SimulatedDisk;
use twixt_synopsis::{AnySynopsis, Purpose, find};
use twixt_wire::{Digester, HashKey};

use crate::clock::MachineClock;
use crate::plan::{Plan, SECOND};
use crate::traffic::{Passing, Traffic};

/// Small enough that a story fills it.
const SPOOL_BYTES_MAX: u64 = 1 << 17;
/// Cells of an LDA: epochs have some dozens of packets.
const LDA_ROWS: i64 = 16;
/// While the kernel drops frames, it drops one in so many.
const DROPS_ONE_IN: u64 = 3;

/// A machine with an agent.
pub(crate) struct AgentMachine {
    config: AgentConfig,
    /// Its points, by their number along the path.
    pub(crate) points: Vec<usize>,
    pub(crate) disk: SimulatedDisk,
    pub(crate) clock: MachineClock,
    pub(crate) process: Option<SteppedAgent>,
    /// Which start of the process: what was planned for an earlier one does not happen.
    pub(crate) life: u64,
    pub(crate) in_flight: Option<InFlight>,
    /// When each spool may be sent from again.
    ready_ns: Vec<i64>,
    next_spool: usize,
    /// All packets before were seen, or passed while the process was not there.
    observed_ns: i64,
    pub(crate) partitioned_until_ns: i64,
    /// Until when it is of a newer release than the collector.
    pub(crate) newer_until_ns: i64,
    /// Packets that its kernel dropped.
    pub(crate) dropped: BTreeSet<Passing>,
    pub(crate) suspended_until_ns: i64,
    pub(crate) drops_until_ns: i64,
    /// Epochs that processes before this one discarded for lack of room.
    discarded_before: u64,
    /// Bits that changed on its disk: each may cost an epoch.
    pub(crate) changed_bits: u64,
}

/// A request without a response.
pub(crate) struct InFlight {
    pub(crate) request: u64,
    upload: Upload,
}

/// The name of a point.
pub(crate) fn point_name(point: usize) -> String {
    format!("point-{point}")
}

impl AgentMachine {
    pub(crate) fn new(plan: &Plan, agent: usize, disk_seed: u64) -> Self {
        let points = plan.agents[agent].clone();
        Self {
            config: config(plan, &points),
            points,
            disk: SimulatedDisk::new(disk_seed),
            clock: MachineClock::new(plan.start_ns),
            process: None,
            life: 0,
            in_flight: None,
            ready_ns: Vec::new(),
            next_spool: 0,
            observed_ns: 0,
            partitioned_until_ns: 0,
            newer_until_ns: 0,
            dropped: BTreeSet::new(),
            suspended_until_ns: 0,
            drops_until_ns: 0,
            discarded_before: 0,
            changed_bits: 0,
        }
    }

    pub(crate) fn start(&mut self, now_ns: i64) -> Result<(), AgentError> {
        self.life += 1;
        let clocks = (self.clock.steady(now_ns), self.clock.wall(now_ns));
        let process = SteppedAgent::open(&self.config, &self.disk.mount(), clocks)?;
        self.ready_ns = vec![now_ns; process.spools()];
        self.observed_ns = now_ns;
        self.process = Some(process);
        Ok(())
    }

    /// The process ends at once, or its machine loses power.
    pub(crate) fn end(&mut self, is_crash: bool) {
        self.discarded_before = self.discarded();
        self.life += 1;
        self.in_flight = None;
        // First: the process must not tidy up.
        match is_crash {
            true => self.disk.crash(),
            false => self.disk.kill(),
        }
        self.process = None;
    }

    /// Packet threads take what passed since the last time.
    pub(crate) fn observe(&mut self, now_ns: i64, traffic: &Traffic) {
        let Some(process) = &mut self.process else { return };
        for (index, point) in self.points.iter().enumerate() {
            let mut frames = traffic.frames(*point, self.observed_ns..now_ns);
            let passed = frames.len();
            let is_dropped = |at_ns: i64| {
                at_ns < self.drops_until_ns
                    && mix(at_ns.cast_unsigned()).is_multiple_of(DROPS_ONE_IN)
            };
            let dropped = frames.iter().filter(|(at_ns, _)| is_dropped(*at_ns));
            self.dropped.extend(dropped.map(|(at_ns, _)| (*point, *at_ns)));
            frames.retain(|(at_ns, _)| !is_dropped(*at_ns));
            let dropped = (passed - frames.len()) as u64;
            let stamped = |(at_ns, frame)| (self.clock.wall(at_ns), frame);
            process.observe(
                index,
                Moment {
                    steady: self.clock.steady(now_ns),
                    wall: self.clock.wall(now_ns),
                    frames: frames.into_iter().map(stamped).collect::<Vec<(Timestamp, _)>>(),
                    dropped,
                },
            );
        }
        self.observed_ns = now_ns;
    }

    /// Nothing passes any more: packet threads end and seal what is open.
    pub(crate) fn stop_observing(&mut self) {
        let points = self.points.len();
        if let Some(process) = &mut self.process {
            (0..points).for_each(|point| process.stop_observing(point));
        }
    }

    /// What passed until then was not seen.
    pub(crate) const fn skip_packets(&mut self, now_ns: i64) {
        self.observed_ns = now_ns;
    }

    pub(crate) fn seal(&mut self) -> Vec<WrittenEpochs> {
        self.process.as_mut().map(SteppedAgent::seal).unwrap_or_default()
    }

    /// What a sender posts next, if one may.
    pub(crate) fn send(&mut self, now_ns: i64, request: u64) -> Option<Vec<u8>> {
        let process = self.process.as_mut()?;
        if self.in_flight.is_some() {
            return None;
        }
        for _ in 0..self.ready_ns.len() {
            let spool = self.next_spool % self.ready_ns.len();
            self.next_spool = spool + 1;
            if self.ready_ns[spool] <= now_ns
                && let Some(upload) = process.next_upload(spool)
            {
                let body = upload.body.clone();
                self.in_flight = Some(InFlight { request, upload });
                return Some(body);
            }
        }
        None
    }

    /// A response came to the request that is in flight; `false` if it is another one.
    pub(crate) fn settle(&mut self, now_ns: i64, request: u64, response: Response<'_>) -> bool {
        let Some(process) = &mut self.process else { return false };
        let Some(flight) = self.in_flight.take_if(|flight| flight.request == request) else {
            return false;
        };
        let pause = process.settle(&flight.upload, response).unwrap_or_default();
        let spool = flight.upload.spool();
        self.ready_ns[spool] = now_ns + i64::try_from(pause.as_nanos()).unwrap_or(i64::MAX);
        true
    }

    /// Epochs that wait in the spools.
    pub(crate) fn waiting(&self) -> u64 {
        self.process.as_ref().map_or(0, |process| process.counts().epochs)
    }

    /// Epochs that may be lost though they were durable: those that were discarded for lack of room,
    /// and those that a changed bit hit.
    pub(crate) fn lost_max(&self) -> u64 {
        self.discarded() + self.changed_bits
    }

    fn discarded(&self) -> u64 {
        let counts = self.process.as_ref().map(SteppedAgent::counts).unwrap_or_default();
        self.discarded_before + counts.discarded
    }

    /// What is wrong with the bounds of the spools.
    pub(crate) fn check_bounds(&self) -> Result<(), String> {
        let bytes = self.process.as_ref().map_or(0, |process| process.counts().bytes);
        match bytes > SPOOL_BYTES_MAX {
            true => Err(format!("the spools have {bytes} bytes, {SPOOL_BYTES_MAX} are allowed")),
            false => Ok(()),
        }
    }
}

fn config(plan: &Plan, points: &[usize]) -> AgentConfig {
    let key = HashKey::from_seed(1);
    let point = |point: &usize| PointConfig {
        name: point_name(*point),
        interface: "none".to_owned(),
        options: LiveOptions::default(),
        filter: None,
        outer: false,
        threads: 1,
    };
    AgentConfig {
        domain: "lab".to_owned(),
        rule: EpochRule::every(SECOND).expect("a second is a length"),
        guard: None,
        digester: Digester::new(DigestProfile::Default, DigestHash::Xxh3, 32, key),
        classes: Vec::new(),
        synopses: plan.algorithms.iter().map(|name| synopsis(name)).collect(),
        points: points.iter().map(point).collect(),
        spool: SpoolConfig { folder: PathBuf::from("/spool"), bytes_max: SPOOL_BYTES_MAX },
        delivery: DeliveryConfig::default(),
        metrics: None,
        user: None,
    }
}

fn synopsis(name: &str) -> Box<dyn AnySynopsis> {
    let algorithm = find(Purpose::Delay, name).expect("an algorithm of the registry");
    let mut settings = toml::Table::new();
    if name == "lda" {
        settings.insert("banks".to_owned(), 1.into());
        settings.insert("rows".to_owned(), LDA_ROWS.into());
    }
    (algorithm.start)(&settings).expect("these settings make sense")
}
