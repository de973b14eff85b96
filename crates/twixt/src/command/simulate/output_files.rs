//! The three files, complete or not there at all.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use twixt_capture::PcapWriter;
use twixt_sim::{Side, Truth};
use twixt_wire::LinkType;

use super::Made;
use super::arrivals::{FRAME_BYTES_KEPT, OwnFrames};
use super::markers::markers;
use crate::exit::interrupted;
use crate::interruption;

/// Where frames come from.
pub(super) enum Frames {
    /// The simulation makes them.
    Synthetic,
    /// The user's own.
    Own(OwnFrames),
}

/// What was written.
pub(super) struct Written {
    pub(super) upstream: PathBuf,
    pub(super) downstream: PathBuf,
    pub(super) truth: PathBuf,
    /// Forward flows that have packets.
    pub(super) flows: usize,
}

const BUFFER_BYTES: usize = 1 << 18;
/// Packets that are written before it is asked whether the user wants no more.
const CHECKED_EVERY: usize = 1 << 12;

/// Writes all three files, under other names at first: when one of them fails, earlier files of
/// these names are still whole.
pub(super) fn write_all(directory: &Path, made: &Made, truth: &Truth) -> anyhow::Result<Written> {
    // From here on there is something to remove.
    interruption::watch().context("cannot handle signals")?;
    let _directory = NewDirectory::create(directory)
        .with_context(|| format!("cannot create directory {}", directory.display()))?;
    let upstream = Unfinished::write(&directory.join("upstream.pcap"), |out| {
        write_capture(made, Side::Upstream, out)
    })?;
    let downstream = Unfinished::write(&directory.join("downstream.pcap"), |out| {
        write_capture(made, Side::Downstream, out)
    })?;
    let rows = Unfinished::write(&directory.join("truth.csv"), |out| Ok(write_truth(truth, out)?))?;
    Ok(Written {
        upstream: upstream.finish()?,
        downstream: downstream.finish()?,
        truth: rows.finish()?,
        flows: forward_flows(made),
    })
}

fn forward_flows(made: &Made) -> usize {
    let simulation = &made.simulation;
    let first = |packet: &&twixt_sim::SimulatedPacket| packet.sequence == 0;
    let forward =
        |packet: &&twixt_sim::SimulatedPacket| (packet.flow as usize) < simulation.flows();
    simulation.packets().iter().filter(first).filter(forward).count()
}

fn write_capture(made: &Made, point: Side, out: &mut impl Write) -> anyhow::Result<()> {
    let simulation = &made.simulation;
    let link = match &made.frames {
        Frames::Synthetic => LinkType::ETHERNET,
        Frames::Own(frames) => frames.link(),
    };
    let mut capture = PcapWriter::new(out, link.0, FRAME_BYTES_KEPT as u32)?;
    let mut buffer = Vec::with_capacity(FRAME_BYTES_KEPT);
    let mut markers = made.markers.map(|rule| markers(simulation, rule, point)).unwrap_or_default();
    markers.reverse();
    for (number, sighting) in simulation.sightings(point).enumerate() {
        if number % CHECKED_EVERY == 0 && interruption::is_requested() {
            return Err(interrupted("nothing was written"));
        }
        // A marker lies behind the packets of its own time.
        while let Some(marker) = markers.pop_if(|marker| marker.time < sighting.time) {
            capture.write(marker.time, &marker.bytes, marker.bytes.len() as u32)?;
        }
        match &made.frames {
            Frames::Synthetic => {
                let frame = simulation.frame(point, sighting);
                let frame = frame.expect("synthetic packets have frames");
                capture.write(sighting.time, frame.bytes(), frame.wire_length())?;
            }
            Frames::Own(frames) => {
                let number = simulation.original_frame(sighting.packet);
                let number = number.expect("packets of a trace come from frames");
                let wire_length = frames.at(number, point, &mut buffer);
                capture.write(sighting.time, &buffer, wire_length)?;
            }
        }
    }
    while let Some(marker) = markers.pop() {
        capture.write(marker.time, &marker.bytes, marker.bytes.len() as u32)?;
    }
    Ok(())
}

fn write_truth(truth: &Truth, out: &mut impl Write) -> io::Result<()> {
    let mut text = TextWriter { out, problem: None };
    let written = truth.write_csv(&mut text);
    match (text.problem, written) {
        (Some(problem), _) => Err(problem),
        (None, Ok(())) => Ok(()),
        (None, Err(error)) => Err(io::Error::other(error)),
    }
}

/// Text to bytes: the simulation knows no files.
struct TextWriter<'a, W> {
    out: &'a mut W,
    problem: Option<io::Error>,
}

impl<W: Write> fmt::Write for TextWriter<'_, W> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.out.write_all(text.as_bytes()).map_err(|problem| {
            self.problem = Some(problem);
            fmt::Error
        })
    }
}

/// Directories that were created, the outermost last. They are removed if they are empty in the end.
struct NewDirectory(Vec<PathBuf>);

impl NewDirectory {
    fn create(directory: &Path) -> io::Result<Self> {
        let is_new = |path: &&Path| !path.as_os_str().is_empty() && !path.exists();
        let new = directory.ancestors().take_while(is_new).map(Path::to_owned).collect();
        fs::create_dir_all(directory)?;
        Ok(Self(new))
    }
}

impl Drop for NewDirectory {
    fn drop(&mut self) {
        // Fails, as it should, where there are files in it.
        self.0.iter().for_each(|directory| _ = fs::remove_dir(directory));
    }
}

/// A file under a name that says so. Removed unless it is finished.
struct Unfinished {
    partial: PathBuf,
    path: PathBuf,
    finished: bool,
}

impl Unfinished {
    fn write(
        path: &Path,
        content: impl FnOnce(&mut BufWriter<File>) -> anyhow::Result<()>,
    ) -> anyhow::Result<Self> {
        let cannot = || format!("cannot write {}", path.display());
        let mut partial = path.as_os_str().to_owned();
        partial.push(".partial");
        let partial = PathBuf::from(partial);
        let file = File::create(&partial).with_context(cannot)?;
        // From here on the file is there, and removed if anything fails.
        let unfinished = Self { partial, path: path.to_owned(), finished: false };
        let mut out = BufWriter::with_capacity(BUFFER_BYTES, file);
        content(&mut out).with_context(cannot)?;
        out.flush().with_context(cannot)?;
        Ok(unfinished)
    }

    fn finish(mut self) -> anyhow::Result<PathBuf> {
        fs::rename(&self.partial, &self.path)
            .with_context(|| format!("cannot write {}", self.path.display()))?;
        self.finished = true;
        Ok(self.path.clone())
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        if !self.finished {
            // Why the file is unfinished was reported already.
            let _ = fs::remove_file(&self.partial);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_write_leaves_the_earlier_file_alone() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("truth.csv");
        fs::write(&path, "earlier").unwrap();
        let failed = Unfinished::write(&path, |out| {
            out.write_all(b"half")?;
            anyhow::bail!("the disk is full")
        });
        let problem = format!("{:#}", failed.err().unwrap());
        assert_eq!(problem, format!("cannot write {}: the disk is full", path.display()));
        assert_eq!(fs::read_to_string(&path).unwrap(), "earlier");
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_finished_file_takes_the_place_of_the_earlier() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("truth.csv");
        fs::write(&path, "earlier").unwrap();
        let file = Unfinished::write(&path, |out| Ok(out.write_all(b"later")?)).unwrap();
        assert_eq!(file.finish().unwrap(), path);
        assert_eq!(fs::read_to_string(&path).unwrap(), "later");
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    }
}
