//! The thread that has the log.

use std::collections::BTreeSet;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender};
use std::time::{Duration, Instant};

use tracing::{debug, error, info, warn};
use twixt_delivery::{Receipt, RefusalCode, RefusedEpoch};
use twixt_measure::{Sealed, Stream};
use twixt_model::{Epoch, Span, Timestamp};
use twixt_store::{Appended, Depth, EpochEntry, Log, Query, StoreError};

use super::judge::Judge;
use super::runs::Report;
use super::writers::{Writers, is_final};
use super::{
    Arrived, EpochRetention, JournalConfig, JournalMetrics, Refusal, StoredEpoch, Submission,
    Unavailable,
};
use crate::clock::{AgeReference, WallClock};

/// Requests that share one sync.
const GROUP_MAX: usize = 64;
/// How often old days are looked for.
const RETENTION_EVERY: Duration = Duration::from_secs(600);
/// What the runs of points are read from after a start: enough to know who reports at present.
const RUNS_READ_NS: i64 = 24 * 3_600 * 1_000_000_000;
/// Epochs that were written while their request failed, and that are handed on when they come
/// again. Beyond this they are estimated after the next start only.
const UNSETTLED_MAX: usize = 65_536;

/// Has the log, and decides what goes into it.
#[derive(Debug)]
pub(crate) struct Journal {
    writers: Writers,
    judge: Judge,
    retention: EpochRetention,
    /// Written, but never acknowledged, nor handed on.
    unsettled: BTreeSet<(String, String, Epoch)>, // at most UNSETTLED_MAX
    stored: SyncSender<StoredEpoch>,
    metrics: JournalMetrics,
    was_healthy: bool,
    clock: WallClock,
    age_reference: AgeReference,
    /// When old days were looked for.
    forgotten: Instant,
}

impl Journal {
    /// Reads from the log what must be known of it.
    pub(crate) fn open(
        log: Log,
        config: &JournalConfig,
        stored: SyncSender<StoredEpoch>,
        metrics: JournalMetrics,
    ) -> Result<Self, StoreError> {
        let points = if log.has_folder()? { log.points()? } else { Vec::new() };
        let mut judge = Judge::new(config, points);
        let now = config.clock.now();
        if judge.points() > 0 {
            if let Some(day) = log.newest_day()? {
                judge.note_moment(day.span().start, now);
            }
            read_runs(&log, now, &mut judge)?;
        }
        metrics.points.set(judge.points() as i64);
        Ok(Self {
            writers: Writers::new(log, config.writers_max),
            judge,
            retention: config.retention,
            unsettled: BTreeSet::new(),
            stored,
            metrics,
            was_healthy: true,
            clock: config.clock.clone(),
            age_reference: AgeReference::default(),
            forgotten: config.clock.instant(),
        })
    }

    /// Serves requests until all senders are gone.
    pub(crate) fn run(mut self, submissions: &Receiver<Submission>) {
        self.forget();
        loop {
            match submissions.recv_timeout(RETENTION_EVERY) {
                Ok(first) => {
                    let more = submissions.try_iter().take(GROUP_MAX - 1);
                    let group: Vec<Submission> = std::iter::once(first).chain(more).collect();
                    self.commit(group);
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            self.forget_when_due();
        }
        debug!("journal closed");
    }

    /// Stores what some requests brought, makes it durable, and answers.
    pub(crate) fn commit(&mut self, group: Vec<Submission>) {
        let started = self.clock.instant();
        let now = self.moments();
        let drafts: Vec<Draft> =
            group.into_iter().map(|submission| self.append(submission, now)).collect();
        let failed = self.writers.sync();
        self.metrics.commits.inc();
        let took = self.clock.instant().saturating_duration_since(started);
        self.metrics.seconds.observe(took.as_secs_f64());
        let problem = drafts.iter().find_map(|draft| draft.problem.clone());
        self.note_health(problem.or_else(|| failed.values().next().cloned()));
        for draft in drafts {
            let lost = draft.points.iter().find_map(|point| failed.get(point)).cloned();
            match draft.problem.clone().or(lost) {
                Some(text) => self.give_back(draft, text),
                None => self.acknowledge(draft),
            }
        }
        self.metrics.points.set(self.judge.points() as i64);
    }

    /// What time it is, and the one that ages count from.
    fn moments(&mut self) -> Moments {
        let now = self.clock.now();
        let (old_by, is_doubtful) =
            self.age_reference.moment(now, self.judge.newest(), self.clock.instant());
        if is_doubtful && self.retention.age_max.is_some() {
            warn!(
                "the clock is more than a day ahead of the newest epoch: ages count from the \
                 epoch"
            );
        }
        Moments { now, old_by }
    }

    fn append(&mut self, submission: Submission, now: Moments) -> Draft {
        let Submission { mut epochs, refused, answer } = submission;
        let mut draft = Draft::new(answer, refused);
        // One file after the other: changing between two costs more than appending.
        epochs.sort_by(|one, other| {
            one.sealed
                .point
                .cmp(&other.sealed.point)
                .then(one.sealed.epoch.cmp(&other.sealed.epoch))
        });
        for arrived in epochs {
            if let Err(text) = self.append_one(arrived, now, &mut draft) {
                draft.problem = Some(text);
                break;
            }
        }
        draft
    }

    /// Appends an epoch or refuses it; an error is the disk's.
    fn append_one(
        &mut self,
        arrived: Arrived,
        Moments { now, old_by }: Moments,
        draft: &mut Draft,
    ) -> Result<(), String> {
        let Arrived { index, sealed, bytes, memory } = arrived;
        let span = match self.judge.admit(&sealed, now, old_by) {
            Ok(span) => span,
            Err(reason) => {
                draft.refuse(index, &sealed, &reason);
                return Ok(());
            }
        };
        let stream = Stream::of(&sealed).to_string();
        let entry = EpochEntry { stream: &stream, span, epoch: sealed.epoch };
        let point = sealed.point.0.clone();
        draft.points.insert(point.clone());
        match self.writers.append(&point, &entry, &bytes) {
            Ok(Appended::Stored) => {
                self.judge.note(&sealed, span, now);
                draft.receipt.stored += 1;
                draft.new.push((stream, StoredEpoch { sealed, memory }));
            }
            Ok(Appended::AlreadyThere) => {
                draft.receipt.duplicates += 1;
                if self.unsettled.contains(&(point, stream.clone(), sealed.epoch)) {
                    draft.new.push((stream, StoredEpoch { sealed, memory }));
                }
            }
            Err(error) if is_final(&error) => {
                draft.refuse(index, &sealed, &Refusal::Log(error.to_string()));
            }
            Err(error) => return Err(error.to_string()),
        }
        Ok(())
    }

    /// All of a request is durable: says so, and hands on what is new.
    fn acknowledge(&mut self, draft: Draft) {
        let Draft { answer, mut receipt, new, .. } = draft;
        receipt.refused.sort_by_key(|refused| refused.index);
        self.metrics.stored.inc_by(receipt.stored);
        self.metrics.duplicates.inc_by(receipt.duplicates);
        for refused in &receipt.refused {
            let code = refused.code.unwrap_or(RefusalCode::Unknown);
            self.metrics.refused.get_or_create(&[("reason", code.name())]).inc();
        }
        if let Some(refused) = receipt.refused.first() {
            let (point, epoch, reason) = (&refused.point, refused.epoch, &refused.reason);
            warn!(point, epoch, reason, epochs = receipt.refused.len(), "epochs refused");
        }
        // The agent may be gone; what is stored is stored.
        let _ = answer.send(Ok(receipt));
        for (stream, epoch) in new {
            let sealed = &epoch.sealed;
            self.unsettled.remove(&(sealed.point.0.clone(), stream, sealed.epoch));
            // Waits while estimating falls behind. If that has ended, the next start catches up.
            let _ = self.stored.send(epoch);
        }
    }

    /// Nothing of a request counts, though some of it may be on disk.
    fn give_back(&mut self, draft: Draft, text: String) {
        for (stream, StoredEpoch { sealed, .. }) in draft.new {
            if self.unsettled.len() < UNSETTLED_MAX {
                self.unsettled.insert((sealed.point.0.clone(), stream, sealed.epoch));
            }
        }
        let _ = draft.answer.send(Err(Unavailable::Storage(text)));
    }

    /// Says once when storing begins to fail, and once when it works again.
    fn note_health(&mut self, problem: Option<String>) {
        let is_healthy = problem.is_none();
        self.metrics.healthy.set(i64::from(is_healthy));
        if let Some(problem) = problem {
            self.metrics.failures.inc();
            if self.was_healthy {
                error!(problem, "cannot store epochs; agents keep them and retry");
            }
        } else if !self.was_healthy {
            info!("epochs are stored again");
        }
        self.was_healthy = is_healthy;
    }

    /// Deletes what is too old or too much, now and then.
    pub(crate) fn forget_when_due(&mut self) {
        let since = self.clock.instant().saturating_duration_since(self.forgotten);
        if since >= RETENTION_EVERY {
            self.forget();
        }
    }

    fn forget(&mut self) {
        self.forgotten = self.clock.instant();
        let EpochRetention { age_max, bytes_max } = self.retention;
        let is_empty = matches!(self.writers.log().has_folder(), Ok(false));
        if age_max.is_none() && bytes_max.is_none() || is_empty {
            return;
        }
        self.writers.close();
        let old_by = self.moments().old_by;
        let log = self.writers.log();
        let before = age_max.map(|age| {
            let age_ns = i64::try_from(age.as_nanos()).unwrap_or(i64::MAX);
            Timestamp::from_nanos(old_by.as_nanos().saturating_sub(age_ns))
        });
        let removals =
            [before.map(|before| log.expire(before)), bytes_max.map(|bytes| log.bound(bytes))];
        for removal in removals.into_iter().flatten() {
            match removal {
                Ok(removed) => {
                    self.metrics.expired_days.inc_by(removed.days);
                }
                Err(problem) => warn!(%problem, "cannot delete old days"),
            }
        }
    }
}

/// Moments that epochs are judged by.
#[derive(Clone, Copy, Debug)]
struct Moments {
    now: Timestamp,
    /// Ages count from this.
    old_by: Timestamp,
}

/// A request whose epochs are appended, but not durable yet.
#[derive(Debug)]
struct Draft {
    answer: tokio::sync::oneshot::Sender<Result<Receipt, Unavailable>>,
    receipt: Receipt,
    /// To be handed on, with their streams.
    new: Vec<(String, StoredEpoch)>,
    /// Whose files must become durable.
    points: BTreeSet<String>,
    /// What the disk had against it.
    problem: Option<String>,
}

impl Draft {
    fn new(
        answer: tokio::sync::oneshot::Sender<Result<Receipt, Unavailable>>,
        refused: Vec<RefusedEpoch>,
    ) -> Self {
        let receipt = Receipt { refused, ..Receipt::default() };
        Self { answer, receipt, new: Vec::new(), points: BTreeSet::new(), problem: None }
    }

    fn refuse(&mut self, index: usize, sealed: &Sealed, reason: &Refusal) {
        self.receipt.refused.push(RefusedEpoch {
            point: Some(sealed.point.0.clone()),
            epoch: Some(sealed.epoch.0),
            ..reason.of_record(index)
        });
    }
}

/// Who reported lately, by the names of the streams.
fn read_runs(log: &Log, now: Timestamp, judge: &mut Judge) -> Result<(), StoreError> {
    let start = Timestamp::from_nanos(now.as_nanos().saturating_sub(RUNS_READ_NS));
    let span = Span { start, end: Timestamp::MAX };
    let mut scan = log.scan(Query::between(span).to_depth(Depth::Heads))?;
    for found in scan.by_ref() {
        let Ok(stream) = found.stream.parse::<Stream>() else { continue };
        let (domain, point) = (stream.domain.as_str(), found.point.as_str());
        judge.note_run(Report { domain, point, run: stream.run, span: found.span }, now);
    }
    scan.finish().map(drop)
}
