use std::sync::{Arc, Mutex};

use twixt_engine::SegmentConfig;
use twixt_history::{History, HistoryConfig};
use twixt_measure::{Meter, MeterConfig, Sealed};
use twixt_model::{
    Batch, Delay, EpochRule, FlowHash, Observation, PacketDigest, PointId, Segment, Timestamp,
};
use twixt_store::Options;
use twixt_synopsis::{Purpose, find};

use super::*;
use crate::budget::{BudgetMetrics, ByteBudget};
use crate::history::{Estimates, HistoryMetrics, PointHistories};

const EPOCH_NS: i64 = 100_000_000;

/// Keeps the events.
#[derive(Clone, Default)]
struct Kept(Arc<Mutex<Vec<EngineEvent>>>);

impl EventSink for Kept {
    fn take(&mut self, event: &EngineEvent) -> io::Result<()> {
        self.0.lock().unwrap().push(event.clone());
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn segment() -> Segment {
    Segment { upstream: PointId("up".to_owned()), downstream: PointId("down".to_owned()) }
}

/// So many epochs of a point, from one on.
fn epochs(point: &PointId, delay_ns: i64, first: i64, count: i64) -> Vec<Sealed> {
    let config = MeterConfig {
        guard: Delay::from_nanos(20_000_000),
        ..MeterConfig::new(point.clone(), EpochRule::every(EPOCH_NS).unwrap())
    };
    let synopsis = (find(Purpose::Delay, "lda").unwrap().start)(&toml::Table::new()).unwrap();
    let mut meter = Meter::new(config, synopsis).unwrap();
    let packets: Vec<Observation> = (0..count * 20)
        .map(|number| Observation {
            time: Timestamp::from_nanos(first * EPOCH_NS + number * EPOCH_NS / 20 + delay_ns),
            digest: PacketDigest((number as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)),
            flow: FlowHash(1),
            length: 100,
            ..Observation::default()
        })
        .collect();
    meter.observe(Batch::of(&packets));
    meter.finish();
    std::iter::from_fn(|| meter.poll()).collect()
}

/// A series of which everything before an epoch was published.
fn concluded(like: &Sealed) -> SeriesProgress {
    let algorithm = find(Purpose::Delay, "lda").unwrap();
    let before = Epoch(like.epoch.0 - 1);
    SeriesProgress {
        series: Series {
            domain: like.domain.clone(),
            segment: segment(),
            class: String::new(),
            algorithm: algorithm.name,
            tag: algorithm.tag,
            epoch_ns: Some(EPOCH_NS),
        },
        through: before,
        last: Some(before),
        reported: Vec::new(),
        late: Vec::new(),
        summarised: Timestamp::MIN,
        realigned_epochs: Some(0),
        short_delays: 0,
        replay_from: before,
    }
}

/// A collector was away for 5 s. One point has caught up as soon as it is back; the other takes
/// longer than patience to, and nothing is given up.
#[test]
fn points_that_are_behind_after_a_start_are_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let Segment { upstream, downstream } = segment();
    let (clock, start_ns) = (WallClock::standing(), 1_700_000_000_000_000_000);
    let show = |elapsed: Duration| {
        let now_ns = start_ns + elapsed.as_nanos() as i64;
        clock.set(Timestamp::from_nanos(now_ns), elapsed);
    };
    show(Duration::ZERO);
    let first = start_ns / EPOCH_NS - 50;
    let ups = epochs(&upstream, 0, first, 45);
    let downs = epochs(&downstream, 1_000_000, first, 45);
    let file = ProgressFile::new(twixt_store::real_disk(), folder.path().join("concluded.json"));
    file.prepare(&[concluded(&ups[0])]).unwrap().take_place().unwrap();
    let engine = EngineConfig {
        segments: vec![SegmentConfig { segment: segment(), class: None }],
        patience: Delay::from_nanos(2 * EPOCH_NS),
        ..EngineConfig::default()
    };
    let history = History::open(&folder.path().join("estimates"), HistoryConfig::default());
    let config = EstimatingConfig {
        engine,
        log: Log::open(folder.path().join("epochs"), Options::default()),
        file,
        resume_wait: Duration::from_secs(30),
        clock: clock.clone(),
    };
    let kept = Kept::default();
    let disk = twixt_store::real_disk();
    let points = PointHistories::open(&disk, folder.path(), &HistoryConfig::default()).unwrap();
    let estimates = Estimates::new(history.unwrap(), points, clock.clone());
    let sink = HistorySink::new(estimates, Box::new(kept.clone()), HistoryMetrics::default());
    let mut estimating = Estimating::new(config, EstimatingMetrics::default(), sink);
    let progress = estimating.file.read();
    estimating.stage = estimating.following(CatchingUp::of(&progress));
    let expected = ups.len();
    let budget = ByteBudget::new(1, BudgetMetrics::default());
    let stored = |sealed| StoredEpoch { sealed, memory: budget.nothing("test") };
    estimating.step(ups.into_iter().map(stored)).unwrap();
    for tick in 1..=6 {
        show(tick * TICK);
        estimating.step(iter::empty()).unwrap();
    }
    estimating.step(downs.into_iter().map(stored)).unwrap();
    for tick in 7..=9 {
        show(tick * TICK);
        estimating.step(iter::empty()).unwrap();
    }
    let events = kept.0.lock().unwrap();
    let gap = events.iter().find(|event| matches!(event, EngineEvent::Gap(_)));
    assert_eq!(gap, None);
    let estimated = events.iter().filter(|event| matches!(event, EngineEvent::Estimated(_)));
    // The last has no successor, which is waited for.
    assert!(estimated.count() >= expected - 1);
}
