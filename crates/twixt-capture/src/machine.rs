//! What capturing depends on at this machine: its interfaces, what their adapters do to
//! frames, and the room on its disks. Looks only; changes nothing, and needs no
//! privilege.
//!
//! What is good or bad about it is not known here: see `twixt doctor`.

#[cfg(target_os = "linux")]
mod ethtool;
#[cfg(target_os = "linux")]
mod sys;

#[cfg(not(target_os = "linux"))]
#[path = "machine/elsewhere.rs"]
mod sys;

use std::io;
use std::path::Path;

/// Names of the interfaces of this thread's network namespace, in order.
///
/// # Errors
///
/// If the kernel does not report it.
pub fn interface_names() -> io::Result<Vec<String>> {
    sys::interface_names()
}

/// Bytes that an ordinary user may still write to the file system of `folder`.
///
/// # Errors
///
/// If there is no such folder, or it may not be looked at.
pub fn free_bytes(folder: &Path) -> io::Result<u64> {
    sys::free_bytes(folder)
}

/// An interface and the adapter behind it, as they are now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Adapter {
    /// It was brought up.
    pub is_up: bool,
    /// It was brought up, and has a carrier.
    pub is_running: bool,
    /// It is the loopback interface.
    pub is_loopback: bool,
    /// The longest packet that it carries (MTU).
    pub packet_bytes_max: u32,
    /// The kernel's driver; `None` if it is unknown.
    pub driver: Option<String>,
    /// Which packets it joins or splits.
    pub offloads: Offloads,
    /// Frames it has room for; `None` if it has no rings of a size to be set.
    pub rings: Option<AdapterRings>,
    /// Which timestamps it supports; `None` if it does not report that.
    pub stamps: Option<AdapterStamps>,
}

impl Adapter {
    /// Looks at an interface.
    ///
    /// # Errors
    ///
    /// If there is no such interface, or the kernel does not report it.
    pub fn look_at(interface: &str) -> io::Result<Self> {
        sys::look_at(interface)
    }
}

/// Offloads that make the kernel see other packets than the wire carries. `None` is unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Offloads {
    /// The kernel joins what it receives (generic receive offload).
    pub gro: Option<bool>,
    /// The kernel splits what it sends as late as it can (generic segmentation offload).
    pub gso: Option<bool>,
    /// The adapter splits TCP that it sends (TCP segmentation offload).
    pub tso: Option<bool>,
    /// The adapter merges received packets irreversibly (large receive offload).
    pub lro: Option<bool>,
}

/// Frames that an adapter has room for between two looks of the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AdapterRings {
    /// Received frames.
    pub received: u32,
    /// The most that `received` can be set to.
    pub received_max: u32,
    /// Frames to send.
    pub sent: u32,
    /// The most that `sent` can be set to.
    pub sent_max: u32,
}

/// What times an adapter can take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AdapterStamps {
    /// It can stamp every frame that it receives.
    pub can_stamp_all_received: bool,
    /// The number of its clock: `/dev/ptpN`.
    pub clock: Option<u32>,
}
