//! A large flow, or all of them. In an epoch whose list does not have a flow, it still had some packets
//! at most: what is kept of that bounds sums over epochs with different lists.

/// Packets of a flow in the epochs that list it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HeavySums {
    /// As counted or estimated.
    pub packets: u64,
    /// Bytes of them.
    pub bytes: u64,
    /// It certainly had so many.
    pub packets_min: u64,
    /// It certainly had no more in these epochs.
    pub packets_max: u64,
    /// In an epoch that does not list it, a flow had so many packets at most: the sum of that over
    /// the epochs of this row.
    pub unlisted_max: u64,
    /// Flows that are listed, epoch by epoch; of all together only.
    pub listed: u64,
}

/// How many packets a flow had, for certain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowRange {
    /// At least.
    pub min: u64,
    /// At most.
    pub max: u64,
}

impl HeavySums {
    /// Adds others.
    pub fn add(&mut self, other: &Self) {
        let add = |sum: &mut u64, value: u64| *sum = sum.saturating_add(value);
        add(&mut self.packets, other.packets);
        add(&mut self.bytes, other.bytes);
        add(&mut self.packets_min, other.packets_min);
        add(&mut self.packets_max, other.packets_max);
        add(&mut self.unlisted_max, other.unlisted_max);
        add(&mut self.listed, other.listed);
    }

    /// What a flow had in a time of which `all` is the row of all flows: in the epochs that list it,
    /// and in those that do not.
    #[must_use]
    pub const fn range(&self, all: &Self) -> FlowRange {
        let elsewhere = all.unlisted_max.saturating_sub(self.unlisted_max);
        FlowRange { min: self.packets_min, max: self.packets_max.saturating_add(elsewhere) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn epochs_that_do_not_list_a_flow_count_in_its_upper_bound() {
        let epoch = |packets: u64, unlisted_max: u64| HeavySums {
            packets,
            packets_min: packets - 2,
            packets_max: packets,
            unlisted_max,
            ..HeavySums::default()
        };
        let mut all = epoch(100, 7);
        all.add(&epoch(90, 5));
        all.add(&epoch(80, 9));
        let mut flow = epoch(50, 7);
        flow.add(&epoch(40, 9));
        assert_eq!(flow.range(&all), FlowRange { min: 86, max: 95 });
    }
}
