//! Big-endian fields, taken from the front of bytes that may end at any place.

/// Bytes that are left to read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bytes<'a> {
    left: &'a [u8],
}

impl<'a> Bytes<'a> {
    pub(crate) const fn new(bytes: &'a [u8]) -> Self {
        Self { left: bytes }
    }

    /// How many are left.
    pub(crate) const fn len(&self) -> usize {
        self.left.len()
    }

    /// The next `count`; nothing is taken if fewer are left.
    pub(crate) fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, left) = self.left.split_at_checked(count)?;
        self.left = left;
        Some(taken)
    }

    pub(crate) fn u8(&mut self) -> Option<u8> {
        self.take(1).map(|bytes| bytes[0])
    }

    pub(crate) fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_be_bytes)
    }

    pub(crate) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_be_bytes)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N).map(|bytes| bytes.try_into().expect("take() gave as many as asked"))
    }
}

/// A number of 1 to 8 bytes: IPFIX writes numbers as short as they can be (RFC 7011, 6.2).
pub(crate) fn number(bytes: &[u8]) -> Option<u64> {
    match bytes.len() {
        1..=8 => Some(bytes.iter().fold(0, |sum, &byte| sum << 8 | u64::from(byte))),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_there_is_not_taken() {
        let mut bytes = Bytes::new(&[1, 2, 3]);
        assert_eq!(bytes.u32(), None);
        assert_eq!(bytes.u16(), Some(0x0102));
        assert_eq!((bytes.u8(), bytes.u8()), (Some(3), None));
    }

    #[test]
    fn numbers_may_be_short() {
        assert_eq!(number(&[1, 0]), Some(256));
        assert_eq!(number(&[0xff; 8]), Some(u64::MAX));
        assert_eq!((number(&[]), number(&[0; 9])), (None, None));
    }
}
