//! What a live source counts beyond what every source does.

use std::ops::AddAssign;

/// What a live source met. Frames that the kernel dropped are in [`crate::SourceCounts`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LiveCounts {
    /// Frames as the kernel handed them over: a super-packet is one of them.
    pub received: u64,
    /// Super-packets that were handed on as the packets that the wire carries.
    pub super_packets: u64,
    /// Packets that became of them.
    pub pieces: u64,
    /// Super-packets that could not be split and were handed on whole: tunnels, fragments of UDP,
    /// frames cut within their headers. No wire carries such packets, so no other point sees them:
    /// switch the offload off (`ethtool -K INTERFACE gro off gso off tso off`).
    pub unsplit: u64,
    /// Frames with a VLAN tag that the kernel had taken out and that was put back.
    pub tags_restored: u64,
    /// Frames with the kernel's time.
    pub kernel_times: u64,
    /// Frames with the adapter's time.
    pub adapter_times: u64,
    /// How often the kernel found no free block and stopped writing for a while.
    pub freezes: u64,
    /// How often the interface went down.
    pub downs: u64,
    /// Blocks whose lengths contradict each other; the rest of such a block is not handed over.
    pub malformed_blocks: u64,
}

impl AddAssign for LiveCounts {
    fn add_assign(&mut self, other: Self) {
        self.received += other.received;
        self.super_packets += other.super_packets;
        self.pieces += other.pieces;
        self.unsplit += other.unsplit;
        self.tags_restored += other.tags_restored;
        self.kernel_times += other.kernel_times;
        self.adapter_times += other.adapter_times;
        self.freezes += other.freezes;
        self.downs += other.downs;
        self.malformed_blocks += other.malformed_blocks;
    }
}
