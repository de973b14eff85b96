//! Which flows count their packets in the identification of IPv4.

/// Flows that are remembered at most; a new one takes the place of another.
const FLOWS_MAX: usize = 1 << 12;

/// Addresses and ports.
pub(super) type FlowBytes = [u8; 12];

/// TCP flows that were seen to count.
///
/// A super-packet with 0 that may not be fragmented stands for packets that all have 0 (RFC 6864
/// allows it, and BSD does it), or for packets of a flow that counts and just came by 0, as one in
/// 65536 does. Who had another number before counts.
#[derive(Debug)]
pub(in crate::live) struct CountingFlows {
    /// Part of a flow's hash, at the place that another part gives. 0 is empty.
    marks: Box<[u16; FLOWS_MAX]>,
}

impl CountingFlows {
    pub(in crate::live) fn new() -> Self {
        Self { marks: Box::new([0; FLOWS_MAX]) }
    }

    /// Whether the packets of a super-packet with this identification count up.
    pub(super) fn goes_up(&mut self, flow: &FlowBytes, identification: u16) -> bool {
        let (place, mark) = place_of(flow);
        if identification != 0 {
            self.marks[place] = mark;
        }
        self.marks[place] == mark
    }
}

/// Not a hash against enemies: who makes flows collide makes his own packets look lost.
fn place_of(flow: &FlowBytes) -> (usize, u16) {
    const ODD: u64 = 0x9e37_79b9_7f4a_7c15; // 2^64 divided by the golden ratio
    let (words, _) = flow.as_chunks::<4>();
    let mixed = words.iter().fold(0_u64, |mixed, word| {
        (mixed ^ u64::from(u32::from_ne_bytes(*word))).wrapping_mul(ODD).rotate_left(29)
    });
    (mixed as usize % FLOWS_MAX, (mixed >> 48) as u16 | 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zero_is_a_number_of_those_who_count() {
        let mut flows = CountingFlows::new();
        let (counts, does_not) = ([1; 12], [2; 12]);
        assert!(!flows.goes_up(&counts, 0), "nothing is known yet");
        assert!(flows.goes_up(&counts, 65_500));
        assert!(flows.goes_up(&counts, 0));
        assert!(!flows.goes_up(&does_not, 0));
        assert!(flows.goes_up(&counts, 0));
    }

    #[test]
    fn more_flows_than_places_are_forgotten_not_mixed_up() {
        let mut flows = CountingFlows::new();
        let flow = |number: u32| {
            let mut flow = [7; 12];
            flow[8..].copy_from_slice(&number.to_be_bytes());
            flow
        };
        for number in 0..100_000 {
            flows.goes_up(&flow(number), 9);
        }
        let confused = (100_000..110_000).filter(|&number| flows.goes_up(&flow(number), 0)).count();
        // A mark is one of 2^15.
        assert!(confused < 10, "{confused} of 10000");
    }
}
