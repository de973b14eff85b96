//! A minute as fast as it can be: points and collector step by step in one thread, on a disk in memory.

use std::path::PathBuf;
use std::time::Duration;

use twixt_collector::stepped::{SteppedCollector, SteppedResponse};
use twixt_collector::{CollectorConfig, WallClock};
use twixt_delivery::ResponseParts;
use twixt_engine::EngineConfig;
use twixt_model::{Delay, Timestamp};
use twixt_sim::Network;
use twixt_store::SimulatedDisk;

use crate::error::DemoError;
use crate::points::Points;
use crate::scenario::{InjectedIncidents, Scenario, segment_configs};
use crate::summary::{DemoSummary, TrafficCount, question, summarise};
use crate::upload::{Upload, UploadOutcome, uploads};
use crate::watching::Watching;
use crate::{EPOCH_NS, LEAD_SECONDS, SUMMARY_SECONDS};

/// What the summary begins with: 2024-01-01T00:00:00Z.
const START: Timestamp = Timestamp::from_nanos(1_704_067_200_000_000_000);
/// What the network begins with.
const NETWORK_START: Timestamp = Timestamp::from_nanos(START.as_nanos() - LEAD_SECONDS * EPOCH_NS);
/// Epochs are paired when the next ones are there too, and packets in flight have arrived.
const BEYOND_SECONDS: i64 = 4;
/// All that is simulated.
const SECONDS: i64 = LEAD_SECONDS + SUMMARY_SECONDS + BEYOND_SECONDS;
const _: () = assert!(SECONDS % SEND_SECONDS == 0, "the last ones are sent too");
/// Agents send this often, in simulated time.
const SEND_SECONDS: i64 = 3;
/// Steps in which a collector without a past is ready.
const STARTING_STEPS: usize = 3;

/// Simulates, measures and judges a minute.
///
/// # Errors
///
/// If something refuses that should not.
pub fn run_once(seed: u64, incidents: InjectedIncidents) -> Result<DemoSummary, DemoError> {
    let scenario = Scenario::new(seed, incidents, 1);
    let mut network = Network::new(&scenario.network)?;
    let mut points = Points::new(seed, NETWORK_START)?;
    let watching = Watching::new(SECONDS as u64);
    let mut collector = InMemory::open(&watching)?;
    let mut traffic = TrafficCount::default();
    let mut sealed = Vec::new();
    for second in 1..=SECONDS {
        let steps = network.advance(second * EPOCH_NS)?;
        traffic.add(&steps);
        sealed.extend(points.observe(&steps, second * EPOCH_NS));
        if second % SEND_SECONDS == 0 {
            collector.take(&uploads(&sealed)?, second)?;
            sealed.clear();
        }
    }
    let answer = collector.collector.answer(&question(START))?;
    let watched = watching.lock();
    Ok(summarise(&answer.rows, &watched, &scenario, traffic, START))
}

/// A collector in memory, whose clock is that of the simulation.
struct InMemory {
    collector: SteppedCollector,
    clock: WallClock,
    requests: u64,
}

impl InMemory {
    fn open(watching: &Watching) -> Result<Self, DemoError> {
        let clock = WallClock::standing();
        let listen = ([127, 0, 0, 1], 0).into();
        let config = CollectorConfig::new(listen, PathBuf::from("/collector"));
        let engine = EngineConfig { segments: segment_configs(), ..config.engine.clone() };
        let config = CollectorConfig { engine, clock: clock.clone(), ..config };
        let disk = SimulatedDisk::new(0).mount();
        let collector = SteppedCollector::open(config, &disk, Box::new(watching.clone()))?;
        let mut opened = Self { collector, clock, requests: 0 };
        for _ in 0..STARTING_STEPS {
            opened.estimate(0)?;
        }
        Ok(opened)
    }

    /// Takes what the agents send, stores it, and estimates.
    fn take(&mut self, uploads: &[Upload], second: i64) -> Result<(), DemoError> {
        for upload in uploads {
            self.requests += 1;
            if let Some(response) = self.collector.receive(self.requests, &upload.body, true) {
                settle(upload, &response)?;
            }
        }
        for ((_, response), upload) in self.collector.commit().iter().zip(uploads) {
            settle(upload, response)?;
        }
        self.estimate(second)
    }

    fn estimate(&mut self, second: i64) -> Result<(), DemoError> {
        let exists = Duration::from_secs(second.unsigned_abs());
        self.clock.set(NETWORK_START + Delay::from_nanos(second * EPOCH_NS), exists);
        self.collector.estimate().map_err(|error| DemoError::Upload(error.to_string()))
    }
}

/// Nothing is ever busy here: what is not stored is an error.
fn settle(upload: &Upload, response: &SteppedResponse) -> Result<(), DemoError> {
    let parts = ResponseParts {
        status: response.status,
        is_marked: response.is_marked,
        retry_after: response.retry_after.as_deref(),
        body: &response.body,
    };
    match upload.read(parts)? {
        UploadOutcome::Stored => Ok(()),
        UploadOutcome::Again => Err(DemoError::Upload(response.body.clone())),
    }
}

#[cfg(test)]
mod tests {
    use twixt_sim::LinkCrossing;

    use super::*;
    use crate::scenario::CLASSES;

    /// What really happened on each link in the time of the summary, by class: packets, lost, mean delay.
    fn truth(seed: u64) -> Vec<[(u64, u64, f64); 3]> {
        let scenario = Scenario::new(seed, InjectedIncidents::None, 1);
        let steps = Network::new(&scenario.network).unwrap().advance(SECONDS * EPOCH_NS).unwrap();
        let first_ns = LEAD_SECONDS * EPOCH_NS;
        let summarised_ns = first_ns..first_ns + SUMMARY_SECONDS * EPOCH_NS;
        let of_class = |entered: &[LinkCrossing], class: usize| {
            let own = |of: &&LinkCrossing| {
                of.packet.class == class && summarised_ns.contains(&of.entered_ns)
            };
            let delays: Vec<Option<i64>> = entered
                .iter()
                .filter(own)
                .map(|crossing| Some(crossing.left_ns? - crossing.entered_ns))
                .collect();
            let lost = delays.iter().filter(|delay| delay.is_none()).count() as u64;
            let packets = delays.len() as u64;
            let sum_ns: i64 = delays.iter().flatten().sum();
            (packets, lost, sum_ns as f64 / (packets - lost) as f64)
        };
        steps.iter().map(|step| [0, 1, 2].map(|class| of_class(&step.entered, class))).collect()
    }

    #[test]
    fn estimates_are_those_of_the_packets() {
        let summary = run_once(7, InjectedIncidents::None).unwrap();
        let truth = truth(7);
        let truth = truth.iter().flatten();
        assert_eq!(summary.segments.len(), 6 * CLASSES.len());
        for (found, &(packets, lost, mean_ns)) in summary.segments.iter().zip(truth) {
            // Packets in flight at boundaries are counted where they belong, so this is exact.
            assert_eq!(found.loss, Some(lost as f64 / packets as f64), "{found:?}");
            // One packet in 5000 is lost, and one cell of 256 an epoch unusable at most: of 1 % of the
            // packets the mean is unknown, and their delays differ by less than it.
            let error = found.mean_ns.unwrap() as f64 / mean_ns - 1.0;
            assert!(error.abs() < 0.01, "{error}: {found:?}");
        }
    }
}
