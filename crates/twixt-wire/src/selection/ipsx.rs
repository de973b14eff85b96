//! IPSX: shifts and exclusive ors of sixteen bytes of an IPv4 packet, 16 bits.

/// The four words that IPSX hashes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IpsxInput {
    /// Identification, flags and fragment offset.
    pub fragment: u32,
    /// Source address.
    pub source: u32,
    /// Destination address.
    pub destination: u32,
    /// Bytes 4..8 of the IP payload.
    pub payload: u32,
}

/// The IPSX hash (RFC 5475, appendix A.1).
#[must_use]
pub const fn ipsx(input: IpsxInput) -> u16 {
    let first = input.fragment ^ input.source;
    let second = input.destination ^ input.payload;
    let mixed = (first << 8) ^ (first >> 4) ^ (first >> 12) ^ (first >> 16);
    let mixed = mixed ^ (second << 6) ^ (second << 10) ^ (second << 14) ^ (second >> 7);
    mixed as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worked_example() {
        let input = IpsxInput {
            fragment: 0x1234_4000,
            source: 0x0a00_0001,
            destination: 0x0a00_0002,
            payload: 0x1122_3344,
        };
        assert_eq!(ipsx(input), 0xd396);
    }
}
