//! The first read of two captures: what do they have in common?

use std::thread;

use twixt_capture::{BatchEnd, CaptureFile, Direction, Frame};
use twixt_measure::survey::{FlowEnds, Passage, PointSurvey, Sighting};
use twixt_model::{DigestProfile, Prefix, Timestamp};
use twixt_wire::{Available, LinkType, Observer, Packet, Skip, SkipCounts, Wanted, available};

use super::{Files, Plan};
use crate::exit::note;
use crate::input;
use crate::progress::Progress;

/// What the first read of one capture found.
pub(crate) struct Surveyed {
    pub(crate) survey: PointSurvey,
    pub(crate) packets: u64,
    pub(crate) skipped: SkipCounts,
    /// Payload bytes with which this survey was made.
    pub(crate) payload_bytes: u8,
    /// Only packets for this prefix count.
    toward: Option<Prefix>,
    /// Payload bytes that every packet of the capture has, or need not have.
    available_bytes: u8,
    /// Packets of which not even the headers are whole.
    headers_cut: u64,
    /// The capture, read to its end.
    file: Option<CaptureFile>,
}

/// Surveys both captures; again with fewer payload bytes if one of them is cut shorter.
pub(crate) fn survey(plan: &Plan<'_>, files: Files<'_>) -> anyhow::Result<(Surveyed, Surveyed)> {
    let wanted_bytes = plan.digest.payload_bytes();
    let (up, down) = survey_with(plan, files, wanted_bytes)?;
    for (path, surveyed) in [(files.upstream, &up), (files.downstream, &down)] {
        if let Some(file) = &surveyed.file {
            input::note_ending(path, file);
        }
    }
    let common_bytes = up.available_bytes.min(down.available_bytes).min(wanted_bytes);
    if common_bytes == wanted_bytes {
        return Ok((up, down));
    }
    let (which, other) = match up.available_bytes.cmp(&down.available_bytes) {
        std::cmp::Ordering::Less => (files.upstream, Some(files.downstream)),
        std::cmp::Ordering::Greater => (files.downstream, Some(files.upstream)),
        std::cmp::Ordering::Equal => (files.upstream, None),
    };
    // Equal cuts are what everyone would expect; unequal ones may surprise.
    if let Some(other) = other {
        note(format_args!(
            "{} is cut shorter than {}: packets are recognised by their headers and {common_bytes} \
             bytes of payload, which both have",
            which.display(),
            other.display()
        ));
    }
    let headers_cut = up.headers_cut.max(down.headers_cut);
    if headers_cut > 0 {
        note(format_args!(
            "{headers_cut} packets are cut within their headers and may not be recognised; \
             capture with a larger snap length"
        ));
    }
    survey_with(plan, files, common_bytes)
}

fn survey_with(
    plan: &Plan<'_>,
    files: Files<'_>,
    payload_bytes: u8,
) -> anyhow::Result<(Surveyed, Surveyed)> {
    let wanted = Wanted { digest: true, flow: true, detail: false };
    let observer = plan.traffic.observer(wanted, plan.digest.digester(payload_bytes))?;
    let (up, down) = (input::open_capture(files.upstream)?, input::open_capture(files.downstream)?);
    let progress = Progress::new(up.size_bytes().unwrap_or(0) + down.size_bytes().unwrap_or(0));
    let run = |file: CaptureFile| {
        let surveyed = Surveyed::new(plan.traffic.toward, payload_bytes);
        surveyed.read(&observer, file, &progress)
    };
    Ok(thread::scope(|scope| {
        let other = scope.spawn(|| run(down));
        (run(up), other.join().expect("a survey does not panic"))
    }))
}

impl Surveyed {
    fn new(toward: Option<Prefix>, payload_bytes: u8) -> Self {
        Self {
            survey: PointSurvey::new(),
            packets: 0,
            skipped: SkipCounts::default(),
            payload_bytes,
            toward,
            available_bytes: u8::MAX,
            headers_cut: 0,
            file: None,
        }
    }

    fn read(mut self, observer: &Observer, mut file: CaptureFile, progress: &Progress) -> Self {
        let mut read_bytes = 0;
        loop {
            let end = file.read_batch(|frame| self.add(observer, &frame));
            progress.advance(file.bytes_read() - read_bytes);
            read_bytes = file.bytes_read();
            if end == BatchEnd::End {
                self.file = Some(file);
                return self;
            }
        }
    }

    fn add(&mut self, observer: &Observer, frame: &Frame<'_>) {
        if is_timeless(frame.time) {
            return self.skipped.count(Skip::NoTime);
        }
        self.survey.saw_frame(frame.time);
        let link = LinkType(frame.link_type);
        match observer.observe_packet(link, frame.bytes, frame.wire_length, frame.time) {
            Err(skip) => self.skipped.count(skip),
            Ok((_, packet)) if self.toward.is_some_and(|to| !to.contains(packet.destination())) => {
                self.skipped.count(Skip::WrongDirection);
            }
            Ok((observation, packet)) => {
                self.packets += 1;
                self.note_cut(available(&packet, frame.bytes), observer);
                let sighting = Sighting {
                    time: frame.time,
                    digest: observation.digest,
                    flow: observation.flow,
                    ttl: packet.ttl(),
                    passage: passage(frame, link),
                };
                self.survey.observe(&sighting, || flow_ends(observer, &packet));
            }
        }
    }

    fn note_cut(&mut self, available: Available, observer: &Observer) {
        if observer.digester().identity().profile != DigestProfile::Headers {
            self.available_bytes = self.available_bytes.min(available.payload_bytes);
        }
        self.headers_cut += u64::from(!(available.header && available.options));
    }
}

/// The ends of a packet's flow, for judging its direction.
pub(super) fn flow_ends(observer: &Observer, packet: &Packet) -> FlowEnds {
    let digester = observer.digester();
    let (source, destination) = digester.address_hashes(packet);
    FlowEnds { reverse: digester.flow_hash(&packet.flow_key().reversed()), source, destination }
}

/// Whether the frame came in or went out, from the capture's metadata or the cooked header.
fn passage(frame: &Frame<'_>, link: LinkType) -> Option<Passage> {
    match frame.direction {
        Some(Direction::Inbound) => Some(Passage::In),
        Some(Direction::Outbound) => Some(Passage::Out),
        None => {
            link.is_outgoing(frame.bytes).map(|out| if out { Passage::Out } else { Passage::In })
        }
    }
}

/// Times at the ends of what 64 bits hold are damage, not times.
pub(crate) fn is_timeless(time: Timestamp) -> bool {
    time == Timestamp::MIN || time == Timestamp::MAX
}
