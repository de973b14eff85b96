//! How delays vary from packet to packet of a flow, by records in the order of flows and of time.

use std::sync::Arc;

use twixt_model::{FlowHash, Variation, VariationSum};

use super::records::{Arrival, PlacedStep};
use crate::pile::{Part, Parts, Pile};
use crate::spill::SpillPlace;

/// Adds up flow after flow of one scope and epoch.
pub(super) struct Varying<'a> {
    sum: VariationSum,
    differences: Pile<u64>,
    place: Option<&'a Arc<dyn SpillPlace>>,
}

impl<'a> Varying<'a> {
    /// Of the scope and epoch of this number, whose flows come next among all.
    pub(super) fn of<F: Fn(&PlacedStep) -> (u32, FlowHash)>(
        number: u32,
        flows: &mut Parts<'_, PlacedStep, F>,
        place: Option<&'a Arc<dyn SpillPlace>>,
    ) -> Option<Variation> {
        let (sum, differences) = (VariationSum::default(), Pile::new(place));
        let mut varying = Self { sum, differences, place };
        while let Some(key) = flows.peek().filter(|(place, _)| *place == number) {
            let part = flows.next_if(&key)?;
            varying.add(&part);
        }
        let Self { sum, differences, .. } = varying;
        let p99 = differences.nth(sum.percentile_99());
        sum.variation(p99)
    }

    fn add(&mut self, flow: &Part<'_, PlacedStep>) {
        if flow.len() < 2 {
            return;
        }
        let sent = flow.iter().map(|step| step.delay);
        self.sum.add_in_order_sent(sent, |difference_ns| self.differences.push(difference_ns));
        let mut arrivals = Pile::new(self.place);
        for PlacedStep { sent, delay, .. } in flow.iter() {
            arrivals.push(Arrival { arrived: sent + delay, delay });
        }
        self.sum.add_in_order_arrived(arrivals.sorted().iter().map(|arrival| arrival.delay));
    }
}
