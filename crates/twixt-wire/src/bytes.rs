//! Reading fixed-size fields out of bytes that may be cut short.

/// The `N` bytes from `at` on, if all are there.
#[inline]
pub(crate) fn chunk<const N: usize>(bytes: &[u8], at: usize) -> Option<&[u8; N]> {
    bytes.get(at..)?.first_chunk()
}

/// The big-endian number at `at`.
#[inline]
pub(crate) fn be16(bytes: &[u8], at: usize) -> Option<u16> {
    chunk(bytes, at).copied().map(u16::from_be_bytes)
}

/// The big-endian number at `at`.
#[inline]
pub(crate) fn be32(bytes: &[u8], at: usize) -> Option<u32> {
    chunk(bytes, at).copied().map(u32::from_be_bytes)
}
