//! What is printed while the point is still being watched: round trips, or epochs as they end.

use twixt_capture::Frame;
use twixt_observe::PacketPath;
use twixt_synopsis::TakeSamples;

use super::watching::{WatchedEpoch, Watching};
use crate::exit::note;
use crate::frame_input::{OnePass, SoFar};
use crate::output::{self, RowWriter, SampleRow, round_trip_rows, round_trip_table, units};

/// Epochs of one document at most; what is printed as it comes has no bound.
const EPOCHS_MAX: usize = 1 << 14;

/// A point that is being watched, and what is shown of it meanwhile.
pub(super) struct Showing<'a> {
    path: PacketPath<Watching<'a>>,
    show: Show,
    /// Epochs for the end.
    kept: Vec<WatchedEpoch>,
    /// Epochs beyond [`EPOCHS_MAX`].
    left_out: u64,
}

/// What is shown while frames come.
pub(super) enum Show {
    /// Every round trip.
    Samples { take: TakeSamples, rows: RowWriter },
    /// The rows of every epoch.
    EpochRows(RowWriter),
    /// A table of every epoch, of so many rows.
    EpochTables(usize),
    /// Nothing: epochs are kept for the end.
    Nothing,
}

impl<'a> Showing<'a> {
    pub(super) fn new(mut path: PacketPath<Watching<'a>>, show: Show) -> anyhow::Result<Self> {
        if let Show::Samples { take, .. } = show {
            path.sink_mut().samples(take)?;
        }
        Ok(Self { path, show, kept: Vec::new(), left_out: 0 })
    }

    /// Shows the rest. Returns what was watched, and the epochs that were not shown.
    pub(super) fn finish(
        mut self,
    ) -> anyhow::Result<(PacketPath<Watching<'a>>, Vec<WatchedEpoch>)> {
        // What ends with the last epoch may be found only then.
        self.show_new()?;
        self.path.sink_mut().end()?;
        self.show_new()?;
        if self.left_out > 0 {
            let epochs = units::count(self.left_out);
            note(format_args!("{epochs} more epochs are left out; -F jsonl has no limit"));
        }
        if let Show::Samples { rows, .. } | Show::EpochRows(rows) = self.show {
            rows.finish()?;
        }
        Ok((self.path, self.kept))
    }

    fn show_new(&mut self) -> anyhow::Result<()> {
        if let Show::Samples { take, rows } = &mut self.show {
            for sample in self.path.sink_mut().samples(*take)? {
                rows.write(&SampleRow::new(&sample))?;
            }
            rows.flush()?;
        }
        for epoch in self.path.sink_mut().ended() {
            self.show_epoch(epoch)?;
        }
        match &mut self.show {
            Show::EpochRows(rows) => rows.flush(),
            _ => Ok(()),
        }
    }

    fn show_epoch(&mut self, epoch: WatchedEpoch) -> anyhow::Result<()> {
        match &mut self.show {
            Show::Samples { .. } => {}
            Show::EpochRows(rows) => {
                for row in round_trip_rows(epoch.span, &epoch.estimates) {
                    rows.write(&row)?;
                }
            }
            Show::EpochTables(shown) => output::text(&round_trip_table(&epoch, *shown))?,
            Show::Nothing if self.kept.len() < EPOCHS_MAX => self.kept.push(epoch),
            Show::Nothing => self.left_out += 1,
        }
        Ok(())
    }
}

impl OnePass for Showing<'_> {
    #[inline(always)]
    fn take(&mut self, frame: &Frame<'_>) {
        self.path.take(frame);
    }

    fn has_enough(&self) -> bool {
        self.path.has_enough()
    }

    fn end_batch(&mut self, so_far: &SoFar) -> anyhow::Result<()> {
        if let Some(time) = so_far.silent_until {
            self.path.sink_mut().advance(time);
        }
        self.show_new()
    }
}
