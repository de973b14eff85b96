//! Frames from the interfaces of this machine, as they pass.
//!
//! A packet socket (`AF_PACKET`) with a ring of the third version (`TPACKET_V3`): the kernel fills
//! blocks of shared memory, and a block is one batch. Frames are handed on where they lie, without
//! a copy or a system call each.
//!
//! What the kernel changed about a frame is undone, so that another point sees the same one: VLAN
//! tags that it took out are put back, and super-packets ([`LiveCounts::super_packets`]) are handed
//! on as the packets of the wire. The latter needs `PACKET_VNET_HDR`, which goes together with this
//! ring since Linux 4.6.
//!
//! libpcap is an option (feature `libpcap`, `LibpcapSource`). Its ring is the same, but it does not
//! distinguish super-packets.

mod counts;
mod error;
#[cfg(feature = "libpcap")]
mod libpcap;
mod options;

#[cfg(target_os = "linux")]
mod block;
#[cfg(target_os = "linux")]
mod filter;
#[cfg(target_os = "linux")]
mod ring;
#[cfg(target_os = "linux")]
mod setup;
#[cfg(target_os = "linux")]
mod source;
#[cfg(target_os = "linux")]
mod split;
#[cfg(target_os = "linux")]
mod sys;

#[cfg(not(target_os = "linux"))]
#[path = "live/elsewhere.rs"]
mod source;

pub use counts::LiveCounts;
pub use error::LiveError;
#[cfg(feature = "libpcap")]
pub use libpcap::LibpcapSource;
pub use options::{LiveOptions, RingSize, Stop, TimePreference};
pub use source::LiveSource;
#[cfg(target_os = "linux")]
pub(crate) use sys::InterfaceName;

use std::fmt;

/// Sources of one group at most: [`LiveSource::open_group`].
pub const GROUP_MAX: usize = 64;

/// Why a live source has no more frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LiveEnding {
    /// [`Stop`] was set.
    Stopped,
    /// The interface went away. [`LiveSource::reopen`] works when it is back.
    InterfaceGone,
}

impl fmt::Display for LiveEnding {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Stopped => "stopped",
            Self::InterfaceGone => "the interface disappeared",
        })
    }
}
