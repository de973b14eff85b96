//! Captures of a simulated segment, and a reporter that keeps all remarks.

use std::fs::File;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use twixt_capture::PcapWriter;
use twixt_measure::Cutting;
use twixt_model::{DigestHash, DigestProfile, EpochRule, GroupPrefixes};
use twixt_offline::{
    Beside, ChosenAlgorithm, DigestPlan, Files, FlowList, FlowSizes, Pass, Plan, Progress,
    Recognition, Remark, Reporter, Split, Traffic,
};
use twixt_sim::{Config, Side, Simulation};
use twixt_synopsis::{By, Purpose, find};
use twixt_wire::HashKey;

pub(crate) const SEED: u64 = 7;
const ETHERNET: u16 = 1;
const SNAP_BYTES: u32 = 96;

/// A segment of 5 ms that loses one packet in a hundred.
pub(crate) fn simulation() -> Simulation {
    println!("seed {SEED}");
    let config = Config {
        flows: 40,
        delay: "constant:5ms".parse().unwrap(),
        loss: "uniform:0.01".parse().unwrap(),
        seed: SEED,
        ..Config::default()
    };
    Simulation::run(&config).unwrap()
}

/// The two captures of a simulation, in a folder that goes with them.
pub(crate) struct Captures {
    pub(crate) folder: tempfile::TempDir,
    upstream: PathBuf,
    downstream: PathBuf,
}

impl Captures {
    pub(crate) fn of(simulation: &Simulation) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let write = |point, name: &str| {
            let path = folder.path().join(name);
            let file = File::create(&path).unwrap();
            let mut capture = PcapWriter::new(file, ETHERNET, SNAP_BYTES).unwrap();
            for sighting in simulation.sightings(point) {
                let frame = simulation.frame(point, sighting).unwrap();
                capture.write(sighting.time, frame.bytes(), frame.wire_length()).unwrap();
            }
            path
        };
        let upstream = write(Side::Upstream, "upstream.pcap");
        let downstream = write(Side::Downstream, "downstream.pcap");
        Self { folder, upstream, downstream }
    }

    pub(crate) fn files(&self) -> Files<'_> {
        Files { upstream: &self.upstream, downstream: &self.downstream }
    }
}

/// An algorithm by its name, with its defaults.
pub(crate) fn chosen(name: &str) -> ChosenAlgorithm {
    let algorithm = find(Purpose::Delay, name).unwrap();
    let prototype = (algorithm.start)(&toml::Table::new()).unwrap();
    ChosenAlgorithm { algorithm, estimator: None, prototype }
}

/// Measures everything by this algorithm.
pub(crate) fn plan(name: &str) -> Plan {
    let recognition = Recognition { profile: DigestProfile::Default, payload_bytes: 24 };
    Plan {
        traffic: Traffic::default(),
        digest: DigestPlan {
            recognition,
            hash: DigestHash::default(),
            key: HashKey::from_seed(0),
            groups: GroupPrefixes::default(),
        },
        algorithms: vec![chosen(name)],
        split: Split::By(By::All),
        rule: EpochRule::WHOLE,
        auto_epochs: false,
        cutting: Cutting::Timed,
        flows: FlowList::passing(FlowSizes::Estimated),
        beside: Beside::default(),
    }
}

/// Keeps all remarks.
#[derive(Default)]
pub(crate) struct KeptReports {
    remarks: Mutex<Vec<Remark>>,
    read_bytes: Arc<AtomicU64>,
    /// A person has seen enough when so many bytes were read.
    enough_bytes: Option<u64>,
}

struct CountedBytes(Arc<AtomicU64>);

impl Progress for CountedBytes {
    fn advance(&self, bytes: u64) {
        self.0.fetch_add(bytes, Ordering::Relaxed);
    }
}

impl Reporter for KeptReports {
    fn progress(&self, _pass: Pass, _total_bytes: u64) -> Box<dyn Progress> {
        Box::new(CountedBytes(self.read_bytes.clone()))
    }

    fn remark(&self, remark: Remark) {
        self.remarks.lock().unwrap().push(remark);
    }

    fn is_enough(&self) -> bool {
        self.enough_bytes.is_some_and(|enough| self.read_bytes() >= enough)
    }
}

impl KeptReports {
    /// A person has seen enough when so many bytes were read.
    pub(crate) fn until(enough_bytes: u64) -> Self {
        Self { enough_bytes: Some(enough_bytes), ..Self::default() }
    }

    pub(crate) fn remarks(self) -> Vec<Remark> {
        self.remarks.into_inner().unwrap()
    }

    pub(crate) fn read_bytes(&self) -> u64 {
        self.read_bytes.load(Ordering::Relaxed)
    }
}
