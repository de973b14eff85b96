//! The machine with the collector: its disk, its clock, and the process as long as it lives.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use twixt_collector::stepped::SteppedCollector;
use twixt_collector::{CollectorConfig, CollectorError, EPOCHS_FOLDER, EventSink, WallClock};
use twixt_engine::{EngineConfig, EngineEvent, SegmentConfig};
use twixt_history::HistoryConfig;
use twixt_model::{PointId, Segment};
use twixt_store::{Log, Options, SimulatedDisk};

use crate::agent_machine::point_name;
use crate::clock::MachineClock;
use crate::plan::{Plan, SECOND};

const DIRECTORY: &str = "/collector";

/// The machine with the collector.
pub(crate) struct CollectorMachine {
    config: CollectorConfig,
    pub(crate) disk: SimulatedDisk,
    pub(crate) clock: MachineClock,
    shown: WallClock,
    pub(crate) process: Option<SteppedCollector>,
    /// Which start of the process: what was planned for an earlier one does not happen.
    pub(crate) life: u64,
    pub(crate) is_commit_planned: bool,
    /// Until when it is of a newer release than the agents.
    pub(crate) newer_until_ns: i64,
}

/// Estimates are read from the history.
struct Nowhere;

impl EventSink for Nowhere {
    fn take(&mut self, _: &EngineEvent) -> io::Result<()> {
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl CollectorMachine {
    pub(crate) fn new(plan: &Plan, disk_seed: u64) -> Self {
        let shown = WallClock::standing();
        Self {
            config: config(plan, &shown),
            disk: SimulatedDisk::new(disk_seed),
            clock: MachineClock::new(plan.start_ns),
            shown,
            process: None,
            life: 0,
            is_commit_planned: false,
            newer_until_ns: 0,
        }
    }

    pub(crate) fn start(&mut self, now_ns: i64) -> Result<(), CollectorError> {
        self.life += 1;
        self.show(now_ns);
        let config = self.config.clone();
        let process = SteppedCollector::open(config, &self.disk.mount(), Box::new(Nowhere))?;
        self.process = Some(process);
        Ok(())
    }

    /// The process ends at once, or its machine loses power.
    pub(crate) fn end(&mut self, is_crash: bool) {
        self.life += 1;
        self.is_commit_planned = false;
        // First: the process must not tidy up.
        match is_crash {
            true => self.disk.crash(),
            false => self.disk.kill(),
        }
        self.process = None;
    }

    /// The process, with the time that its clock shows.
    pub(crate) fn at(&mut self, now_ns: i64) -> Option<&mut SteppedCollector> {
        self.show(now_ns);
        self.process.as_mut()
    }

    /// What is stored, whatever is wrong with the disk at present.
    pub(crate) fn stored(&self) -> Log {
        log_on(&self.disk)
    }

    /// What would be left of it if the machine lost power now, and all that is not durable.
    pub(crate) fn durable(&self) -> Log {
        log_on(&self.disk.durable_copy())
    }

    pub(crate) fn check_bounds(&self) -> Result<(), String> {
        let Some(process) = &self.process else { return Ok(()) };
        let (held, most) = process.held_bytes();
        match held > most {
            true => Err(format!("the collector holds {held} bytes, {most} are allowed")),
            false => Ok(()),
        }
    }

    fn show(&self, now_ns: i64) {
        self.shown.set(self.clock.wall(now_ns), self.clock.steady(now_ns));
    }
}

fn config(plan: &Plan, clock: &WallClock) -> CollectorConfig {
    let listen = "127.0.0.1:1".parse().expect("an address");
    let config = CollectorConfig::new(listen, PathBuf::from(DIRECTORY));
    CollectorConfig {
        engine: EngineConfig { segments: segments(plan), ..config.engine.clone() },
        history: HistoryConfig {
            seal_wait_ns: 8 * SECOND,
            seal_idle_ns: 2 * SECOND,
            ..config.history
        },
        resume_wait: Duration::from_secs(10),
        clock: clock.clone(),
        ..config
    }
}

fn log_on(disk: &SimulatedDisk) -> Log {
    let folder = PathBuf::from(DIRECTORY).join(EPOCHS_FOLDER);
    Log::on(disk.view(), folder, Options::default())
}

/// The path from point to point.
pub(crate) fn segments(plan: &Plan) -> Vec<SegmentConfig> {
    let point = |point: usize| PointId(point_name(point));
    let segment = |upstream: usize| SegmentConfig {
        segment: Segment { upstream: point(upstream), downstream: point(upstream + 1) },
        class: None,
    };
    (0..plan.points() - 1).map(segment).collect()
}
