//! How an interface is captured.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::FrameDirection;

/// How an interface is captured. By default, everything is captured.
#[derive(Clone, Debug)]
pub struct LiveOptions {
    /// Only frames that cross the interface this way; `None` takes both.
    ///
    /// The loopback interface shows every packet twice, as sent and as received. Of it, both ways
    /// means received.
    pub direction: Option<FrameDirection>,
    /// Receive frames that are addressed to others, too.
    pub promiscuous: bool,
    /// Bytes to keep of each frame; `None` keeps all.
    pub snap_length: Option<NonZeroU32>,
    /// Who shall take the time.
    pub times: TimePreference,
    /// Memory shared with the kernel.
    pub ring: RingSize,
    /// How long to wait for frames before an empty batch is handed over.
    pub wait: Duration,
    /// Ends the source from outside.
    pub stop: Stop,
}

impl Default for LiveOptions {
    fn default() -> Self {
        Self {
            direction: None,
            promiscuous: true,
            snap_length: None,
            times: TimePreference::default(),
            ring: RingSize::default(),
            wait: Duration::from_millis(100),
            stop: Stop::default(),
        }
    }
}

/// Who shall take the time of a frame. What came of it: [`crate::Frame::time_source`] for each
/// frame, and [`crate::LiveSource::time_remark`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum TimePreference {
    /// The kernel, when the frame reaches it.
    #[default]
    Kernel,
    /// The adapter, if its time stamps are switched on already; else the kernel.
    ///
    /// Adapters stamp what they receive. Frames that this machine sends pass the socket before
    /// they reach the adapter and have the kernel's time, from another clock: capture one
    /// direction.
    Adapter,
    /// The adapter, after asking it to stamp all frames that it receives. This changes a setting
    /// of the adapter, also for others, and needs `CAP_NET_ADMIN`.
    SwitchOnAdapter,
}

/// A flag that ends sources which were given a clone of it. Signals may set it.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Ends the sources, within their [`LiveOptions::wait`].
    pub fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether the sources shall end.
    #[must_use]
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// The flag itself, for handlers of signals.
    #[must_use]
    pub fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.0)
    }
}

/// The memory that the kernel writes frames to: blocks, handed over when they are full or when
/// the longest wait is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RingSize {
    block_bytes: u32,       // a power of two from BLOCK_BYTES_MIN to BLOCK_BYTES_MAX
    blocks: u32,            // from 2 on; block_bytes * blocks <= RING_BYTES_MAX
    longest_wait: Duration, // from 1 ms to LONGEST_WAIT_MAX
}

impl RingSize {
    /// Blocks are at least as large as a page, on all machines.
    pub const BLOCK_BYTES_MIN: u32 = 1 << 16;
    /// More is no use: no frame is longer, and larger blocks only wait longer.
    pub const BLOCK_BYTES_MAX: u32 = 1 << 22;
    /// A ring that is larger is refused.
    pub const RING_BYTES_MAX: u64 = 1 << 30;
    /// A frame waits no longer before it is handed over.
    pub const LONGEST_WAIT_MAX: Duration = Duration::from_secs(1);

    /// Room for the largest super-packets (512 KiB).
    const BLOCK_BYTES_DEFAULT: u32 = 1 << 20;

    /// A ring of about so many bytes. Its blocks hold super-packets whole from 4 MiB on.
    #[must_use]
    pub fn of_bytes(bytes: u64) -> Self {
        let bytes = bytes.clamp(2 * u64::from(Self::BLOCK_BYTES_MIN), Self::RING_BYTES_MAX);
        // At least four blocks, so that one can be read while others fill.
        let quarter = u32::try_from(bytes / 4).unwrap_or(Self::BLOCK_BYTES_MAX);
        let largest = quarter.clamp(Self::BLOCK_BYTES_MIN, Self::BLOCK_BYTES_DEFAULT);
        let block_bytes = 1 << largest.ilog2();
        let blocks = (bytes / u64::from(block_bytes)) as u32; // at most 2^30 / 2^16
        Self { block_bytes, blocks, longest_wait: Duration::from_millis(20) }
    }

    /// The same, with blocks handed over after so long, if not full before.
    #[must_use]
    pub fn with_longest_wait(self, longest_wait: Duration) -> Self {
        let longest_wait = longest_wait.clamp(Duration::from_millis(1), Self::LONGEST_WAIT_MAX);
        Self { longest_wait, ..self }
    }

    /// Bytes of a block.
    #[must_use]
    pub const fn block_bytes(&self) -> u32 {
        self.block_bytes
    }

    /// How many blocks there are.
    #[must_use]
    pub const fn blocks(&self) -> u32 {
        self.blocks
    }

    /// Bytes of all blocks.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        self.block_bytes as usize * self.blocks as usize
    }

    /// How long a frame may wait in a block that does not become full.
    #[must_use]
    pub const fn longest_wait(&self) -> Duration {
        self.longest_wait
    }
}

/// 32 MiB.
impl Default for RingSize {
    fn default() -> Self {
        Self::of_bytes(32 << 20)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(bytes: u64, block_bytes: u32, blocks: u32) {
        let size = RingSize::of_bytes(bytes);
        assert_eq!((size.block_bytes(), size.blocks()), (block_bytes, blocks), "{bytes}");
    }

    #[test]
    fn any_wish_becomes_a_ring_that_the_kernel_takes() {
        check(0, 1 << 16, 2);
        check(200_000, 1 << 16, 3);
        check(1 << 20, 1 << 18, 4);
        check(5 << 20, 1 << 20, 5);
        check(32 << 20, 1 << 20, 32);
        check(u64::MAX, 1 << 20, 1 << 10);
    }
}
