//! The interfaces that a capture was taken on.

use crate::Resolution;
use crate::clock::FrameClock;

/// Interfaces of one file at most, over all its sections. Further ones are counted in
/// [`crate::SourceCounts::interfaces_refused`] and their frames skipped.
pub const MAX_INTERFACES: usize = 65_536;

/// Bytes of an interface's name that are kept.
pub const MAX_INTERFACE_NAME_BYTES: usize = 256;

/// Captured bytes of a frame at most, for all link types that carry network packets: libpcap's
/// largest snap length. A record that claims more is damage, not a frame.
pub const MAX_FRAME_BYTES: u32 = 262_144;

/// The same for link types whose frames may be larger: USB transfers, D-Bus messages, EBHSCR.
const MAX_BULKY_FRAME_BYTES: u32 = 8 << 20;

/// What a file says of an interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InterfaceDescription {
    /// Its name on the capturing machine, if the file says.
    pub name: Option<String>,
    /// What its frames begin with: a LINKTYPE number of the pcap registry.
    pub link_type: u16,
    /// Bytes kept of each frame at most; `None` when frames were not cut.
    pub snap_length: Option<u32>,
    /// The unit of its times.
    pub resolution: Resolution,
}

/// An interface with what is needed to read its frames.
#[derive(Clone, Debug)]
pub(crate) struct Interface {
    pub(crate) description: InterfaceDescription,
    pub(crate) clock: FrameClock,
    /// `u32::MAX` when frames were not cut.
    pub(crate) snap_length: u32,
    pub(crate) longest_frame_bytes: u32,
    pub(crate) drops: Drops,
}

impl Interface {
    pub(crate) fn new(description: InterfaceDescription, offset_seconds: i64) -> Self {
        Self {
            clock: FrameClock::new(description.resolution, offset_seconds),
            snap_length: description.snap_length.unwrap_or(u32::MAX),
            longest_frame_bytes: longest_frame_bytes(description.link_type),
            drops: Drops::default(),
            description,
        }
    }
}

/// A snap length as files write it, where 0 means that frames were not cut.
pub(crate) fn snap_length_of(field: u32) -> Option<u32> {
    (field != 0).then_some(field)
}

fn longest_frame_bytes(link_type: u16) -> u32 {
    const USB_LINUX: u16 = 189;
    const USB_LINUX_MMAPPED: u16 = 220;
    const DBUS: u16 = 231;
    const USBPCAP: u16 = 249;
    const EBHSCR: u16 = 279;
    match link_type {
        USB_LINUX | USB_LINUX_MMAPPED | DBUS | USBPCAP | EBHSCR => MAX_BULKY_FRAME_BYTES,
        _ => MAX_FRAME_BYTES,
    }
}

/// Frames that an interface dropped, as reported in two ways that must not be added: a running
/// total from time to time, and with a frame how many were lost just before it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Drops {
    running_total: Option<u64>,
    before_frames: Option<u64>,
}

impl Drops {
    pub(crate) fn add_before_frame(&mut self, frames: u64) {
        let before = self.before_frames.unwrap_or(0);
        self.before_frames = Some(before.saturating_add(frames));
    }

    /// Totals only grow, so that the largest is the last.
    pub(crate) fn note_running_total(&mut self, frames: u64) {
        self.running_total = self.running_total.max(Some(frames));
    }

    /// `None` if the file does not report drops.
    pub(crate) fn total(&self) -> Option<u64> {
        self.running_total.max(self.before_frames)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drops_told_twice_count_once() {
        let mut drops = Drops::default();
        assert_eq!(drops.total(), None);
        drops.add_before_frame(2);
        drops.add_before_frame(3);
        assert_eq!(drops.total(), Some(5));
        drops.note_running_total(4);
        assert_eq!(drops.total(), Some(5));
        drops.note_running_total(7);
        drops.note_running_total(6);
        assert_eq!(drops.total(), Some(7));
    }
}
