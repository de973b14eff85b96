//! Packets in, round trips and concluded epochs out. Knows neither where frames come from nor how
//! anything is shown.

use twixt_model::{
    Epoch, EpochRule, RoundTripEstimate, RoundTripSample, Scope, SourceCounts, Span, Timestamp,
};
use twixt_observe::{PacketPath, PacketSink, PathCounts, SeenPacket, SynopsisFeed};
use twixt_synopsis::{AnySynopsis, Conclude, Question, TakeSamples};
use twixt_wire::{Observer, Skip};

/// A point that is being watched.
pub(in crate::command) struct Watching<'a> {
    feed: SynopsisFeed,
    conclude: &'a Conclude<RoundTripEstimate>,
    rule: EpochRule,
    class_names: Vec<String>,
    /// The epoch that packets fall into now.
    epoch: Option<Epoch>,
    /// Its last moment: cheaper to compare with than to divide for every packet.
    epoch_end: Option<Timestamp>,
    /// First and last packet of the epochs that ended.
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
    pub(crate) counts: PathCounts,
    /// Most state that was kept at once.
    pub(crate) synopsis_bytes: u64,
    /// Of the whole time.
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
    pub(in crate::command) fn new(
        synopsis: Box<dyn AnySynopsis>,
        conclude: &'a Conclude<RoundTripEstimate>,
        rule: EpochRule,
        class_names: Vec<String>,
    ) -> Self {
        Self {
            feed: SynopsisFeed::new(synopsis),
            conclude,
            rule,
            class_names,
            epoch: None,
            epoch_end: None,
            span: None,
            synopsis_bytes: 0,
            ended: Vec::new(),
            total: None,
        }
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
        Ok(take(self.feed.synopsis())?)
    }

    /// Epochs that ended since the last time, where time is cut.
    pub(super) fn ended(&mut self) -> Vec<WatchedEpoch> {
        std::mem::take(&mut self.ended)
    }

    /// No more frames come: the last epoch ends.
    pub(super) fn end(&mut self) -> anyhow::Result<()> {
        self.end_epoch()
    }

    /// What was found up to now. The epoch ends, and another begins.
    pub(in crate::command) fn so_far(&mut self) -> anyhow::Result<Vec<RoundTripEstimate>> {
        self.end_epoch()?;
        let whole = self.total.as_deref().map(|total| self.estimates(total)).transpose()?;
        Ok(whole.unwrap_or_default())
    }

    fn end_epoch(&mut self) -> anyhow::Result<()> {
        // An epoch without packets is none.
        let Some(span) = self.feed.take_span() else { return Ok(()) };
        self.span = Some(self.span.map_or(span, |before| before.union(span)));
        let synopsis = self.feed.synopsis();
        self.synopsis_bytes = self.synopsis_bytes.max(synopsis.state_bytes());
        let sealed = (self.conclude.cut)(synopsis)?;
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
        for estimate in &mut estimates {
            if let Scope::Class(number) = &mut estimate.scope
                && let Some(name) =
                    number.parse().ok().and_then(|at: usize| self.class_names.get(at))
            {
                number.clone_from(name);
            }
        }
        Ok(estimates)
    }
}

impl Watched {
    /// What was concluded in the end.
    pub(super) fn of(
        path: &PacketPath<Watching<'_>>,
        source: SourceCounts,
    ) -> anyhow::Result<Self> {
        let watching = path.sink();
        let whole = watching.total.as_deref().map(|total| watching.estimates(total)).transpose()?;
        Ok(Self {
            counts: path.counts(source),
            synopsis_bytes: watching.synopsis_bytes,
            whole: whole.unwrap_or_default(),
            span: watching.span,
        })
    }
}

impl PacketSink for Watching<'_> {
    #[inline(always)]
    fn take(&mut self, observer: &Observer, seen: SeenPacket<'_>) -> Result<(), Skip> {
        self.advance(seen.frame.time);
        self.feed.push(observer, seen);
        Ok(())
    }
}
