//! The observation points: at both ends of every link, as the agent of a router has them.

use twixt_measure::Sealed;
use twixt_model::{
    Delay, DigestHash, DigestProfile, EpochRule, Frame, Needs, PointId, Segment, TimeSource,
    Timestamp,
};
use twixt_observe::{LATENESS, Meters, MetersConfig, PacketPath};
use twixt_sim::{LinkCrossing, LinkStep, SimulatedFrame};
use twixt_synopsis::{AnySynopsis, Purpose, find};
use twixt_wire::{Digester, HashKey, OTHER_CLASS, Observer, ObserverOptions};

use crate::EPOCH_NS;
use crate::error::DemoError;
use crate::scenario::{CLASSES, routers_of_links, segments};

/// Within which point names are unique.
pub(crate) const DOMAIN: &str = "demo";
/// Bytes of the payload that digests cover.
const PAYLOAD_BYTES: u8 = 32;
/// Link type of Ethernet in the registry of pcap.
const ETHERNET: u16 = 1;
/// What means and loss are estimated with; percentiles come from a sample.
pub(crate) const MEANS_FROM: &str = "lda";
pub(crate) const PERCENTILES_FROM: &str = "sample";
/// What names the large flows: neither of the two knows any.
const NAMES_FROM: &str = "space-saving";
/// Packets wait 40 ms in a full queue, and then cross a line.
const GUARD: Delay = Delay::from_nanos(EPOCH_NS / 10);

/// The observation points of all routers.
pub(crate) struct Points {
    start: Timestamp,
    /// By link.
    ends: Vec<LinkEnds>,
}

/// The two points of a link.
struct LinkEnds {
    upstream: Point,
    downstream: Point,
}

struct Point {
    /// Whose agent has it.
    router: &'static str,
    path: PacketPath<Meters>,
}

/// An epoch that a router's agent has to send.
pub(crate) struct SealedAt {
    pub(crate) router: &'static str,
    pub(crate) sealed: Sealed,
}

impl Points {
    /// Nothing seen yet. Simulated times count from `start`.
    pub(crate) fn new(seed: u64, start: Timestamp) -> Result<Self, DemoError> {
        let ends = segments().zip(routers_of_links()).map(|(segment, [from, to])| {
            let Segment { upstream, downstream } = segment;
            let point =
                |router, name| Ok::<_, DemoError>(Point { router, path: path(seed, start, name)? });
            Ok(LinkEnds { upstream: point(from, upstream)?, downstream: point(to, downstream)? })
        });
        Ok(Self { start, ends: ends.collect::<Result<_, DemoError>>()? })
    }

    /// Shows the points what passed until a time, and returns what that seals.
    pub(crate) fn observe(&mut self, steps: &[LinkStep], until_ns: i64) -> Vec<SealedAt> {
        let mut sealed = Vec::new();
        let until = self.start + Delay::from_nanos(until_ns);
        for (ends, step) in self.ends.iter_mut().zip(steps) {
            for crossing in &step.entered {
                ends.upstream.take(crossing, self.start, crossing.entered_ns, crossing.hop);
            }
            for crossing in &step.left {
                if let Some(left_ns) = crossing.left_ns {
                    ends.downstream.take(crossing, self.start, left_ns, crossing.hop + 1);
                }
            }
            for point in [&mut ends.upstream, &mut ends.downstream] {
                point.path.sink_mut().advance(until);
                point.collect_into(&mut sealed);
            }
        }
        sealed
    }
}

impl Point {
    fn take(&mut self, crossing: &LinkCrossing, start: Timestamp, time_ns: i64, routers: u8) {
        let frame: SimulatedFrame = crossing.packet.frame(routers);
        self.path.take(&Frame {
            time: start + Delay::from_nanos(time_ns),
            bytes: frame.bytes(),
            memory: frame.bytes(),
            wire_length: frame.wire_length(),
            link_type: ETHERNET,
            interface: 0,
            direction: None,
            time_source: TimeSource::Kernel,
        });
    }

    fn collect_into(&mut self, out: &mut Vec<SealedAt>) {
        while let Some((_, mut sealed)) = self.path.sink_mut().poll() {
            // All packets are of one of the classes.
            if sealed.class != OTHER_CLASS {
                // All routers have the clock of the simulation.
                sealed.clock_bound = Some(Delay::ZERO);
                out.push(SealedAt { router: self.router, sealed });
            }
        }
    }
}

/// The packet path of a point, as an agent sets it up.
fn path(seed: u64, start: Timestamp, point: PointId) -> Result<PacketPath<Meters>, DemoError> {
    let wrong = |problem: &dyn std::fmt::Display| DemoError::Points(problem.to_string());
    let synopses = synopses()?;
    let needs = synopses.iter().map(|synopsis| synopsis.needs());
    let classes = CLASSES.iter().map(|class| {
        let filter = class.filter.parse().map_err(|error| wrong(&error))?;
        Ok((class.name.to_owned(), filter))
    });
    let key = HashKey::from_seed(seed);
    let observer = Observer::new(ObserverOptions {
        needs: needs.fold(Needs::default(), Needs::or),
        outer: false,
        filter: None,
        classes: classes.collect::<Result<_, DemoError>>()?,
        digester: Digester::new(DigestProfile::Default, DigestHash::Xxh3, PAYLOAD_BYTES, key),
    });
    let observer = observer.map_err(|error| wrong(&error))?;
    let rule = EpochRule::every(EPOCH_NS).expect("it is positive");
    let config = MetersConfig {
        domain: DOMAIN.to_owned(),
        run: start.as_nanos().unsigned_abs(),
        guard: Some(GUARD),
        lateness: LATENESS.max(GUARD),
        time_source: TimeSource::Kernel,
        classes: observer.class_names().map(str::to_owned).collect(),
        ..MetersConfig::new(point, rule, observer.digester().identity())
    };
    let prototypes: Vec<&dyn AnySynopsis> = synopses.iter().map(AsRef::as_ref).collect();
    let meters = Meters::new(&config, &prototypes).map_err(|error| wrong(&error))?;
    Ok(PacketPath::new(observer, meters))
}

/// What a point keeps of a class in an epoch; 0 if there can be no point.
pub(crate) fn point_bytes() -> u64 {
    let synopses = synopses();
    synopses.map_or(0, |all| all.iter().map(|synopsis| synopsis.state_bytes()).sum())
}

/// LDA for means and loss, a sample for percentiles, and a table of large flows for their names.
fn synopses() -> Result<[Box<dyn AnySynopsis>; 3], DemoError> {
    let start = |purpose: Purpose, name: &str, settings: toml::Table| {
        let algorithm = find(purpose, name).expect("the registry has it");
        (algorithm.start)(&settings).map_err(|error| DemoError::Points(error.to_string()))
    };
    // Half of the cells see every packet, half a tenth of them: for when many are lost.
    let lda = toml::toml! {
        rows = 256
        sampling = [1.0, 0.1]
    };
    let sample = toml::toml! { budget_bytes = 4096 };
    let names = toml::toml! { entries = 128 };
    Ok([
        start(Purpose::Delay, MEANS_FROM, lda)?,
        start(Purpose::Delay, PERCENTILES_FROM, sample)?,
        start(Purpose::Heavy, NAMES_FROM, names)?,
    ])
}
