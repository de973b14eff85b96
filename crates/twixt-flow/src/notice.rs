//! What a meter says about how it selects.

/// How a meter selects packets, as its options records say; `None` is what they do not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SelectorNotice {
    /// Which selector of the meter.
    pub selector_id: u64,
    /// Its function by the IANA registry of PSAMP: 6 BOB, 7 IPSX, 8 CRC-32.
    pub algorithm: Option<u16>,
    /// First hashed byte of the IP payload.
    pub payload_offset: Option<u64>,
    /// Hashed bytes of the IP payload.
    pub payload_bytes: Option<u64>,
    /// Lowest and highest value that the function gives.
    pub output: Option<(u64, u64)>,
    /// Lowest and highest value that selects.
    pub selected: Option<(u64, u64)>,
    /// Where the function starts.
    pub initialiser: Option<u64>,
    /// Names the key, of keyed functions.
    pub key_id: Option<u32>,
    /// Packets decided about, and packets selected, so far.
    pub packets: Option<(u64, u64)>,
    /// One packet in so many is counted, of meters that count off.
    pub interval: Option<u64>,
}

impl SelectorNotice {
    /// The part of packets that is selected: as achieved, or else as set.
    #[must_use]
    pub fn rate(&self) -> Option<f64> {
        // Of none that was selected so far nothing follows.
        let achieved = self.packets.filter(|&(observed, selected)| observed > 0 && selected > 0);
        let span = |(lowest, highest): (u64, u64)| highest as f64 - lowest as f64 + 1.0;
        achieved
            .map(|(observed, selected)| selected as f64 / observed as f64)
            .or_else(|| Some(span(self.selected?) / span(self.output?)))
            .or_else(|| self.interval.filter(|&interval| interval > 0).map(|n| 1.0 / n as f64))
            .filter(|&rate| rate > 0.0 && rate <= 1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_achieved_rate_comes_first() {
        let set = SelectorNotice {
            output: Some((0, 999)),
            selected: Some((0, 9)),
            ..SelectorNotice::default()
        };
        assert_eq!(set.rate(), Some(0.01));
        let achieved = SelectorNotice { packets: Some((1000, 20)), ..set };
        assert_eq!(achieved.rate(), Some(0.02));
        let early = SelectorNotice { packets: Some((1000, 0)), ..set };
        assert_eq!(early.rate(), Some(0.01));
        let counted = SelectorNotice { interval: Some(4), ..SelectorNotice::default() };
        assert_eq!(counted.rate(), Some(0.25));
        let nonsense = SelectorNotice { selected: Some((5, 1)), ..set };
        assert_eq!(nonsense.rate(), None);
        assert_eq!(SelectorNotice::default().rate(), None);
    }
}
