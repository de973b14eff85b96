//! Epochs that end at a place among the packets: the leader says where with markers, the
//! follower cuts there.
//!
//! No packet is ever late and none is kept near boundaries: its place decides, not its time.

use std::collections::VecDeque;

use twixt_model::{Batch, Delay, Epoch, EpochRule, PointId, Span, Timestamp};

use super::config::MeterConfig;
use super::sealer::{OpenEpoch, Sealer};
use crate::cut::{self, TimedCut};
use crate::marker::Marker;
use crate::tally::Tally;

/// Most markers that wait to be sent. The oldest makes room, which the follower will notice.
const OUTGOING_MAX: usize = 64;

/// Upstream: ends epochs when `advance` passes their end.
#[derive(Debug)]
pub(super) struct Leader {
    cut: TimedCut,
    stream: u64,
    run: u64,
    next_sequence: u64,
    current: Option<Epoch>,
    open: Option<OpenEpoch>,
    outgoing: VecDeque<Marker>,
}

impl Leader {
    pub(super) fn new(config: &MeterConfig) -> Self {
        Self {
            cut: TimedCut::new(config.rule, config.shift, Delay::ZERO),
            stream: Marker::stream_of(&config.domain, &config.point, &config.class),
            run: config.run,
            next_sequence: 0,
            current: None,
            open: None,
            outgoing: VecDeque::new(),
        }
    }

    pub(super) fn observe(&mut self, batch: Batch<'_>, span: Span, sealer: &Sealer) {
        self.current.get_or_insert_with(|| self.cut.epoch_of(span.start));
        self.open.get_or_insert_with(|| sealer.open()).add(batch, span);
    }

    pub(super) fn advance(&mut self, now: Timestamp, sealer: &mut Sealer) {
        let epoch = self.cut.epoch_of(now);
        match self.current {
            Some(current) if current < epoch => self.end(current, epoch, sealer),
            Some(_) => {}
            None => {
                // Nothing was seen yet: the follower may start as cleanly as we do.
                self.send(Epoch(epoch.0.saturating_sub(1)), epoch, sealer);
                self.current = Some(epoch);
            }
        }
    }

    pub(super) fn finish(&mut self, sealer: &mut Sealer) {
        if let Some(current) = self.current {
            self.end(current, Epoch(current.0.saturating_add(1)), sealer);
            self.current = None;
        }
    }

    pub(super) fn poll_marker(&mut self) -> Option<Marker> {
        self.outgoing.pop_front()
    }

    pub(super) fn tally(&mut self, sealer: &Sealer) -> &mut Tally {
        &mut self.open.get_or_insert_with(|| sealer.open()).tally
    }

    fn end(&mut self, current: Epoch, next: Epoch, sealer: &mut Sealer) {
        let open = self.open.take().unwrap_or_else(|| sealer.open());
        sealer.seal(current, open);
        sealer.seal_silent(Epoch(current.0.saturating_add(1)), next);
        self.send(current, next, sealer);
        self.current = Some(next);
    }

    fn send(&mut self, ends: Epoch, starts: Epoch, sealer: &mut Sealer) {
        if self.outgoing.len() == OUTGOING_MAX {
            self.outgoing.pop_front();
            sealer.counts.unsent_markers += 1;
        }
        let (stream, run, sequence) = (self.stream, self.run, self.next_sequence);
        self.outgoing.push_back(Marker { stream, run, sequence, ends, starts });
        self.next_sequence += 1;
    }
}

/// Downstream: ends epochs where the markers are.
#[derive(Debug)]
pub(super) struct Follower {
    rule: EpochRule,
    stream: u64,
    last: Option<Marker>,
    open: Option<OpenEpoch>,
}

impl Follower {
    pub(super) fn new(config: &MeterConfig, upstream: &PointId) -> Self {
        let stream = Marker::stream_of(&config.domain, upstream, &config.class);
        Self { rule: config.rule, stream, last: None, open: None }
    }

    pub(super) fn observe(&mut self, batch: Batch<'_>, span: Span, sealer: &Sealer) {
        self.open.get_or_insert_with(|| sealer.open()).add(batch, span);
    }

    pub(super) fn observe_marker(&mut self, marker: &Marker, sealer: &mut Sealer) {
        if !self.is_ours(marker) {
            sealer.counts.foreign_markers += 1;
            return;
        }
        let same_run = self.last.filter(|last| last.run == marker.run);
        if same_run.is_some_and(|last| marker.sequence <= last.sequence) {
            sealer.counts.old_markers += 1;
            return;
        }
        match same_run {
            Some(last) if follows(marker, &last) => self.seal_whole(marker, sealer),
            _ => self.seal_torn(marker, sealer),
        }
        self.last = Some(*marker);
    }

    /// Whatever came after the last marker was never ended: it cannot be compared.
    pub(super) fn finish(&mut self, sealer: &mut Sealer) {
        if let (Some(last), Some(open)) = (self.last, self.open.take())
            && !open.is_silent()
        {
            sealer.seal_torn(last.starts, open);
        }
    }

    pub(super) fn tally(&mut self, sealer: &Sealer) -> &mut Tally {
        &mut self.open.get_or_insert_with(|| sealer.open()).tally
    }

    fn is_ours(&self, marker: &Marker) -> bool {
        marker.stream == self.stream
            && marker.ends < marker.starts
            && cut::exists(self.rule, marker.ends)
            && cut::exists(self.rule, marker.starts)
    }

    fn seal_whole(&mut self, marker: &Marker, sealer: &mut Sealer) {
        let open = self.open.take().unwrap_or_else(|| sealer.open());
        sealer.seal(marker.ends, open);
        sealer.seal_silent(Epoch(marker.ends.0 + 1), marker.starts);
    }

    /// A marker was lost, or upstream restarted, or we did: where the packets so far belong is
    /// not known. They are sealed as the oldest epoch that they may belong to; the others that
    /// they may belong to are missing.
    fn seal_torn(&mut self, marker: &Marker, sealer: &mut Sealer) {
        let expected = match self.last {
            Some(last) if last.run == marker.run => last.sequence + 1,
            Some(_) => 0,
            // We began in the midst: nothing was expected.
            None => marker.sequence,
        };
        let lost = marker.sequence.saturating_sub(expected);
        sealer.counts.lost_markers = sealer.counts.lost_markers.saturating_add(lost);
        if let Some(open) = self.open.take() {
            sealer.seal_torn(self.last.map_or(marker.ends, |last| last.starts), open);
        } else if let Some(last) = self.last {
            sealer.seal_torn(last.starts, sealer.open());
        }
    }
}

/// Whether no marker is missing between the two.
const fn follows(marker: &Marker, last: &Marker) -> bool {
    marker.sequence - last.sequence == 1 && marker.ends.0 == last.starts.0
}
