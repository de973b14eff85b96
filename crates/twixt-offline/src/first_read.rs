//! The first read of two captures: what do they have in common?

use std::sync::Arc;
use std::thread;

use twixt_capture::BatchEnd;
use twixt_measure::survey::{Passage, PointSurvey, Sighting};
use twixt_model::{Frame, FrameDirection, Needs, Observation, Timestamp};
use twixt_observe::{FrameParts, PacketPath, PacketSink, SeenPacket};
use twixt_wire::{Cuts, Observer, Skip, SkipCounts};

use crate::capture::Capture;
use crate::completeness::{Completeness, likely_recognition};
use crate::error::OfflineError;
use crate::measured::Files;
use crate::plan::{Plan, Recognition, Traffic};
use crate::recollection::{Recalled, Recollection};
use crate::report::{Pass, Remark, Reporter};
use crate::segmentation::{cuts_of, may_be_merged};
use crate::selection::flow_ends;

/// What the first read of one capture found.
pub(crate) struct Surveyed {
    pub(crate) noted: CaptureSurvey,
    /// What was noted of all packets, where only some are measured: they have the same clocks.
    pub(crate) all: Option<PointSurvey>,
    pub(crate) packets: u64,
    pub(crate) skipped: SkipCounts,
    /// How packets were recognised.
    pub(crate) recognition: Recognition,
    /// Where TCP segments were cut.
    pub(crate) cuts: Option<Arc<Cuts>>,
    /// The capture, read to its end.
    capture: Capture,
}

/// What is noted of the packets of one capture.
pub(crate) struct CaptureSurvey {
    pub(crate) survey: PointSurvey,
    /// How much of its packets the capture holds.
    completeness: Completeness,
    /// TCP packets that may be of several segments.
    merged: u64,
    /// The packets, if the second read needs no more of them, and they are not too many.
    recollection: Option<Recollection>,
}

/// Surveys both captures; again with less if one of them is cut so short that packets could not be
/// recognised by what was asked for, or by byte range if they hold other TCP segments.
pub(crate) fn survey(
    plan: &Plan,
    files: Files<'_>,
    reporter: &dyn Reporter,
) -> Result<(Surveyed, Surveyed), OfflineError> {
    let asked = plan.digest.recognition;
    let likely = likely_recognition(plan, files)?;
    let (up, down) = survey_with(plan, files, (likely, None), reporter)?;
    for surveyed in [&up, &down] {
        surveyed.remarks().for_each(|remark| reporter.remark(remark));
    }
    let possible = up.possible(down.possible(asked));
    let cuts = match up.noted.merged + down.noted.merged {
        0 => None,
        _ => cuts_of(plan, files, possible, reporter)?,
    };
    // Equal cuts are what everyone would expect; unequal ones may surprise.
    if up.possible(asked) != down.possible(asked) {
        let is_up_shorter = up.possible(asked) == possible;
        let Files { upstream: shorter, downstream: longer } =
            if is_up_shorter { files } else { files.swapped() };
        let (shorter, longer) = (shorter.to_owned(), longer.to_owned());
        reporter.remark(Remark::UnequalCuts { shorter, longer, recognition: possible });
    }
    if possible == likely && cuts.is_none() {
        return Ok((up, down));
    }
    survey_with(plan, files, (possible, cuts), reporter)
}

fn survey_with(
    plan: &Plan,
    files: Files<'_>,
    (recognition, cuts): (Recognition, Option<Arc<Cuts>>),
    reporter: &dyn Reporter,
) -> Result<(Surveyed, Surveyed), OfflineError> {
    let needs = Needs { digest: true, flow: true, detail: false, group: false, exchange: false };
    let observer = plan.traffic.observer(needs, plan.digest.digester_by(recognition))?;
    let all = Traffic { outer: plan.traffic.outer, ..Traffic::default() };
    let all = all.observer(needs, plan.digest.digester_by(recognition))?;
    let all = plan.traffic.selects().then_some(all);
    let (up, down) = (Capture::open(files.upstream)?, Capture::open(files.downstream)?);
    let progress = reporter.progress(Pass::Survey, up.size_bytes() + down.size_bytes());
    let (toward, within) = (plan.traffic.toward, plan.traffic.within);
    let recalled_max = plan.recalled_max();
    let run = |mut capture: Capture| {
        let path = PacketPath::new(observer.clone(), CaptureSurvey::new(recalled_max));
        let mut path = path.toward(toward).within(within).cutting(cuts.clone());
        let all = all.as_ref().map(|observer| PacketPath::new(observer.clone(), AllTraffic::new()));
        let mut all = all.map(|path| path.within(within).cutting(cuts.clone()));
        let mut end = BatchEnd::More;
        while end == BatchEnd::More && !reporter.is_enough() {
            end = capture.read_batch(progress.as_ref(), |frame: Frame<'_>| {
                path.take(&frame);
                all.iter_mut().for_each(|path| path.take(&frame));
            });
            let skipped = path.skipped();
            path.sink_mut().end_batch(skipped);
        }
        let (packets, skipped) = (path.packets(), path.skipped());
        let all = all.map(|path| path.into_sink().0);
        let cuts = cuts.clone();
        Surveyed { noted: path.into_sink(), all, packets, skipped, recognition, cuts, capture }
    };
    let surveyed = thread::scope(|scope| {
        let other = scope.spawn(|| run(down));
        (run(up), other.join().expect("a survey does not panic"))
    });
    if reporter.is_enough() { Err(OfflineError::Interrupted) } else { Ok(surveyed) }
}

impl Surveyed {
    /// Frames that the capture says were dropped.
    pub(crate) fn dropped(&self) -> u64 {
        self.capture.counts().dropped.unwrap_or(0)
    }

    /// The packets, if they need not be read again.
    pub(crate) fn recalled(&self) -> Option<Recalled<'_>> {
        let recollection = self.noted.recollection.as_ref()?;
        Some(Recalled {
            recollection,
            survey: &self.noted.survey,
            counts: self.capture.counts(),
            ended_early: self.capture.ended_early().is_some(),
            size_bytes: self.capture.size_bytes(),
        })
    }

    /// Whether some packets are cut so short that nothing recognises them.
    pub(crate) const fn is_cut_in_headers(&self) -> bool {
        self.noted.completeness.headers_cut > 0
    }

    /// How packets can be recognised with what this capture has.
    fn possible(&self, asked: Recognition) -> Recognition {
        self.noted.completeness.possible(asked)
    }

    /// What is wrong with the capture.
    fn remarks(&self) -> impl Iterator<Item = Remark> {
        let (path, packets) = (self.capture.path().to_owned(), self.noted.completeness.headers_cut);
        let cut = (packets > 0).then_some(Remark::HeadersCut { path, packets });
        self.capture.ended_early().into_iter().chain(cut)
    }
}

impl CaptureSurvey {
    fn new(recalled_max: Option<usize>) -> Self {
        Self {
            survey: PointSurvey::new(),
            completeness: Completeness::new(),
            merged: 0,
            recollection: recalled_max.map(Recollection::new),
        }
    }

    fn end_batch(&mut self, skipped: SkipCounts) {
        let latest = self.survey.frames().map_or(Timestamp::MIN, |frames| frames.end);
        if let Some(recollection) = &mut self.recollection {
            recollection.end_batch(latest, skipped);
        }
    }

    /// Keeps a packet for the second read, as long as there is room for all.
    #[inline]
    fn keep(&mut self, seen: &SeenPacket<'_>, flow: Option<u32>) {
        let Some(recollection) = &mut self.recollection else { return };
        let key = || seen.packet.flow_key();
        let is_kept = flow.is_some_and(|flow| recollection.keep(&seen.observation, flow, key));
        if !is_kept {
            self.recollection = None;
        }
    }
}

impl PacketSink for CaptureSurvey {
    #[inline]
    fn see(&mut self, time: Timestamp) {
        self.survey.saw_frame(time);
    }

    // Whatever is read of a packet stays in registers: it is not handed on as a whole.
    #[inline(always)]
    fn take(&mut self, observer: &Observer, seen: SeenPacket<'_>) -> Result<(), Skip> {
        self.completeness.note(seen.packet, seen.frame.bytes.bytes());
        self.merged += u64::from(may_be_merged(&seen.observation, seen.packet));
        let Observation { digest, flow, .. } = seen.observation;
        let ends = || flow_ends(observer, seen.packet);
        let flow = self.survey.observe_with(digest, flow, || sighting(&seen), ends);
        self.keep(&seen, flow);
        Ok(())
    }
}

/// All packets of a capture, whichever are measured.
struct AllTraffic(PointSurvey);

impl AllTraffic {
    fn new() -> Self {
        Self(PointSurvey::new())
    }
}

impl PacketSink for AllTraffic {
    fn see(&mut self, time: Timestamp) {
        self.0.saw_frame(time);
    }

    fn take(&mut self, observer: &Observer, seen: SeenPacket<'_>) -> Result<(), Skip> {
        self.0.observe(&sighting(&seen), || flow_ends(observer, seen.packet));
        Ok(())
    }
}

fn sighting(seen: &SeenPacket<'_>) -> Sighting {
    let SeenPacket { observation, packet, frame } = seen;
    Sighting {
        time: frame.time,
        digest: observation.digest,
        flow: observation.flow,
        ttl: packet.ttl(),
        passage: passage(frame),
        length: observation.length,
        is_fragment: !packet.is_first_fragment(),
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
