//! Pairs stored epochs once more, and asks for flows.

use std::sync::Arc;

use twixt_engine::{Conclusion, Series, StoredHalf, StoredPairing, StoredSeries, StreamCheck};
use twixt_measure::{QuestionTemplate, Sealed};
use twixt_model::Scope;
use twixt_store::{Found, Log, Payloads};
use twixt_synopsis::{By, FlowNames, KnownFlow, Purpose};

use super::names::Names;
use super::records::{Records, Role};
use super::series::Comparable;
use super::summing::FlowSums;
use crate::history::{row_of_estimate, series_of};

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
    pairing: StoredPairing,
    names: Names,
    /// What synopses can name by themselves.
    flow_names: FlowNames,
    /// Whether others named flows.
    has_flow_table: bool,
    /// Whether it takes more than names to ask about flows: tables of large flows know no classes.
    weighs_classes: bool,
    compared: Compared,
}

/// Reads and pairs epochs, and adds up the estimates of flows.
pub(super) fn compare(
    log: &Log,
    comparable: &Comparable,
    records: &Records,
    sums: &mut FlowSums,
) -> Compared {
    let Some(series) = series_of(&comparable.series) else { return Compared::default() };
    let mut comparing = Comparing::new(comparable, series);
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
    fn new(comparable: &'a Comparable, series: Series) -> Self {
        let pairing = StoredPairing::new(StoredSeries {
            series,
            question: QuestionTemplate { by: By::Flow, ..QuestionTemplate::default() },
            realigned_epochs: comparable.realigned_epochs,
            check: StreamCheck::Boundaries,
        });
        Self {
            comparable,
            pairing,
            names: Names::default(),
            flow_names: FlowNames::None,
            has_flow_table: false,
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
        self.pairing.receive(StoredHalf { sealed, flows });
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
        self.has_flow_table |= flows.is_some();
        flows
    }

    fn drain(&mut self, sums: &mut FlowSums) {
        while let Some(conclusion) = self.pairing.poll() {
            let Conclusion::Estimate(pair) = conclusion else { continue };
            if !self.comparable.epochs.contains(&pair.epoch.0) {
                continue;
            }
            self.compared.epochs += 1;
            for estimate in &pair.estimates {
                if matches!(estimate.scope, Scope::Flow(_)) {
                    sums.add(&row_of_estimate(&pair, &self.comparable.series, estimate));
                }
            }
        }
    }

    fn reason(&self) -> Option<String> {
        let (name, upstream) =
            (&self.comparable.series.algorithm, &self.comparable.series.upstream);
        match (self.flow_names, self.has_flow_table) {
            _ if self.compared.epochs == 0 => None,
            (FlowNames::All, _) => None,
            (FlowNames::Large, _) => Some(format!("{name} keeps the keys of its large flows only")),
            (FlowNames::None, _) if self.weighs_classes => {
                Some(format!("{name} weights classes: a query needs the class of each flow"))
            }
            (FlowNames::None, true) => {
                Some(format!("{name} reports the large flows whose keys {upstream} keeps"))
            }
            (FlowNames::None, false) => Some(format!(
                "{name} keeps no flow keys, and {upstream} keeps none beside it: add a table of \
                 large flows to its agent (command = \"heavy\")"
            )),
        }
    }
}

fn read(payloads: &mut Payloads<'_>, found: &Found) -> Result<Sealed, String> {
    let payload = payloads.read(found).map_err(|damage| damage.to_string())?;
    Sealed::from_bytes(payload).map_err(|error| found.damage(&error.to_string()).to_string())
}
