//! What is to be measured, and how.

use twixt_measure::{Cutting, Sealed};
use twixt_model::{DigestHash, DigestProfile, EpochRule, GroupPrefixes, Needs, Prefix, Span};
use twixt_synopsis::{AnySynopsis, By, FlowNames};
use twixt_wire::{Digester, Filter, HashKey, Observer, ObserverError, ObserverOptions, dscp_name};

use crate::beside::Beside;
use crate::chosen::ChosenAlgorithm;
use crate::error::OfflineError;
use crate::flow_list::FlowList;
use crate::split::Split;

/// What is to be measured, and how.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Which packets.
    pub traffic: Traffic,
    /// How packets are recognised at both points.
    pub digest: DigestPlan,
    /// What each point keeps.
    pub algorithms: Vec<ChosenAlgorithm>,
    /// How estimates are split up.
    pub split: Split,
    /// How time is cut into epochs.
    pub rule: EpochRule,
    /// So that there are some sixty, whatever `rule` says.
    pub auto_epochs: bool,
    /// What ends an epoch.
    pub cutting: Cutting,
    /// Which flows are asked about.
    pub flows: FlowList,
    /// What is done beside measuring.
    pub beside: Beside,
}

/// Which packets are measured.
#[derive(Clone, Debug, Default)]
pub struct Traffic {
    /// Only packets for this prefix: those that go downstream.
    pub toward: Option<Prefix>,
    /// Measure the outermost IP packet, not the one inside tunnels.
    pub outer: bool,
    /// Only these packets.
    pub filter: Option<Filter>,
    /// Names and filters of classes; the first that matches counts.
    pub classes: Vec<(String, Filter)>,
    /// The classes are rules that weigh packets.
    pub weighed: bool,
    /// Only packets that the capture saw within this time, both ends included.
    pub within: Option<Span>,
}

/// How packets are recognised at both points.
#[derive(Clone, Debug)]
pub struct DigestPlan {
    /// By what, if the captures have all of it.
    pub recognition: Recognition,
    /// The hash function.
    pub hash: DigestHash,
    /// What both points share.
    pub key: HashKey,
    /// Prefixes that group flows.
    pub groups: GroupPrefixes,
}

/// Which parts of a packet identify it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recognition {
    /// Which fields.
    pub profile: DigestProfile,
    /// How much of the payload.
    pub payload_bytes: u8,
}

impl Traffic {
    /// Whether some packets are not measured, by the user's choice.
    pub(crate) const fn selects(&self) -> bool {
        self.toward.is_some() || self.filter.is_some()
    }

    /// Classes for [`Split::Dscp`]: one for each code point, by its name where it has one.
    #[must_use]
    pub fn dscp_classes() -> Vec<(String, Filter)> {
        let class = |code_point: u8| {
            let filter = format!("dscp {code_point}").parse().expect("code points are conditions");
            (format!("dscp {}", dscp_name(code_point)), filter)
        };
        (0..64).map(class).collect()
    }

    /// An observer of these packets that computes what is needed.
    ///
    /// # Errors
    /// When there are too many classes.
    pub fn observer(&self, needs: Needs, digester: Digester) -> Result<Observer, ObserverError> {
        Observer::new(ObserverOptions {
            needs,
            outer: self.outer,
            filter: self.filter.clone(),
            classes: self.classes.clone(),
            digester,
        })
    }
}

impl DigestPlan {
    /// Computes digests that recognise packets as planned.
    #[must_use]
    pub fn digester(&self) -> Digester {
        self.digester_by(self.recognition)
    }

    /// The same, by what captures have.
    #[must_use]
    pub fn digester_by(&self, Recognition { profile, payload_bytes }: Recognition) -> Digester {
        Digester::new(profile, self.hash, payload_bytes, self.key).with_groups(self.groups)
    }
}

impl Plan {
    /// What the algorithms read, all together.
    #[must_use]
    pub fn needs(&self) -> Needs {
        let flows = Needs { flow: true, detail: true, ..Needs::default() };
        let noted = self.notes_flows().then_some(flows);
        let needs = self.algorithms.iter().map(|chosen| chosen.prototype.needs());
        needs.chain(noted).fold(Needs::default(), Needs::or)
    }

    /// Whether an algorithm cuts time when packets were matched, by when they left.
    pub(crate) fn cuts_when_matched(&self, chosen: &ChosenAlgorithm) -> bool {
        let cuts = self.rule != EpochRule::WHOLE && self.cutting == Cutting::Timed;
        cuts && chosen.algorithm.matches_packets()
    }

    /// How time is cut while packets are read: not at all, if all algorithms do that later.
    pub(crate) fn rule_of_meters(&self) -> EpochRule {
        match self.algorithms.iter().all(|chosen| self.cuts_when_matched(chosen)) {
            true => EpochRule::WHOLE,
            false => self.rule,
        }
    }

    /// What each point keeps.
    #[must_use]
    pub fn prototypes(&self) -> Vec<&dyn AnySynopsis> {
        self.algorithms.iter().map(|chosen| chosen.prototype.as_ref()).collect()
    }

    /// The classes that have meters of their own.
    #[must_use]
    pub fn class_names(&self, observer: &Observer) -> Vec<String> {
        match self.split {
            Split::Class | Split::Dscp => observer.class_names().map(str::to_owned).collect(),
            Split::By(_) => Vec::new(),
        }
    }

    /// How an algorithm's estimates are split up: not at all, if it cannot distinguish flows.
    #[must_use]
    pub fn by(&self, chosen: &ChosenAlgorithm) -> By {
        if chosen.algorithm.per_flow { self.split.by() } else { By::All }
    }

    /// Whether the flows that pass are to be noted.
    pub(crate) fn notes_flows(&self) -> bool {
        self.flows.is_all() && self.algorithms.iter().any(|chosen| self.asks_for_flows(chosen))
    }

    /// Whether an algorithm needs a list of the flows.
    pub(crate) fn asks_for_flows(&self, chosen: &ChosenAlgorithm) -> bool {
        let knows = self.flows.is_heavy() || chosen.prototype.flow_names() == FlowNames::All;
        self.by(chosen) != By::All && !knows
    }

    /// Refuses what an algorithm cannot answer.
    ///
    /// # Errors
    /// What is wrong.
    pub fn check(&self) -> Result<(), OfflineError> {
        let per_flow = self.split.by() != By::All;
        match self.algorithms.iter().find(|chosen| per_flow && !chosen.algorithm.per_flow) {
            Some(chosen) => Err(OfflineError::NotPerFlow { algorithm: chosen.algorithm.name }),
            None => self.check_flows(),
        }
    }

    /// Refuses flows that no synopsis can name.
    ///
    /// # Errors
    /// What is wrong.
    pub fn check_flows(&self) -> Result<(), OfflineError> {
        let nameless = |chosen: &&ChosenAlgorithm| {
            self.by(chosen) != By::All && chosen.prototype.flow_names() == FlowNames::None
        };
        if self.flows.is_heavy()
            && let Some(chosen) = self.algorithms.iter().find(nameless)
        {
            return Err(OfflineError::NoTable { algorithm: chosen.algorithm.name });
        }
        match self.traffic.weighed && !self.flows.has_classes() {
            true => Err(OfflineError::NoClasses),
            false => Ok(()),
        }
    }

    /// Refuses what a recording cannot answer.
    ///
    /// # Errors
    /// What is wrong.
    pub fn check_recorded(&self, first: &Sealed) -> Result<(), OfflineError> {
        let algorithm = first.synopsis.name();
        if self.notes_flows() {
            return Err(match first.synopsis.flow_names() {
                FlowNames::None => OfflineError::NoFlowKeys { algorithm },
                _ => OfflineError::LargeFlowKeys { algorithm },
            });
        }
        let asks_by_hash = self.algorithms.iter().any(|chosen| self.asks_for_flows(chosen));
        let digest = self.digest.digester().identity();
        let same = (digest.hash, digest.key_id) == (first.digest.hash, first.digest.key_id);
        match asks_by_hash && !same {
            true => Err(OfflineError::OtherKey { recorded: first.digest }),
            false => Ok(()),
        }
    }
}
