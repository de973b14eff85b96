//! What must hold at every step, and in the end.

use twixt_history::{Row, RowQuestion, Step};

use super::{CHECK_EVERY_STEPS, World};
use crate::agent_machine::AgentMachine;
use crate::estimates;
use crate::ledger::Stored;

impl World {
    pub(super) fn check_step(&self) -> Result<(), String> {
        self.collector.check_bounds()?;
        self.agents.iter().try_for_each(AgentMachine::check_bounds)?;
        match self.steps.is_multiple_of(CHECK_EVERY_STEPS) {
            true => self.check_stored().map(drop),
            false => Ok(()),
        }
    }

    pub(super) fn check_stored(&self) -> Result<Stored, String> {
        let durable = self.ledger.check_stored(&self.collector.durable(), self.changed_bits);
        durable.map_err(|problem| format!("if the power fails now: {problem}"))?;
        self.ledger.check_stored(&self.collector.stored(), self.changed_bits)
    }

    /// What must hold when all has healed, and still when the collector's machine then loses power.
    pub(super) fn check_end(&mut self) -> Result<(u64, u64), String> {
        self.collector.end(true);
        self.collector
            .start(self.now_ns)
            .map_err(|error| format!("no start at the end: {error}"))?;
        let stored = self.check_stored()?;
        for (agent, machine) in self.agents.iter().enumerate() {
            self.ledger.check_delivered(agent, &stored, machine.lost_max())?;
        }
        if let Some((key, reason)) = self.ledger.refused().iter().next()
            && !self.plan.has_clock_faults()
        {
            return Err(format!("{key} was refused: {reason}"));
        }
        let process = self.collector.process.as_ref().ok_or("the collector is down")?;
        let answer =
            process.answer(&RowQuestion::all(Step::Epoch)).map_err(|error| error.to_string())?;
        for (path, bytes) in self.collector.disk.files() {
            self.trace.note(self.now_ns, format_args!("{}: {bytes} bytes", path.display()));
        }
        self.note_rows(&answer.rows);
        let story = estimates::Story {
            plan: &self.plan,
            traffic: &self.traffic,
            unacknowledged: &self.ledger.unacknowledged(&stored),
            dropped: &self.agents.iter().flat_map(|agent| agent.dropped.iter().copied()).collect(),
            is_rotten: self.changed_bits > 0,
        };
        let estimated = story.check(&stored, &answer.rows)?;
        Ok((stored.len() as u64, estimated))
    }

    /// For the story: what the history has.
    fn note_rows(&mut self, rows: &[Row]) {
        for row in rows {
            let reason = row.reason.as_deref().unwrap_or("");
            self.trace.note(
                self.now_ns,
                format_args!(
                    "{}:{} {} epoch {:?}, gaps {}, packets {:?}, lost {:?}, late {}: {reason}",
                    row.series.upstream,
                    row.series.downstream,
                    row.series.algorithm,
                    row.epoch,
                    row.gaps,
                    row.packets,
                    row.lost,
                    row.late_epochs
                ),
            );
        }
    }
}
