//! Compares epochs once more: the pairing of the engine, asked for flows.

use std::sync::Arc;

use twixt_engine::MISSING_BESIDE;
use twixt_history::Row;
use twixt_measure::{Pairing, PairingConfig, PairingEvent, QuestionTemplate, Sealed};
use twixt_model::{Delay, Epoch, Scope};
use twixt_store::{Found, Log, Payloads};
use twixt_synopsis::{By, FlowNames, KnownFlow, Purpose};

use super::names::Names;
use super::records::{Records, Role};
use super::series::Comparable;
use super::summing::FlowSums;

/// What became of it.
#[derive(Debug, Default)]
pub(super) struct Compared {
    /// Epochs that were compared.
    pub(super) epochs: u64,
    /// Why flows are missing.
    pub(super) reason: Option<String>,
    /// Records that could not be used.
    pub(super) problems: Vec<String>,
}

/// A comparison on its way.
struct Comparing<'a> {
    comparable: &'a Comparable,
    records: &'a Records,
    pairing: Pairing,
    /// The newest epochs of upstream and downstream.
    reached: [Option<Epoch>; 2],
    names: Names,
    /// What synopses can name by themselves.
    flow_names: FlowNames,
    /// Whether others named flows.
    is_told: bool,
    /// Whether it takes more than names to ask about flows: tables of large flows know no classes.
    weighs_classes: bool,
    compared: Compared,
}

/// Reads and compares epochs, and adds up what they tell of flows.
pub(super) fn compare(
    log: &Log,
    comparable: &Comparable,
    records: &Records,
    sums: &mut FlowSums,
) -> Compared {
    let mut comparing = Comparing::new(comparable, records);
    let mut payloads = log.payloads();
    for (epoch, role, found) in &records.found {
        match read(&mut payloads, found) {
            Ok(sealed) => comparing.receive(*epoch, *role, sealed),
            Err(problem) => comparing.compared.problems.push(problem),
        }
        comparing.drain(sums);
    }
    comparing.pairing.finish();
    comparing.drain(sums);
    comparing.compared.reason = comparing.reason();
    comparing.compared
}

impl<'a> Comparing<'a> {
    fn new(comparable: &'a Comparable, records: &'a Records) -> Self {
        let question = QuestionTemplate {
            by: By::Flow,
            reference: comparable.shift(),
            ..QuestionTemplate::default()
        };
        let pairing = Pairing::new(PairingConfig {
            segment: comparable.segment(),
            class: comparable.series.class.clone(),
            question,
            patience: Delay::ZERO,
        });
        Self {
            comparable,
            records,
            pairing,
            reached: [None; 2],
            names: Names::default(),
            flow_names: FlowNames::None,
            is_told: false,
            weighs_classes: false,
            compared: Compared::default(),
        }
    }

    /// Takes an epoch, by upstream's number.
    fn receive(&mut self, epoch: i64, role: Role, sealed: Sealed) {
        if role == Role::Names || !self.is_of_series(&sealed) {
            // One-point algorithms may have the names of two-point ones.
            self.names.note(epoch, &sealed);
            return;
        }
        let flows = (role == Role::Upstream).then(|| self.told_flows(epoch, &sealed)).flatten();
        let (rule, later) = match role {
            Role::Downstream => (sealed.rule, self.comparable.shift()),
            _ => (sealed.rule, Delay::ZERO),
        };
        let shift = sealed.shift + later;
        let sealed = Sealed { epoch: Epoch(epoch), shift, ..sealed };
        self.reached[usize::from(role == Role::Downstream)] = Some(Epoch(epoch));
        self.pairing.receive_with_flows(sealed, flows);
        // What is missing before the newest epoch that both have will not come.
        if let [Some(one), Some(other)] = self.reached {
            self.pairing.advance(rule.span_of(one.min(other)).start);
        }
    }

    fn is_of_series(&self, sealed: &Sealed) -> bool {
        let series = &self.comparable.series;
        sealed.synopsis.name() == series.algorithm
            && sealed
                .synopsis
                .algorithm()
                .is_some_and(|algorithm| algorithm.purpose == Purpose::Delay)
            && sealed.rule.length_ns().unwrap_or(0) == series.epoch_ns
    }

    /// The flows of an epoch whose synopsis names none.
    fn told_flows(&mut self, epoch: i64, sealed: &Sealed) -> Option<Arc<[KnownFlow]>> {
        self.flow_names = sealed.synopsis.flow_names();
        self.weighs_classes = sealed.synopsis.config().contains_key("weights");
        let flows = match self.flow_names {
            FlowNames::None if !self.weighs_classes => self.names.of(epoch),
            _ => None,
        };
        self.is_told |= flows.is_some();
        flows
    }

    fn drain(&mut self, sums: &mut FlowSums) {
        while let Some(event) = self.pairing.poll() {
            let PairingEvent::Estimated { epoch, span, estimates, .. } = event else { continue };
            if !self.comparable.epochs.contains(&epoch.0) {
                continue;
            }
            self.compared.epochs += 1;
            let is_edge = self.is_edge(epoch.0);
            for mut estimate in estimates {
                if !matches!(estimate.scope, Scope::Flow(_)) {
                    continue;
                }
                if is_edge {
                    estimate.forget_loss(MISSING_BESIDE);
                }
                let series = self.comparable.series.clone();
                sums.add(&Row::of_epoch(series, epoch.0, span, &estimate));
            }
        }
    }

    /// Whether an epoch beside it did not come: packets in flight then look like lost ones.
    fn is_edge(&self, epoch: i64) -> bool {
        let beside = [epoch.saturating_sub(1), epoch.saturating_add(1)];
        self.comparable.series.epoch_ns > 0
            && beside.iter().any(|&epoch| !self.records.has_both(epoch))
    }

    fn reason(&self) -> Option<String> {
        let (name, upstream) =
            (&self.comparable.series.algorithm, &self.comparable.series.upstream);
        match (self.flow_names, self.is_told) {
            _ if self.compared.epochs == 0 => None,
            (FlowNames::All, _) => None,
            (FlowNames::Large, _) => Some(format!("{name} names its large flows only")),
            (FlowNames::None, _) if self.weighs_classes => Some(format!(
                "{name} weighs classes: it takes the class of each flow to ask about it"
            )),
            (FlowNames::None, true) => {
                Some(format!("{name} is asked about the large flows that {upstream} names"))
            }
            (FlowNames::None, false) => Some(format!(
                "{name} keeps no flow keys, and {upstream} names no flows beside it: let its agent \
                 keep a table of large flows (command = \"heavy\")"
            )),
        }
    }
}

fn read(payloads: &mut Payloads<'_>, found: &Found) -> Result<Sealed, String> {
    let payload = payloads.read(found).map_err(|damage| damage.to_string())?;
    Sealed::from_bytes(payload).map_err(|error| found.damage(&error.to_string()).to_string())
}
