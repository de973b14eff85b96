//! Frames in, concluded epochs out. Knows neither where frames come from nor how estimates are
//! shown.

use std::io::{self, Write};

use twixt_capture::Frame;
use twixt_model::{
    BatchBuffer, Epoch, EpochRule, RoundTripEstimate, RoundTripSample, Scope, Span, Timestamp,
};
use twixt_synopsis::{AnySynopsis, Conclude, Question, TakeSamples};
use twixt_wire::{LinkType, Observer, Skip, SkipCounts};

use crate::measure::{PointCounts, is_timeless};
use crate::output::{Format, SampleRow, csv_line};

/// A point that is being watched.
pub(super) struct Watching<'a> {
    observer: Observer,
    synopsis: Box<dyn AnySynopsis>,
    conclude: &'a Conclude<RoundTripEstimate>,
    rule: EpochRule,
    /// The epoch that packets fall into now.
    epoch: Option<Epoch>,
    buffer: BatchBuffer,
    samples: Option<Samples>,
    /// Packets still wanted.
    most: u64,
    /// First and last packet of the epoch, and of all.
    span: Option<Span>,
    watched: Watched,
    total: Option<Box<dyn AnySynopsis>>,
    skipped: SkipCounts,
}

/// What was concluded at a point.
#[derive(Debug, Default)]
pub(crate) struct Watched {
    pub(crate) counts: PointCounts,
    /// Most state that was kept at once.
    pub(crate) synopsis_bytes: u64,
    /// Of the whole stretch.
    pub(crate) whole: Vec<RoundTripEstimate>,
    pub(crate) span: Option<Span>,
    /// Of each epoch, where time was cut.
    pub(crate) epochs: Vec<WatchedEpoch>,
}

/// What was concluded of one epoch.
#[derive(Debug)]
pub(crate) struct WatchedEpoch {
    pub(crate) span: Span,
    pub(crate) estimates: Vec<RoundTripEstimate>,
}

/// Where single round trips go.
struct Samples {
    take: TakeSamples,
    format: Format,
    out: io::BufWriter<io::Stdout>,
}

impl<'a> Watching<'a> {
    pub(super) fn new(
        observer: Observer,
        synopsis: Box<dyn AnySynopsis>,
        conclude: &'a Conclude<RoundTripEstimate>,
        rule: EpochRule,
        most: u64,
    ) -> Self {
        Self {
            observer,
            synopsis,
            conclude,
            rule,
            epoch: None,
            buffer: BatchBuffer::new(),
            samples: None,
            most,
            span: None,
            watched: Watched::default(),
            total: None,
            skipped: SkipCounts::default(),
        }
    }

    /// Prints round trips as they are found, from now on.
    pub(super) fn print_samples(
        &mut self,
        take: TakeSamples,
        format: Format,
    ) -> anyhow::Result<()> {
        take(self.synopsis.as_mut())?;
        let mut out = io::BufWriter::new(io::stdout());
        if format == Format::Csv {
            writeln!(out, "{}", SampleRow::HEADER)?;
        }
        self.samples = Some(Samples { take, format, out });
        Ok(())
    }

    /// Takes a frame.
    #[inline]
    pub(super) fn take(&mut self, frame: &Frame<'_>) {
        if let Err(skip) = self.measure(frame) {
            self.skipped.count(skip);
        }
    }

    /// Whether no more packets are wanted.
    pub(super) const fn has_enough(&self) -> bool {
        self.most == 0
    }

    /// Hands on what is buffered, and prints what was found.
    pub(super) fn flush(&mut self) -> anyhow::Result<()> {
        self.update();
        match &mut self.samples {
            Some(samples) => samples.print(self.synopsis.as_mut()),
            None => Ok(()),
        }
    }

    /// Counts frames that were never handed over.
    pub(super) fn count_unread(&mut self, skipped: u64, dropped: Option<u64>) {
        self.skipped.add(Skip::NoTime, skipped);
        self.watched.counts.dropped = dropped;
    }

    /// What was concluded in the end.
    pub(super) fn finish(mut self) -> anyhow::Result<Watched> {
        self.flush()?;
        self.end_epoch()?;
        let whole = self.total.as_deref().map(|total| self.estimates(total));
        let skipped = self.skipped.iter().filter(|(_, frames)| *frames > 0);
        self.watched.counts.skipped =
            skipped.map(|(skip, frames)| (skip.to_string(), frames)).collect();
        Ok(Watched { whole: whole.transpose()?.unwrap_or_default(), ..self.watched })
    }

    #[inline]
    fn measure(&mut self, frame: &Frame<'_>) -> Result<(), Skip> {
        if self.most == 0 {
            return Ok(());
        }
        if is_timeless(frame.time) {
            return Err(Skip::NoTime);
        }
        let link = LinkType(frame.link_type);
        let (observation, detail) =
            self.observer.observe_detailed(link, frame.bytes, frame.wire_length, frame.time)?;
        self.advance(frame.time);
        self.buffer.push_detailed(observation, detail);
        self.most -= 1;
        self.watched.counts.packets += 1;
        if self.buffer.is_full() {
            self.update();
        }
        Ok(())
    }

    fn update(&mut self) {
        self.synopsis.update_batch(self.buffer.as_batch());
        self.buffer.clear();
    }

    /// Ends the epoch if a later one has begun. Packets that come late count where they come.
    #[inline]
    fn advance(&mut self, time: Timestamp) {
        let epoch = self.rule.epoch_of(time);
        if self.epoch.is_some_and(|current| current < epoch) {
            self.update();
            self.end_epoch().expect("a synopsis is of its own algorithm and settings");
        }
        if self.epoch.is_none_or(|current| current < epoch) {
            self.epoch = Some(epoch);
        }
        let span = Span::at(time);
        self.span = Some(self.span.map_or(span, |known| known.union(span)));
    }

    fn end_epoch(&mut self) -> anyhow::Result<()> {
        let Some(span) = self.span.take() else { return Ok(()) };
        let bytes = self.synopsis.state_bytes();
        self.watched.synopsis_bytes = self.watched.synopsis_bytes.max(bytes);
        self.watched.span = Some(self.watched.span.map_or(span, |known| known.union(span)));
        let sealed = (self.conclude.cut)(self.synopsis.as_mut())?;
        if self.rule != EpochRule::WHOLE {
            let estimates = self.estimates(sealed.as_ref())?;
            let epoch = self.epoch.expect("a packet was in it");
            self.watched.epochs.push(WatchedEpoch { span: self.rule.span_of(epoch), estimates });
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
        let names: Vec<&str> = self.observer.class_names().collect();
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

impl Samples {
    fn print(&mut self, synopsis: &mut dyn AnySynopsis) -> anyhow::Result<()> {
        for sample in (self.take)(synopsis)? {
            self.write(&sample)?;
        }
        self.out.flush()?;
        Ok(())
    }

    fn write(&mut self, sample: &RoundTripSample) -> anyhow::Result<()> {
        let row = SampleRow::new(sample);
        match self.format {
            Format::Csv => writeln!(self.out, "{}", csv_line(&row)?)?,
            _ => {
                serde_json::to_writer(&mut self.out, &row).map_err(io::Error::from)?;
                writeln!(self.out)?;
            }
        }
        Ok(())
    }
}
