//! The first bytes of a frame at a fixed length, so that headers are read without asking before
//! every field whether it is there.

/// A frame, and perhaps what lies behind it in memory, which spares copying short frames.
#[derive(Clone, Copy, Debug)]
pub struct FrameBytes<'a> {
    bytes: &'a [u8],
    /// Begins with `bytes`.
    memory: &'a [u8],
}

impl<'a> FrameBytes<'a> {
    /// The first `length` bytes of `memory`, or all of it if that is less. What lies behind them
    /// cannot be distinguished from nothing.
    #[must_use]
    #[inline(always)]
    pub fn within(memory: &'a [u8], length: usize) -> Self {
        Self { bytes: &memory[..length.min(memory.len())], memory }
    }

    /// The frame itself.
    #[must_use]
    #[inline(always)]
    pub const fn bytes(self) -> &'a [u8] {
        self.bytes
    }
}

/// A frame with nothing behind it.
impl<'a> From<&'a [u8]> for FrameBytes<'a> {
    #[inline(always)]
    fn from(bytes: &'a [u8]) -> Self {
        Self { bytes, memory: bytes }
    }
}

impl<'a> From<&'a Vec<u8>> for FrameBytes<'a> {
    fn from(bytes: &'a Vec<u8>) -> Self {
        Self::from(bytes.as_slice())
    }
}

/// How far headers and the content that digests cover reach in most frames: Ethernet with two
/// tags, IPv4, TCP with all its options, and the payload of a digest.
pub(crate) const WINDOW_BYTES: usize = 128;

/// The first bytes of a frame, and then others that mean nothing: who reads the window must
/// ask once whether the frame is as long as what was read, or mask it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window<'a>(&'a [u8; WINDOW_BYTES]);

/// Where a window of a short frame lies.
#[derive(Debug, Default)]
pub(crate) struct Space(Option<[u8; WINDOW_BYTES]>);

impl<'a> Window<'a> {
    /// The window of a frame: where the frame lies, if there is memory enough behind it.
    #[inline(always)]
    pub(crate) fn of(frame: FrameBytes<'a>, space: &'a mut Space) -> Self {
        match frame.memory.first_chunk() {
            Some(bytes) => Self(bytes),
            None => Self(copied(frame.memory, space.0.insert([0; WINDOW_BYTES]))),
        }
    }

    /// The `N` bytes from `at` on, if the window has them.
    #[inline]
    pub(crate) fn chunk<const N: usize>(self, at: usize) -> Option<&'a [u8; N]> {
        self.0.get(at..)?.first_chunk()
    }

    #[inline]
    pub(crate) const fn byte(self, at: usize) -> u8 {
        self.0[at]
    }

    /// The big-endian number at `at`, which is known when compiling.
    #[inline]
    pub(crate) const fn be16(self, at: usize) -> u16 {
        u16::from_be_bytes([self.0[at], self.0[at + 1]])
    }

    /// The big-endian number at `at`, which is known when compiling.
    #[inline]
    pub(crate) const fn be32(self, at: usize) -> u32 {
        u32::from_be_bytes([self.0[at], self.0[at + 1], self.0[at + 2], self.0[at + 3]])
    }
}

/// Puts a short frame before zeros. Copies of fixed length that overlap are cheaper than one of any
/// length.
#[inline(never)]
fn copied<'a>(frame: &[u8], space: &'a mut [u8; WINDOW_BYTES]) -> &'a [u8; WINDOW_BYTES] {
    match frame.len() {
        64..WINDOW_BYTES => copy_ends::<64>(frame, space),
        32..64 => copy_ends::<32>(frame, space),
        length => space[..length].copy_from_slice(frame),
    }
    space
}

/// Copies the first and the last `N` bytes, which is all of a frame of `N` to `2 * N` bytes.
#[inline(always)]
fn copy_ends<const N: usize>(frame: &[u8], space: &mut [u8; WINDOW_BYTES]) {
    let last_at = frame.len() - N;
    space[..N].copy_from_slice(&frame[..N]);
    space[last_at..last_at + N].copy_from_slice(&frame[last_at..]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_frame_and_then_zeros() {
        let frame: Vec<u8> = (1..=200).collect();
        for length in 0..=frame.len() {
            let mut space = Space::default();
            let Window(bytes) = Window::of(frame[..length].into(), &mut space);
            let shown = length.min(WINDOW_BYTES);
            assert_eq!(bytes[..shown], frame[..shown], "{length} bytes");
            assert!(bytes[shown..].iter().all(|&byte| byte == 0), "{length} bytes");
        }
    }
}
