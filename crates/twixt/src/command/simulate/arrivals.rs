//! A capture of the user's own in the place of synthetic traffic.
//!
//! Downstream sees packets in another order, so the frames stay in memory, cut to their headers.

use std::path::Path;

use anyhow::{Context, bail};
use twixt_capture::{BatchEnd, Frame};
use twixt_observe::is_timeless;
use twixt_offline::Capture;
use twixt_sim::{Arrival, Config, Side, Simulation, SimulationConfigError};
use twixt_wire::{LinkType, ParseOptions, Skip, SkipCounts, parse};

use super::output_files::Frames;
use super::{Made, hop, refused};
use crate::exit::{no_answer, note};
use crate::output::units;
use crate::progress::ReadProgress;
use crate::remarks::note_ending;

/// Bytes kept of a frame: the headers, and enough payload to distinguish packets.
pub(super) const FRAME_BYTES_KEPT: usize = 128;

/// Bytes kept of all frames together.
const TRACE_BYTES_MAX: u64 = 4 << 30;

/// The packets of a capture.
pub(super) struct OwnTrace {
    arrivals: Vec<Arrival>,
    frames: OwnFrames,
    skipped: SkipCounts,
    partial: bool,
}

/// The beginnings of frames.
pub(super) struct OwnFrames {
    link: LinkType,
    bytes: Vec<u8>, // at most TRACE_BYTES_MAX
    frames: Vec<KeptFrame>,
}

struct KeptFrame {
    starts_at: usize,
    wire_length: u32,
    length: u8, // at most FRAME_BYTES_KEPT
}

const _: () = assert!(FRAME_BYTES_KEPT <= u8::MAX as usize);

impl OwnTrace {
    /// Reads a capture.
    pub(super) fn read(path: &Path) -> anyhow::Result<Self> {
        let mut capture = Capture::open(path)?;
        let mut trace = Self {
            arrivals: Vec::new(),
            frames: OwnFrames { link: LinkType::ETHERNET, bytes: Vec::new(), frames: Vec::new() },
            skipped: SkipCounts::default(),
            partial: false,
        };
        trace.read_frames(&mut capture).with_context(|| path.display().to_string())?;
        trace.partial = note_ending(&capture);
        trace.note_skipped(path);
        Ok(trace)
    }

    /// Sends the packets across the segment.
    pub(super) fn simulate(self, config: &Config, path: &Path) -> anyhow::Result<Made> {
        let simulation =
            Simulation::with_arrivals(config, self.arrivals).map_err(|error| match error {
                SimulationConfigError::Range(_) => refused(&error),
                SimulationConfigError::NoArrivals => {
                    no_answer(format!("{}: no IP packets", path.display()))
                }
                _ => anyhow::Error::new(error).context(path.display().to_string()),
            })?;
        Ok(Made {
            markers: None,
            simulation,
            frames: Frames::Own(self.frames),
            partial: self.partial,
        })
    }

    fn read_frames(&mut self, capture: &mut Capture) -> anyhow::Result<()> {
        let progress = ReadProgress::new(capture.size_bytes(), "reading");
        let mut problem = None;
        loop {
            let end = capture.read_batch(&progress, |frame| {
                if problem.is_none() {
                    problem = self.take(&frame).err();
                }
            });
            match problem.take() {
                Some(problem) => return Err(problem),
                None if end == BatchEnd::End => return Ok(()),
                None => {}
            }
        }
    }

    fn take(&mut self, frame: &Frame<'_>) -> anyhow::Result<()> {
        // What is measured later is what is written, so it is that which is parsed.
        let bytes = &frame.bytes[..frame.bytes.len().min(FRAME_BYTES_KEPT)];
        let link = LinkType(frame.link_type);
        let options = ParseOptions { outer: false, wire_length: Some(frame.wire_length) };
        let parsed = match parse(link, bytes, options) {
            Ok(_) if is_timeless(frame.time) => Err(Skip::NoTime),
            parsed => parsed,
        };
        match parsed {
            Err(skip) => self.skipped.count(skip),
            Ok(packet) => {
                self.arrivals.push(Arrival {
                    time: frame.time,
                    key: packet.flow_key(),
                    length: packet.length(),
                    frame: self.frames.frames.len() as u64,
                });
                self.frames.keep(link, bytes, frame.wire_length)?;
            }
        }
        Ok(())
    }

    fn note_skipped(&self, path: &Path) {
        let reasons: Vec<String> = self
            .skipped
            .iter()
            .filter(|&(_, count)| count > 0)
            .map(|(skip, count)| format!("{} {skip}", units::count(count)))
            .collect();
        if !reasons.is_empty() {
            note(format_args!("{}: skipped: {}", path.display(), reasons.join(", ")));
        }
    }
}

impl OwnFrames {
    /// What their outermost header is.
    pub(super) const fn link(&self) -> LinkType {
        self.link
    }

    /// The frame with this number as the point sees it, written to `buffer`; its length on the
    /// wire.
    pub(super) fn at(&self, number: u64, point: Side, buffer: &mut Vec<u8>) -> u32 {
        let kept = &self.frames[number as usize];
        buffer.clear();
        buffer.extend(&self.bytes[kept.starts_at..kept.starts_at + usize::from(kept.length)]);
        if point == Side::Downstream {
            hop::forward(self.link, buffer);
        }
        kept.wire_length
    }

    fn keep(&mut self, link: LinkType, bytes: &[u8], wire_length: u32) -> anyhow::Result<()> {
        if self.frames.is_empty() {
            self.link = link;
        }
        if link != self.link {
            bail!(
                "has both {} and {link} frames, but pcap supports only one kind: keep one \
                 interface of the capture",
                self.link
            );
        }
        if (self.bytes.len() + bytes.len()) as u64 > TRACE_BYTES_MAX {
            bail!(
                "the headers of its packets take more than {}: use a part of the capture",
                units::bytes(TRACE_BYTES_MAX)
            );
        }
        let length = bytes.len() as u8; // at most FRAME_BYTES_KEPT
        self.frames.push(KeptFrame { starts_at: self.bytes.len(), wire_length, length });
        self.bytes.extend(bytes);
        Ok(())
    }
}
