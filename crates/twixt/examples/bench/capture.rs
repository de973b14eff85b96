//! Simulated captures to measure with.

use std::fs::File;
use std::io::BufWriter;
use std::path::Path;

use tempfile::TempDir;
use twixt_capture::PcapWriter;
use twixt_sim::{Config, Point, Simulation};

/// A capture in a folder of its own, which goes with it.
pub(crate) struct Capture {
    folder: TempDir,
}

const NAME: &str = "capture.pcap";

impl Capture {
    pub(crate) fn path(&self) -> std::path::PathBuf {
        self.folder.path().join(NAME)
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }
}

/// So many packets of many flows, headers only; the same ones every time.
pub(crate) fn simulated(packets: u64) -> Capture {
    let folder = tempfile::tempdir().unwrap();
    let config = Config { packets: Some(packets), ..Config::default() };
    let simulation = Simulation::run(&config).unwrap();
    let out = BufWriter::new(File::create(folder.path().join(NAME)).unwrap());
    let mut writer = PcapWriter::new(out, 1, 128).unwrap();
    for sighting in simulation.sightings(Point::Upstream) {
        let frame = simulation.frame(Point::Upstream, sighting).unwrap();
        writer.write(sighting.time, frame.bytes(), frame.wire_length()).unwrap();
    }
    writer.flush().unwrap();
    Capture { folder }
}
