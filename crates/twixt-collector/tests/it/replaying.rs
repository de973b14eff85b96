//! What a collector reads after its start, on a disk that fails.

use std::time::Duration;

use twixt_collector::stepped::SteppedCollector;
use twixt_collector::{CollectorConfig, WallClock};
use twixt_history::{RowQuestion, Step};
use twixt_model::Timestamp;
use twixt_store::{Faults, Operation, SimulatedDisk};

use crate::epochs::{Agent, DELAY_NS, EPOCH_NS, body};
use crate::running::config;

const FIRST: i64 = 17_000_000_000;
const EPOCHS: i64 = 20;
/// After all of them.
const START: Duration = Duration::from_nanos(((FIRST + EPOCHS) * EPOCH_NS) as u64);

fn show(clock: &WallClock, elapsed: Duration) {
    let now_ns = (START + elapsed).as_nanos() as i64;
    clock.set(Timestamp::from_nanos(now_ns), elapsed);
}

fn open(disk: &SimulatedDisk, clock: &WallClock) -> SteppedCollector {
    let config = CollectorConfig { clock: clock.clone(), ..config("/collector".as_ref()) };
    SteppedCollector::open(config, &disk.mount(), Box::new(std::io::sink())).unwrap()
}

fn estimated(collector: &SteppedCollector) -> usize {
    let answer = collector.answer(&RowQuestion::all(Step::Epoch)).unwrap();
    answer.rows.iter().filter(|row| !row.is_gap()).count()
}

/// The collector waits, and goes on when the disk is well again.
#[test]
fn stored_epochs_that_cannot_be_read_at_present_are_waited_for() {
    let (disk, clock) = (SimulatedDisk::new(1), WallClock::standing());
    show(&clock, Duration::ZERO);
    let mut collector = open(&disk, &clock);
    for (request, agent) in [Agent::at("up"), Agent::at("down").after(DELAY_NS)].iter().enumerate()
    {
        let body = zstd::bulk::compress(&body(&agent.seal(FIRST, EPOCHS)), 1).unwrap();
        assert_eq!(collector.receive(request as u64, &body, true), None);
    }
    assert_eq!(collector.commit().len(), 2);
    disk.kill();
    drop(collector);
    let mut collector = open(&disk, &clock);
    disk.set_faults(Faults { failing: vec![(Operation::Open, 1)], ..Faults::default() });
    for tick in 1..=30 {
        show(&clock, tick * Duration::from_millis(200));
        collector.estimate().unwrap();
    }
    // Now and then it works: nothing may be left out.
    disk.set_faults(Faults { failing: vec![(Operation::Open, 3)], ..Faults::default() });
    for tick in 31..=600 {
        show(&clock, tick * Duration::from_millis(200));
        collector.estimate().unwrap();
    }
    disk.set_faults(Faults::default());
    for tick in 601..=660 {
        show(&clock, tick * Duration::from_millis(200));
        collector.estimate().unwrap();
    }
    assert_eq!(estimated(&collector), EPOCHS as usize);
}
