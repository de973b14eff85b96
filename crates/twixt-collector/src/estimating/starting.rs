//! The start: points are waited for, and what the engine still needs is read from the log.

use std::io;

use tracing::{info, warn};
use twixt_engine::SeriesProgress;

use super::catching_up::CatchingUp;
use super::late::SeriesRange;
use super::replay::Replay;
use super::{BATCH_MAX, Estimating, Pace, RETRY, Stage};

impl Estimating {
    /// Ends the waiting if all points have caught up, or were waited for long enough.
    pub(super) fn begin_when_due(&mut self) {
        let Stage::Waiting { progress, points, until } = &mut self.stage else { return };
        if !points.is_over() && self.clock.instant() < *until {
            return;
        }
        let replay = Replay::new(&self.log, progress, &self.segments, self.clock.now());
        match replay.and_then(|replay| Ok((replay, self.late.gaps().map_err(io::Error::other)?))) {
            Ok((replay, gaps)) => {
                let progress = std::mem::take(progress);
                self.begin(replay, progress, &gaps);
            }
            Err(problem) => {
                *until = self.clock.instant() + RETRY;
                self.note_unreadable(&problem);
            }
        }
    }

    /// Has the engine remember gaps whose halves may both be stored by now, and hands over what it
    /// needs from now on.
    fn begin(&mut self, replay: Replay, progress: Vec<SeriesProgress>, gaps: &[SeriesRange]) {
        gaps.iter().for_each(|(series, range)| self.engine.note_gap(series, *range));
        let needed = |progress: &SeriesProgress| {
            (progress.series.clone(), (progress.replay_from, progress.short_delays))
        };
        self.needed = progress.iter().map(needed).collect();
        let retry_at = self.clock.instant();
        self.stage = Stage::Replaying { replay, progress, retry_at };
    }

    /// Hands over some of what the log has and the engine still needs.
    pub(super) fn replay(&mut self) -> io::Result<()> {
        let now = self.clock.instant();
        let Stage::Replaying { replay, progress, retry_at } = &mut self.stage else {
            return Ok(());
        };
        if now < *retry_at {
            return Ok(());
        }
        for _ in 0..BATCH_MAX {
            match replay.next() {
                Ok(Some(sealed)) => self.engine.receive(sealed),
                Ok(None) => {
                    let (replayed, progress) = (replay.replayed(), std::mem::take(progress));
                    return self.end_replay(replayed, &progress);
                }
                // Estimates without it would be wrong. It may be readable later.
                Err(problem) => {
                    *retry_at = now + RETRY;
                    self.note_unreadable(&problem);
                    break;
                }
            }
        }
        self.tell().map(drop)
    }

    fn note_unreadable(&mut self, problem: &io::Error) {
        self.metrics.note_readable(false);
        if let Some(times) = self.read_problem.note(1, self.clock.instant()) {
            warn!(%problem, times, "cannot read stored epochs; estimating waits");
        }
    }

    fn end_replay(&mut self, replayed: u64, progress: &[SeriesProgress]) -> io::Result<()> {
        self.needed.clear();
        self.metrics.note_readable(true);
        self.metrics.replayed.inc_by(replayed);
        if replayed > 0 {
            info!(epochs = replayed, "replayed");
        }
        // Meanwhile points had to wait, and are behind again.
        self.stage = self.following(CatchingUp::of(progress));
        if !self.tell()? {
            self.take_place(self.prepare());
        }
        Ok(())
    }

    pub(super) fn following(&self, behind: CatchingUp) -> Stage {
        let now = self.clock.instant();
        let patient_until = now + self.resume_wait;
        Stage::Following(Pace {
            behind,
            patient_until,
            ticked: now,
            publish_after: now,
            look_after: now,
        })
    }
}
