//! Captures to measure with: simulated, or of the user.

use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use twixt_capture::{CaptureFile, PcapWriter};
use twixt_sim::{Config, Side, Simulation};

/// What two points captured, in a folder of its own, which goes with it.
pub(crate) struct Capture {
    folder: TempDir,
    pub(crate) packets: u64,
}

const UPSTREAM: &str = "capture.pcap";
const DOWNSTREAM: &str = "downstream.pcap";

impl Capture {
    /// The upstream capture, which all commands with one capture read.
    pub(crate) fn path(&self) -> PathBuf {
        self.folder().join(UPSTREAM)
    }

    /// The downstream capture, if there is one.
    pub(crate) fn downstream(&self) -> PathBuf {
        self.folder().join(DOWNSTREAM)
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
    for (point, name) in [(Side::Upstream, UPSTREAM), (Side::Downstream, DOWNSTREAM)] {
        let out = BufWriter::new(File::create(folder.path().join(name)).unwrap());
        let mut writer = PcapWriter::new(out, 1, 128).unwrap();
        for sighting in simulation.sightings(point) {
            let frame = simulation.frame(point, sighting).unwrap();
            writer.write(sighting.time, frame.bytes(), frame.wire_length()).unwrap();
        }
        writer.flush().unwrap();
    }
    let packets = simulation.sightings(Side::Upstream).len() as u64;
    Capture { folder, packets }
}

/// The packets of a capture of whatever kind, as a plain one: the reference loops read no other.
pub(crate) fn copied(path: &Path) -> Capture {
    let folder = tempfile::tempdir().unwrap();
    let out = BufWriter::new(File::create(folder.path().join(UPSTREAM)).unwrap());
    let mut writer = PcapWriter::new(out, 1, 65_535).unwrap();
    let mut packets = 0;
    CaptureFile::open(path).unwrap().read_to_end(|frame| {
        // A plain capture has one link type; of a mixed one Ethernet counts.
        if frame.link_type == 1 {
            writer.write(frame.time, frame.bytes, frame.wire_length).unwrap();
            packets += 1;
        }
    });
    writer.flush().unwrap();
    Capture { folder, packets }
}
