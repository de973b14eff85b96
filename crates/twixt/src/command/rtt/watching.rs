//! Frames in, round trips and concluded epochs out. Knows neither where frames come from nor how
//! anything is shown.

use twixt_capture::{Frame, SourceCounts};
use twixt_model::{
    BatchBuffer, Epoch, EpochRule, RoundTripEstimate, RoundTripSample, Scope, Span, Timestamp,
};
use twixt_synopsis::{AnySynopsis, Conclude, Question, TakeSamples};

use crate::measure::{Intake, PointCounts};

/// A point that is being watched.
pub(super) struct Watching<'a> {
    intake: Intake,
    synopsis: Box<dyn AnySynopsis>,
    conclude: &'a Conclude<RoundTripEstimate>,
    rule: EpochRule,
    /// The epoch that packets fall into now.
    epoch: Option<Epoch>,
    /// Its last moment: cheaper to compare with than to divide for every packet.
    epoch_end: Option<Timestamp>,
    /// Packets that the synopsis was not yet given.
    waiting: BatchBuffer,
    /// First and last packet of the epoch.
    span: Option<Span>,
    /// Most state that was kept at once.
    synopsis_bytes: u64,
    /// Epochs that ended, where time is cut.
    ended: Vec<WatchedEpoch>,
    total: Option<Box<dyn AnySynopsis>>,
}

/// What was concluded at a point.
#[derive(Debug)]
pub(crate) struct Watched {
    pub(crate) counts: PointCounts,
    /// Most state that was kept at once.
    pub(crate) synopsis_bytes: u64,
    /// Of the whole stretch.
    pub(crate) whole: Vec<RoundTripEstimate>,
    pub(crate) span: Option<Span>,
}

/// What was concluded of one epoch.
#[derive(Debug)]
pub(crate) struct WatchedEpoch {
    pub(crate) span: Span,
    pub(crate) estimates: Vec<RoundTripEstimate>,
}

impl<'a> Watching<'a> {
    pub(super) fn new(
        intake: Intake,
        synopsis: Box<dyn AnySynopsis>,
        conclude: &'a Conclude<RoundTripEstimate>,
        rule: EpochRule,
    ) -> Self {
        Self {
            intake,
            synopsis,
            conclude,
            rule,
            epoch: None,
            epoch_end: None,
            waiting: BatchBuffer::new(),
            span: None,
            synopsis_bytes: 0,
            ended: Vec::new(),
            total: None,
        }
    }

    /// Takes a frame.
    #[inline(always)]
    pub(super) fn take(&mut self, frame: &Frame<'_>) {
        let Some((observation, packet)) = self.intake.packet(frame) else { return };
        self.advance(frame.time);
        let here = Span::at(frame.time);
        self.span = Some(self.span.map_or(here, |span| span.union(here)));
        self.waiting.push_with(observation, |detail| packet.write_detail(frame.bytes, detail));
        if self.waiting.is_full() {
            self.hand_over();
        }
    }

    /// Whether no more packets are wanted.
    pub(super) const fn has_enough(&self) -> bool {
        self.intake.is_done()
    }

    /// Ends the epoch if a later one has begun by then. Packets that come late count where they
    /// come.
    #[inline]
    pub(super) fn advance(&mut self, time: Timestamp) {
        if self.epoch_end.is_none_or(|end| time > end) {
            self.enter_epoch(self.rule.epoch_of(time));
        }
    }

    #[cold]
    fn enter_epoch(&mut self, epoch: Epoch) {
        if self.epoch.is_some() {
            self.end_epoch().expect("a synopsis is of its own algorithm and settings");
        }
        self.epoch = Some(epoch);
        self.epoch_end = Some(self.rule.span_of(epoch).end);
    }

    /// Round trips that were found since the last time, the first of which only begins to keep
    /// them.
    pub(super) fn samples(&mut self, take: TakeSamples) -> anyhow::Result<Vec<RoundTripSample>> {
        self.hand_over();
        Ok(take(self.synopsis.as_mut())?)
    }

    /// Epochs that ended since the last time, where time is cut.
    pub(super) fn ended(&mut self) -> Vec<WatchedEpoch> {
        std::mem::take(&mut self.ended)
    }

    /// No more frames come: the last epoch ends.
    pub(super) fn end(&mut self) -> anyhow::Result<()> {
        self.end_epoch()
    }

    /// What was concluded in the end.
    pub(super) fn conclude(self, source: SourceCounts) -> anyhow::Result<Watched> {
        let whole = self.total.as_deref().map(|total| self.estimates(total)).transpose()?;
        Ok(Watched {
            counts: self.intake.counts(source),
            synopsis_bytes: self.synopsis_bytes,
            whole: whole.unwrap_or_default(),
            span: self.intake.span(),
        })
    }

    fn hand_over(&mut self) {
        self.synopsis.update_batch(self.waiting.as_batch());
        self.waiting.clear();
    }

    fn end_epoch(&mut self) -> anyhow::Result<()> {
        self.hand_over();
        // An epoch without packets is none.
        if self.span.take().is_none() {
            return Ok(());
        }
        self.synopsis_bytes = self.synopsis_bytes.max(self.synopsis.state_bytes());
        let sealed = (self.conclude.cut)(self.synopsis.as_mut())?;
        if self.rule != EpochRule::WHOLE {
            let estimates = self.estimates(sealed.as_ref())?;
            let epoch = self.epoch.expect("a packet was in it");
            self.ended.push(WatchedEpoch { span: self.rule.span_of(epoch), estimates });
        }
        match &mut self.total {
            Some(total) => total.try_merge(sealed.as_ref())?,
            None => self.total = Some(sealed),
        }
        Ok(())
    }

    fn estimates(&self, synopsis: &dyn AnySynopsis) -> anyhow::Result<Vec<RoundTripEstimate>> {
        let question = Question::about(Span::at(Timestamp::from_nanos(0)));
        let mut estimates = (self.conclude.conclude)(synopsis, &question)?;
        let names: Vec<&str> = self.intake.observer().class_names().collect();
        for estimate in &mut estimates {
            if let Scope::Class(number) = &mut estimate.scope
                && let Some(name) = number.parse().ok().and_then(|at: usize| names.get(at))
            {
                *number = (*name).to_owned();
            }
        }
        Ok(estimates)
    }
}
