//! Whether the two ends of a segment see the same packets.

use twixt_model::Epoch;

use super::alignment::Verdict;
use super::event::GapReason;

/// Packets to compare before anything is said.
const TELLING_MIN: u64 = 256;
/// So many of downstream's packets at most may be strange to upstream. Loss explains none.
const STRANGE_SHARE_MAX: f64 = 0.1;
/// So many of upstream's packets at most may be missing downstream. Loss may explain that many.
const UNSEEN_SHARE_MAX: f64 = 0.5;

/// What the ends of a segment have had in common near boundaries.
#[derive(Debug, Default)]
pub(super) struct Sameness {
    judged: Option<Epoch>,
    sent: u64,
    unseen: u64,
    received: u64,
    strange: u64,
    common: u64,
    /// Whether the last epoch that was judged had nothing in common.
    is_missing: bool,
    /// Whether the operator was told.
    is_told: bool,
    warning: Option<String>,
}

impl Sameness {
    /// Notes what an epoch showed, once.
    pub(super) fn note(&mut self, epoch: Epoch, verdict: &Verdict) {
        if self.judged.is_some_and(|judged| epoch <= judged) {
            return;
        }
        self.judged = Some(epoch);
        self.is_missing = matches!(
            verdict.refused,
            Some(GapReason::NotMeeting { .. } | GapReason::ClocksApart { .. })
        );
        let meeting = &verdict.meeting;
        self.sent += meeting.sent;
        self.unseen += meeting.unseen;
        self.received += meeting.received;
        self.strange += meeting.strange;
        self.common += meeting.common;
        if self.sent.max(self.received) >= TELLING_MIN {
            self.conclude();
        }
    }

    /// Notes that a half did not come: its clock may have been set.
    pub(super) const fn note_unpaired(&mut self) {
        self.is_missing = true;
    }

    /// Whether the last epoch that was judged had nothing in common, or one lacked a half since.
    pub(super) const fn is_missing(&self) -> bool {
        self.is_missing
    }

    /// What the operator is to be told.
    pub(super) const fn warning(&mut self) -> Option<String> {
        self.warning.take()
    }

    fn conclude(&mut self) {
        let share = |part: u64, whole: u64| part as f64 / whole.max(1) as f64;
        let differ = share(self.strange, self.received) > STRANGE_SHARE_MAX
            || share(self.unseen, self.sent) > UNSEEN_SHARE_MAX;
        if differ && !self.is_told {
            let all = self.common + self.unseen + self.strange;
            self.warning = Some(format!(
                "the two ends of the segment do not see the same stream: {} of {all} digests in \
                 common; give both points the same filter or class",
                self.common
            ));
        }
        *self = Self {
            judged: self.judged,
            is_missing: self.is_missing,
            is_told: differ,
            warning: self.warning.take(),
            ..Self::default()
        };
    }
}
