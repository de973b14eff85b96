//! Whether the two ends of a segment see the same packets.

use twixt_model::Epoch;

use crate::alignment::EpochVerdict;
use crate::event::GapReason;

/// Packets to compare before a conclusion.
const PACKETS_MIN: u64 = 256;
/// Largest share of downstream's packets that upstream may not have seen. Loss explains none.
const MISSING_UPSTREAM_SHARE_MAX: f64 = 0.1;
/// Largest share of upstream's packets that may be missing downstream. Loss may explain those.
const MISSING_DOWNSTREAM_SHARE_MAX: f64 = 0.5;

/// What the ends of a segment have had in common near boundaries.
#[derive(Debug, Default)]
pub(crate) struct SameStream {
    judged: Option<Epoch>,
    sent: u64,
    missing_downstream: u64,
    received: u64,
    missing_upstream: u64,
    common: u64,
    /// Whether the last epoch that was judged had nothing in common.
    is_missing: bool,
    /// Whether the operator was warned.
    is_warned: bool,
    warning: Option<String>,
}

impl SameStream {
    /// Notes what an epoch showed, once.
    pub(crate) fn note(&mut self, epoch: Epoch, verdict: &EpochVerdict) {
        if self.judged.is_some_and(|judged| epoch <= judged) {
            return;
        }
        self.judged = Some(epoch);
        self.is_missing = matches!(
            verdict.refused,
            Some(GapReason::NothingInCommon { .. } | GapReason::ClocksApart { .. })
        );
        let overlap = &verdict.overlap;
        self.sent += overlap.sent;
        self.missing_downstream += overlap.missing_downstream;
        self.received += overlap.received;
        self.missing_upstream += overlap.missing_upstream;
        self.common += overlap.common;
        if self.sent.max(self.received) >= PACKETS_MIN {
            self.conclude();
        }
    }

    /// Notes that a half did not come: its clock may have been set.
    pub(crate) const fn note_unpaired(&mut self) {
        self.is_missing = true;
    }

    /// Whether the last epoch that was judged had nothing in common, or one lacked a half since.
    pub(crate) const fn is_missing(&self) -> bool {
        self.is_missing
    }

    /// The warning for the operator, once.
    pub(crate) const fn warning(&mut self) -> Option<String> {
        self.warning.take()
    }

    fn conclude(&mut self) {
        let share = |part: u64, whole: u64| part as f64 / whole.max(1) as f64;
        let differ = share(self.missing_upstream, self.received) > MISSING_UPSTREAM_SHARE_MAX
            || share(self.missing_downstream, self.sent) > MISSING_DOWNSTREAM_SHARE_MAX;
        if differ && !self.is_warned {
            let all = self.common + self.missing_downstream + self.missing_upstream;
            self.warning = Some(format!(
                "the two ends of the segment do not see the same packets: {} of {all} digests in \
                 common; use the same filter or class at both points",
                self.common
            ));
        }
        *self = Self {
            judged: self.judged,
            is_missing: self.is_missing,
            is_warned: differ,
            warning: self.warning.take(),
            ..Self::default()
        };
    }
}
