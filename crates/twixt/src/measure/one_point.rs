//! One point, one pass, into a synopsis that learns from that point alone.

use twixt_capture::Frame;
use twixt_model::{BatchBuffer, DigestHash, DigestProfile, Needs, Span};
use twixt_synopsis::AnySynopsis;
use twixt_wire::{Digester, HashKey};

use super::{Intake, PointCounts};
use crate::args::{Chosen, TrafficArgs};
use crate::exit::{Exit, usage};
use crate::frame_input::{OnePass, SourceArgs};

/// A synopsis, and the frames on their way into it.
struct OnePoint {
    intake: Intake,
    synopsis: Box<dyn AnySynopsis>,
    /// Packets that the synopsis was not yet given.
    waiting: BatchBuffer,
}

/// What was seen, and what the synopsis kept of it.
pub(crate) struct Seen {
    pub(crate) synopsis: Box<dyn AnySynopsis>,
    pub(crate) counts: PointCounts,
    /// From the first packet to the last; `None` if there was none.
    pub(crate) span: Option<Span>,
    /// The capture or the interface.
    pub(crate) name: String,
    /// How the command ends.
    pub(crate) exit: Exit,
}

/// Reads a source once, and at most `most` packets of this traffic.
pub(crate) fn read(
    source: &SourceArgs,
    traffic: &TrafficArgs,
    chosen: &Chosen,
    most: Option<u64>,
) -> anyhow::Result<Seen> {
    let mut point = OnePoint {
        intake: intake(traffic, chosen, most)?,
        synopsis: chosen.prototype.fresh(),
        waiting: BatchBuffer::new(),
    };
    let mut source = source.open()?;
    source.read(&mut point)?;
    point.hand_over();
    Ok(Seen {
        counts: point.intake.counts(source.counts()),
        span: point.intake.span(),
        synopsis: point.synopsis,
        name: source.name(),
        exit: source.conclude(Exit::Done),
    })
}

fn intake(traffic: &TrafficArgs, chosen: &Chosen, most: Option<u64>) -> anyhow::Result<Intake> {
    if traffic.has_classes() {
        return Err(usage("this command does not tell classes apart: use a filter"));
    }
    // Hashes never leave this command: a fixed key will do.
    let key = HashKey::from_seed(0);
    let digester = Digester::new(DigestProfile::Headers, DigestHash::Xxh3, 0, key);
    let needs = Needs { detail: true, ..chosen.prototype.needs() };
    Ok(Intake::new(traffic.observer(needs, digester)?, traffic.toward, most))
}

impl OnePass for OnePoint {
    #[inline(always)]
    fn take(&mut self, frame: &Frame<'_>) {
        let Some((observation, packet)) = self.intake.packet(frame) else { return };
        self.waiting.push_with(observation, |detail| packet.write_detail(frame.bytes, detail));
        if self.waiting.is_full() {
            self.hand_over();
        }
    }

    fn has_enough(&self) -> bool {
        self.intake.is_done()
    }
}

impl OnePoint {
    fn hand_over(&mut self) {
        self.synopsis.update_batch(self.waiting.as_batch());
        self.waiting.clear();
    }
}
