//! Flows whose keys were noted lately. Spares most packets a search among all flows.

use twixt_model::FlowHash;

/// Flows that are remembered: 32 KiB, which stay in a second-level cache.
const FLOWS: usize = 1 << 12;

/// The last flow at each of a few places. Forgets flows, but never knows one that was not noted.
#[derive(Clone, Debug, Default)]
pub(super) struct NotedFlows {
    /// [`FLOWS`] of them from the first flow on.
    places: Vec<Option<FlowHash>>,
}

impl NotedFlows {
    /// Whether the flow is not remembered. It is from then on.
    #[inline]
    pub(super) fn is_new(&mut self, flow: FlowHash) -> bool {
        if self.places.is_empty() {
            self.places = vec![None; FLOWS];
        }
        let place = &mut self.places[flow.0 as usize % FLOWS];
        place.replace(flow) != Some(flow)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flow_is_new_once_until_another_takes_its_place() {
        let mut noted = NotedFlows::default();
        let other = FlowHash(7 + FLOWS as u64);
        let news = [FlowHash(7), FlowHash(7), FlowHash(0), other, FlowHash(7), FlowHash(0)];
        assert_eq!(news.map(|flow| noted.is_new(flow)), [true, false, true, true, true, false]);
    }
}
