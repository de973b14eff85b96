//! Names of the flows that a point saw in an epoch, from a table of large flows that it kept beside
//! a synopsis that names none.

use std::collections::BTreeMap;
use std::sync::Arc;

use twixt_measure::Sealed;
use twixt_model::{FlowHash, HeavyFlow};
use twixt_synopsis::{Estimator, KnownFlow, Question};

/// Most flows that are named in an epoch. Tables of agents are far smaller.
const NAMES_MAX: usize = 1 << 16;

/// The flows of one epoch.
#[derive(Debug, Default)]
pub(super) struct Names {
    epoch: i64,
    flows: BTreeMap<FlowHash, KnownFlow>, // at most NAMES_MAX
}

impl Names {
    /// Takes the flows that an epoch names, if it does. Epochs come in order; several runs of an
    /// agent may each have a part of one.
    pub(super) fn note(&mut self, epoch: i64, sealed: &Sealed) {
        if epoch != self.epoch {
            *self = Self { epoch, flows: BTreeMap::new() };
        }
        let estimator = sealed.synopsis.algorithm().map(|algorithm| &algorithm.estimator);
        let Some(Estimator::Heavy(table)) = estimator else { return };
        let question = Question::about(sealed.rule.span_of(sealed.epoch));
        // A table of another algorithm than its tag says names nothing.
        let named = (table.conclude)(sealed.synopsis.as_ref(), &question).unwrap_or_default();
        for flow in named {
            if self.flows.len() < NAMES_MAX || self.flows.contains_key(&flow.hash) {
                let known = known(&flow);
                let flow =
                    self.flows.entry(flow.hash).or_insert(KnownFlow { packets: Some(0), ..known });
                flow.packets =
                    flow.packets.zip(known.packets).map(|(one, other)| one.saturating_add(other));
            }
        }
    }

    /// The flows of an epoch, if any are known.
    pub(super) fn of(&self, epoch: i64) -> Option<Arc<[KnownFlow]>> {
        (epoch == self.epoch && !self.flows.is_empty())
            .then(|| self.flows.values().copied().collect())
    }
}

/// What a flow sent is known if it certainly had as many packets, and no more.
fn known(flow: &HeavyFlow) -> KnownFlow {
    let is_known = flow.packets_at_least == flow.packets
        && flow.packets_at_most.is_none_or(|most| most == flow.packets);
    KnownFlow {
        hash: flow.hash,
        key: flow.key,
        packets: is_known.then_some(flow.packets),
        ..KnownFlow::default()
    }
}
