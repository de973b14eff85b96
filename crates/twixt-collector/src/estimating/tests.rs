use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex};

use twixt_engine::SegmentConfig;
use twixt_history::HistoryConfig;
use twixt_measure::{Meter, MeterConfig, Sealed};
use twixt_model::{
    Batch, Delay, EpochRule, FlowHash, Observation, PacketDigest, PointId, Segment, Timestamp,
};
use twixt_store::Options;
use twixt_synopsis::{Purpose, find};

use super::*;
use crate::budget::{BudgetMetrics, ByteBudget};

const EPOCH_NS: i64 = 100_000_000;

/// Keeps what it is told.
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

/// A series of which everything was told before an epoch.
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
    let clock = WallClock::system();
    let first = clock.now().as_nanos() / EPOCH_NS - 50;
    let ups = epochs(&upstream, 0, first, 45);
    let downs = epochs(&downstream, 1_000_000, first, 45);
    let file = ProgressFile::new(twixt_store::real_disk(), folder.path().join("concluded.json"));
    file.prepare(&[concluded(&ups[0])]).unwrap().take_place().unwrap();
    let config = EngineConfig {
        segments: vec![SegmentConfig { segment: segment(), class: None }],
        patience: Delay::from_nanos(2 * EPOCH_NS),
        ..EngineConfig::default()
    };
    let (log, kept) =
        (Log::open(folder.path().join("epochs"), Options::default()), Kept::default());
    let history = History::open(&folder.path().join("estimates"), HistoryConfig::default());
    let config = EstimatingConfig {
        engine: config,
        log,
        file,
        history: Arc::new(history.unwrap()),
        resume_wait: Duration::from_secs(30),
        clock,
    };
    let sink = Box::new(kept.clone());
    let estimating = Estimating::new(config, EstimatingMetrics::default(), sink);
    let concluded = estimating.file.read();
    let mut engine = Engine::resume(estimating.config.clone(), concluded.clone());
    let (stored, receiver) = sync_channel(1_024);
    let expected = ups.len() as u64;
    let budget = ByteBudget::new(1, BudgetMetrics::default());
    let sending = std::thread::spawn(move || {
        let send = |sealed| {
            let memory = budget.nothing("test");
            stored.send(StoredEpoch { sealed, memory }).unwrap();
        };
        ups.into_iter().for_each(send);
        std::thread::sleep(Duration::from_millis(1_200));
        downs.into_iter().for_each(send);
        std::thread::sleep(Duration::from_millis(600));
    });
    let mut estimating = estimating;
    estimating.follow(&mut engine, &receiver, CatchingUp::of(&concluded)).unwrap();
    sending.join().unwrap();
    let events = kept.0.lock().unwrap();
    let gap = events.iter().find(|event| matches!(event, EngineEvent::Gap(_)));
    assert_eq!(gap, None);
    let estimated = events.iter().filter(|event| matches!(event, EngineEvent::Estimated(_)));
    // The last has no successor, which is waited for.
    assert!(estimated.count() as u64 >= expected - 1);
}
