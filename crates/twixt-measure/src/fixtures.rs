//! What the tests of several modules are made of.

use twixt_model::{
    Batch, Delay, EpochRule, FlowHash, Observation, PacketDigest, PointId, Segment, Timestamp,
};
use twixt_synopsis::{AnySynopsis, Purpose, find};

use crate::meter::{Meter, MeterConfig};
use crate::pairing::{Pairing, PairingConfig, PairingEvent, QuestionTemplate};
use crate::sealed::Sealed;

pub(crate) const MS: i64 = 1_000_000;

pub(crate) fn at_ms(ms: i64) -> Timestamp {
    Timestamp::from_nanos(ms * MS)
}

pub(crate) fn synopsis(algorithm: &str) -> Box<dyn AnySynopsis> {
    (find(Purpose::Delay, algorithm).unwrap().start)(&toml::Table::new()).unwrap()
}

pub(crate) fn packet(digest: u64, time: Timestamp) -> Observation {
    Observation {
        time,
        digest: PacketDigest(digest),
        flow: FlowHash(digest % 7),
        length: 100,
        ..Observation::default()
    }
}

/// Epochs of 100 ms, guard of 20 ms.
pub(crate) fn config(point: &str) -> MeterConfig {
    MeterConfig {
        domain: "lab".to_owned(),
        run: 1,
        guard: Delay::from_nanos(20 * MS),
        ..MeterConfig::new(PointId(point.to_owned()), EpochRule::every(100 * MS).unwrap())
    }
}

pub(crate) fn drain(meter: &mut Meter) -> Vec<Sealed> {
    std::iter::from_fn(|| meter.poll()).collect()
}

/// All epochs of one meter that sees these packets in this order.
pub(crate) fn seal(config: MeterConfig, algorithm: &str, packets: &[Observation]) -> Vec<Sealed> {
    let mut meter = Meter::new(config, synopsis(algorithm)).unwrap();
    let mut sealed = Vec::new();
    for batch in packets.chunks(16) {
        meter.observe(Batch::of(batch));
        sealed.append(&mut drain(&mut meter));
    }
    meter.finish();
    sealed.append(&mut drain(&mut meter));
    sealed
}

/// From `up` to `down`; waits for a second.
pub(crate) fn pairing() -> Pairing {
    Pairing::new(PairingConfig {
        segment: Segment {
            upstream: PointId("up".to_owned()),
            downstream: PointId("down".to_owned()),
        },
        class: String::new(),
        question: QuestionTemplate::default(),
        patience: Delay::from_nanos(1_000 * MS),
    })
}

pub(crate) fn events(pairing: &mut Pairing) -> Vec<PairingEvent> {
    std::iter::from_fn(|| pairing.poll()).collect()
}
