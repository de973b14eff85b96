//! The first read of two captures: what do they have in common?

use std::thread;

use twixt_measure::survey::{Passage, PointSurvey, Sighting};
use twixt_model::{DigestProfile, FrameDirection, Needs, Timestamp};
use twixt_observe::{FrameParts, PacketPath, PacketSink, SeenPacket};
use twixt_wire::{Available, Observer, Skip, SkipCounts, available};

use crate::capture::Capture;
use crate::error::OfflineError;
use crate::measured::Files;
use crate::plan::{Plan, Recognition};
use crate::report::{Remark, Reporter};
use crate::selection::flow_ends;

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
pub(crate) fn survey(
    plan: &Plan,
    files: Files<'_>,
    reporter: &dyn Reporter,
) -> Result<(Surveyed, Surveyed), OfflineError> {
    let asked = plan.digest.recognition;
    let (up, down) = survey_with(plan, files, asked, reporter)?;
    for surveyed in [&up, &down] {
        surveyed.remarks().for_each(|remark| reporter.remark(remark));
    }
    let possible = up.possible(down.possible(asked));
    if possible == asked {
        return Ok((up, down));
    }
    // Equal cuts are what everyone would expect; unequal ones may surprise.
    if up.possible(asked) != down.possible(asked) {
        let is_up_shorter = up.possible(asked) == possible;
        let Files { upstream: shorter, downstream: longer } =
            if is_up_shorter { files } else { files.swapped() };
        let (shorter, longer) = (shorter.to_owned(), longer.to_owned());
        reporter.remark(Remark::UnequalCuts { shorter, longer, recognition: possible });
    }
    survey_with(plan, files, possible, reporter)
}

fn survey_with(
    plan: &Plan,
    files: Files<'_>,
    recognition: Recognition,
    reporter: &dyn Reporter,
) -> Result<(Surveyed, Surveyed), OfflineError> {
    let needs = Needs { digest: true, flow: true, detail: false, group: false };
    let observer = plan.traffic.observer(needs, plan.digest.digester_by(recognition))?;
    let (up, down) = (Capture::open(files.upstream)?, Capture::open(files.downstream)?);
    let progress = reporter.progress(up.size_bytes() + down.size_bytes());
    let toward = plan.traffic.toward;
    let run = |mut capture: Capture| {
        let path = PacketPath::new(observer.clone(), CaptureSurvey::new());
        let mut path = path.toward(toward);
        capture.read_to_end(progress.as_ref(), |frame| path.take(&frame));
        let (packets, skipped) = (path.packets(), path.skipped());
        Surveyed { noted: path.into_sink(), packets, skipped, recognition, capture }
    };
    Ok(thread::scope(|scope| {
        let other = scope.spawn(|| run(down));
        (run(up), other.join().expect("a survey does not panic"))
    }))
}

impl Surveyed {
    /// Frames that the capture says were dropped.
    pub(crate) fn dropped(&self) -> u64 {
        self.capture.file().counts().dropped.unwrap_or(0)
    }

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

    /// What is wrong with the capture.
    fn remarks(&self) -> impl Iterator<Item = Remark> {
        let (path, packets) = (self.capture.path().to_owned(), self.noted.headers_cut);
        let cut = (packets > 0).then_some(Remark::HeadersCut { path, packets });
        self.capture.ended_early().into_iter().chain(cut)
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
            length: observation.length,
            is_fragment: !packet.is_first_fragment(),
        };
        self.survey.observe(&sighting, || flow_ends(observer, packet));
        Ok(())
    }
}

/// Whether the frame came in or went out, from the capture's metadata or the cooked header.
fn passage(frame: &FrameParts<'_>) -> Option<Passage> {
    match frame.direction {
        Some(FrameDirection::Inbound) => Some(Passage::In),
        Some(FrameDirection::Outbound) => Some(Passage::Out),
        None => {
            let outgoing = frame.link.is_outgoing(frame.bytes.bytes());
            outgoing.map(|out| if out { Passage::Out } else { Passage::In })
        }
    }
}
