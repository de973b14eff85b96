//! What is remembered of one exporter and observation domain.

use std::collections::BTreeMap;

use twixt_model::Timestamp;

use super::counts::ReadCounts;
use super::uptime::StartTime;
use super::{Malformed, SELECTORS_MAX};
use crate::notice::SelectorNotice;
use crate::template::{Kept, Template, TemplateTable};

/// An exporter whose clock goes back by more was set; messages that overtake each other differ by
/// less.
const STEP_BACK_NS: i64 = 5_000_000_000;

/// What later messages of an exporter need of earlier ones.
#[derive(Clone, Debug, Default)]
pub(super) struct Stream {
    pub(super) templates: TemplateTable,
    /// Counts messages; says which stream was silent longest.
    pub(super) last_use: u64,
    /// When the exporter started, from messages that say their uptime.
    pub(super) start: Option<StartTime>,
    /// When it started, from options that say it.
    pub(super) started_ms: Option<u64>,
    sequence: Option<u32>,
    /// Messages in a row that came after a later one.
    behind: u8,
    exported: Option<Timestamp>,
    selectors: BTreeMap<u64, SelectorNotice>,
}

impl Stream {
    /// Compares a sequence number with the expected one. `follows` says what the next one will be,
    /// if that is known.
    pub(super) fn sequence(&mut self, found: u32, follows: Option<u32>, counts: &mut ReadCounts) {
        // Half of all numbers are ahead, the others behind.
        let ahead = self.sequence.map_or(0, |expected| found.wrapping_sub(expected) as i32);
        if ahead > 0 {
            counts.missing += ahead as u64;
        }
        if ahead >= 0 {
            (self.sequence, self.behind) = (follows, 0);
            return;
        }
        counts.out_of_order += 1;
        self.behind += 1;
        // What came late does not move the expectation back, unless numbers restart.
        if self.behind >= BEHIND_MAX {
            (self.sequence, self.behind) = (follows, 0);
        }
    }

    /// Takes note of when a message was sent.
    pub(super) fn exported(&mut self, time: Timestamp, counts: &mut ReadCounts) {
        if let Some(before) = self.exported
            && (before - time).as_nanos() > STEP_BACK_NS
        {
            counts.clock_steps += 1;
        }
        self.exported = Some(time);
    }

    /// Keeps a template, and counts what became of it.
    pub(super) fn keep(
        &mut self,
        number: u16,
        template: Option<Template>,
        counts: &mut ReadCounts,
    ) -> Result<(), Malformed> {
        let Some(template) = template else {
            // Records by the old layout would be nonsense.
            self.templates.remove(number);
            return Err(Malformed::Template { number });
        };
        match self.templates.keep(number, template) {
            Kept::Known => {}
            Kept::New => counts.templates += 1,
            Kept::Changed => counts.templates_changed += 1,
            Kept::Refused => counts.templates_refused += 1,
        }
        Ok(())
    }

    /// Keeps the description of a selector.
    pub(super) fn notice(&mut self, notice: SelectorNotice, counts: &mut ReadCounts) {
        let known = self.selectors.contains_key(&notice.selector_id);
        if known || self.selectors.len() < SELECTORS_MAX {
            self.selectors.insert(notice.selector_id, notice);
        } else {
            counts.selectors_refused += 1;
        }
    }

    /// The selectors that were described.
    pub(super) fn selectors(&self) -> impl Iterator<Item = &SelectorNotice> {
        self.selectors.values()
    }
}

/// So many messages in a row behind the expected number are not late: the exporter restarted.
const BEHIND_MAX: u8 = 3;
