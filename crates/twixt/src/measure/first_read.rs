//! The first read of two captures: what do they have in common?

use std::path::Path;
use std::thread;

use twixt_capture::BatchEnd;
use twixt_measure::survey::{Passage, PointSurvey, Sighting};
use twixt_model::{DigestProfile, Direction, Needs, Timestamp};
use twixt_observe::{FrameParts, PacketPath, PacketSink, SeenPacket};
use twixt_wire::{Available, Observer, Skip, SkipCounts, available};

use super::selection::flow_ends;
use super::{Files, Plan};
use crate::args::Recognition;
use crate::exit::note;
use crate::input::Capture;
use crate::output::units;
use crate::progress::Progress;

/// What the first read of one capture found.
pub(crate) struct Surveyed {
    pub(crate) noted: CaptureSurvey,
    pub(crate) packets: u64,
    pub(crate) skipped: SkipCounts,
    /// How packets were recognised.
    pub(crate) recognition: Recognition,
    /// The capture, read to its end.
    capture: Capture,
}

/// What is noted of the packets of one capture.
pub(crate) struct CaptureSurvey {
    pub(crate) survey: PointSurvey,
    /// Payload bytes that every packet of the capture has, or need not have.
    available_bytes: u8,
    /// Packets whose TCP options are not whole.
    options_cut: u64,
    /// Packets of which not even the fixed headers are whole.
    pub(crate) headers_cut: u64,
}

/// Surveys both captures; again with less if one of them is cut so short that packets could not be
/// recognised by what was asked for.
pub(crate) fn survey(plan: &Plan<'_>, files: Files<'_>) -> anyhow::Result<(Surveyed, Surveyed)> {
    let asked = plan.digest.recognition();
    let (up, down) = survey_with(plan, files, asked)?;
    for (path, surveyed) in [(files.upstream, &up), (files.downstream, &down)] {
        surveyed.note_trouble(path);
    }
    let possible = up.possible(down.possible(asked));
    if possible == asked {
        return Ok((up, down));
    }
    // Equal cuts are what everyone would expect; unequal ones may surprise.
    if up.possible(asked) != down.possible(asked) {
        note_unequal(files, up.possible(asked) == possible, possible);
    }
    survey_with(plan, files, possible)
}

fn note_unequal(files: Files<'_>, upstream_is_shorter: bool, possible: Recognition) {
    let (shorter, longer) = match upstream_is_shorter {
        true => (files.upstream, files.downstream),
        false => (files.downstream, files.upstream),
    };
    let by = match (possible.profile, possible.payload_bytes) {
        (DigestProfile::Headers, _) => "their fixed headers".to_owned(),
        (_, 0) => "their headers".to_owned(),
        (_, bytes) => format!("their headers and {bytes} bytes of payload"),
    };
    let (shorter, longer) = (shorter.display(), longer.display());
    note(format_args!(
        "{shorter} is cut shorter than {longer}: packets are recognised by {by}, which both have"
    ));
}

fn survey_with(
    plan: &Plan<'_>,
    files: Files<'_>,
    recognition: Recognition,
) -> anyhow::Result<(Surveyed, Surveyed)> {
    let needs = Needs { digest: true, flow: true, detail: false, group: false };
    let observer = plan.traffic.observer(needs, plan.digest.digester(recognition))?;
    let (up, down) = (Capture::open(files.upstream)?, Capture::open(files.downstream)?);
    let progress = Progress::new(up.size_bytes() + down.size_bytes());
    let run = |mut capture: Capture| {
        let path = PacketPath::new(observer.clone(), CaptureSurvey::new());
        let mut path = path.toward(plan.traffic.toward);
        while capture.read_batch(&progress, |frame| path.take(&frame)) == BatchEnd::More {}
        let (packets, skipped) = (path.packets(), path.skipped());
        Surveyed { noted: path.into_sink(), packets, skipped, recognition, capture }
    };
    Ok(thread::scope(|scope| {
        let other = scope.spawn(|| run(down));
        (run(up), other.join().expect("a survey does not panic"))
    }))
}

impl Surveyed {
    /// How packets can be recognised with what this capture has.
    fn possible(&self, asked: Recognition) -> Recognition {
        match asked.profile {
            DigestProfile::Headers => asked,
            DigestProfile::Default if self.noted.options_cut > 0 => {
                Recognition { profile: DigestProfile::Headers, payload_bytes: 0 }
            }
            _ => Recognition {
                payload_bytes: asked.payload_bytes.min(self.noted.available_bytes),
                ..asked
            },
        }
    }

    fn note_trouble(&self, path: &Path) {
        self.capture.note_ending(path);
        if self.noted.headers_cut > 0 {
            note(format_args!(
                "{}: {} packets are cut within their headers and may not be recognised; capture \
                 with a larger snap length",
                path.display(),
                units::count(self.noted.headers_cut)
            ));
        }
    }
}

impl CaptureSurvey {
    fn new() -> Self {
        let survey = PointSurvey::new();
        Self { survey, available_bytes: u8::MAX, options_cut: 0, headers_cut: 0 }
    }

    fn note_cut(&mut self, available: Available) {
        self.available_bytes = self.available_bytes.min(available.payload_bytes);
        self.options_cut += u64::from(!available.options);
        self.headers_cut += u64::from(!available.header);
    }
}

impl PacketSink for CaptureSurvey {
    fn see(&mut self, time: Timestamp) {
        self.survey.saw_frame(time);
    }

    fn take(&mut self, observer: &Observer, seen: SeenPacket<'_>) -> Result<(), Skip> {
        let SeenPacket { observation, packet, frame } = seen;
        self.note_cut(available(packet, frame.bytes.bytes()));
        let sighting = Sighting {
            time: frame.time,
            digest: observation.digest,
            flow: observation.flow,
            ttl: packet.ttl(),
            passage: passage(&frame),
        };
        self.survey.observe(&sighting, || flow_ends(observer, packet));
        Ok(())
    }
}

/// Whether the frame came in or went out, from the capture's metadata or the cooked header.
fn passage(frame: &FrameParts<'_>) -> Option<Passage> {
    match frame.direction {
        Some(Direction::Inbound) => Some(Passage::In),
        Some(Direction::Outbound) => Some(Passage::Out),
        None => {
            let outgoing = frame.link.is_outgoing(frame.bytes.bytes());
            outgoing.map(|out| if out { Passage::Out } else { Passage::In })
        }
    }
}
