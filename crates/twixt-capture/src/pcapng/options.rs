//! The options at the end of a pcapng block.

use crate::ByteOrder;

pub(super) const IF_NAME: u16 = 2;
pub(super) const IF_TIME_RESOLUTION: u16 = 9;
pub(super) const IF_TIME_OFFSET: u16 = 14;
/// Of packet blocks, enhanced and obsolete alike.
pub(super) const PACKET_FLAGS: u16 = 2;
pub(super) const PACKET_DROP_COUNT: u16 = 4;
pub(super) const STATISTICS_INTERFACE_DROPS: u16 = 5;
pub(super) const STATISTICS_SYSTEM_DROPS: u16 = 7;

const END_OF_OPTIONS: u16 = 0;

/// One option: what it is, and its value without the padding.
#[derive(Clone, Copy, Debug)]
pub(super) struct BlockOption<'a> {
    pub(super) code: u16,
    pub(super) value: &'a [u8],
    order: ByteOrder,
}

impl BlockOption<'_> {
    /// The value as a number, if it has the length of one.
    pub(super) fn u32(&self) -> Option<u32> {
        let value: &[u8; 4] = self.value.try_into().ok()?;
        Some(self.order.u32_at(value, 0))
    }

    /// The value as a number, if it has the length of one.
    pub(super) fn u64(&self) -> Option<u64> {
        Some(self.order.u64(self.value.try_into().ok()?))
    }
}

/// Walks the options of a block. A value that would reach beyond the block ends the walk: packets
/// matter more than remarks about them.
#[derive(Clone, Debug)]
pub(super) struct Options<'a> {
    rest: &'a [u8],
    order: ByteOrder,
}

impl<'a> Options<'a> {
    pub(super) fn new(bytes: &'a [u8], order: ByteOrder) -> Self {
        Self { rest: bytes, order }
    }
}

impl<'a> Iterator for Options<'a> {
    type Item = BlockOption<'a>;

    fn next(&mut self) -> Option<BlockOption<'a>> {
        let (header, body) = self.rest.split_first_chunk::<4>()?;
        let code = self.order.u16_at(header, 0);
        let length = usize::from(self.order.u16_at(header, 2));
        if code == END_OF_OPTIONS {
            return None;
        }
        let value = body.get(..length)?;
        // Some writers leave out the padding of the last value.
        self.rest = body.get(length.next_multiple_of(4)..).unwrap_or(&[]);
        Some(BlockOption { code, value, order: self.order })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(bytes: &[u8], expected: &[(u16, &[u8])]) {
        let found: Vec<_> = Options::new(bytes, ByteOrder::Little)
            .map(|option| (option.code, option.value))
            .collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn options_end_at_the_mark_or_at_nonsense() {
        check(&[], &[]);
        check(&[2, 0, 1, 0, 7, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0], &[(2, &[7]), (9, &[])]);
        check(&[0, 0, 0, 0, 2, 0, 0, 0], &[]);
        check(&[2, 0, 1, 0, 7], &[(2, &[7])]);
        check(&[2, 0, 2, 0, 7], &[]);
        check(&[2, 0, 255, 255, 7, 7, 7, 7], &[]);
        check(&[2, 0, 1], &[]);
    }

    #[test]
    fn numbers_have_a_length() {
        let of = |bytes| Options::new(bytes, ByteOrder::Big).next().unwrap();
        assert_eq!(of(&[0, 2, 0, 4, 0, 0, 1, 2]).u32(), Some(258));
        assert_eq!(of(&[0, 2, 0, 4, 0, 0, 1, 2]).u64(), None);
        assert_eq!(of(&[0, 2, 0, 8, 0, 0, 0, 0, 0, 0, 1, 2]).u64(), Some(258));
    }
}
