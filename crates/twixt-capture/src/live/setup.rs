//! From the name of an interface to a socket with a ring that is ready to receive.

use std::io;

use libc::c_int;
use twixt_model::TimeSource;

use super::ring::Ring;
use super::sys::{InterfaceName, PacketSocket};
use super::{LiveError, LiveOptions, TimePreference, filter};
use crate::{FrameDirection, interface_names};

/// A socket with its ring, bound to an interface. Lets nothing through before
/// [`Opened::start`].
#[derive(Debug)]
pub(super) struct Opened {
    /// Before the socket, so that the memory goes first.
    pub(super) ring: Ring,
    pub(super) socket: PacketSocket,
    pub(super) index: c_int,
    pub(super) kind: Kind,
    pub(super) time_source: TimeSource,
    /// Why the time is not the adapter's though that was preferred.
    pub(super) time_remark: Option<String>,
    frame_bytes_max: u32,
}

/// What frames of an interface begin with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Ethernet,
    /// Ethernet, every packet seen both as sent and as received.
    Loopback,
    RawIp,
}

/// IP and nothing before it; linux/if_arp.h.
const ARPHRD_RAWIP: u16 = 519;

impl Kind {
    fn of(hardware_type: u16) -> Option<Self> {
        match hardware_type {
            libc::ARPHRD_ETHER => Some(Self::Ethernet),
            libc::ARPHRD_LOOPBACK => Some(Self::Loopback),
            libc::ARPHRD_NONE
            | ARPHRD_RAWIP
            | libc::ARPHRD_TUNNEL
            | libc::ARPHRD_TUNNEL6
            | libc::ARPHRD_SIT => Some(Self::RawIp),
            _ => None,
        }
    }

    pub(super) const fn has_ethernet(self) -> bool {
        matches!(self, Self::Ethernet | Self::Loopback)
    }

    /// The LINKTYPE number of the pcap registry.
    pub(super) const fn link_type(self) -> u16 {
        if self.has_ethernet() { 1 } else { 101 }
    }
}

/// A group of sockets among which the kernel spreads the frames of an interface, by flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Group {
    None,
    /// A new one, with an unused number.
    New,
    Numbered(u16),
}

/// Ethernet header and two VLAN tags.
const LINK_BYTES_MAX: u32 = 14 + 8;

impl Opened {
    /// Opens an interface.
    pub(super) fn new(interface: &str, options: &LiveOptions) -> Result<Self, LiveError> {
        let system = |attempt| move |source| failed(interface, attempt, source);
        let socket = PacketSocket::open().map_err(system("opening a packet socket"))?;
        let name = InterfaceName::new(interface).ok_or_else(|| missing(interface))?;
        let index = socket.index_of(name).map_err(system("looking the interface up"))?;
        let kind = kind_of(&socket, interface, name)?;
        if !socket.is_up(name).map_err(system("querying the interface"))? {
            return Err(LiveError::Down { interface: interface.to_owned() });
        }
        let packet_bytes_max =
            socket.packet_bytes_max_of(name).map_err(system("querying the interface"))?;
        let version = libc::tpacket_versions::TPACKET_V3 as c_int;
        socket
            .set_number(libc::PACKET_VERSION, version)
            .and_then(|()| socket.set_number(libc::PACKET_VNET_HDR, 1))
            .map_err(system("requesting a ring that marks super-packets (Linux 4.6 or later)"))?;
        let (time_source, time_remark) = prefer_times(&socket, name, options.times)
            .map_err(system("requesting frame timestamps"))?;
        socket.set_filter(&mut filter::closed()).map_err(system("setting a filter"))?;
        let ring = Ring::map(&socket, options.ring)
            .map_err(|source| ring_refused(interface, options, source))?;
        socket.bind(index).map_err(system("binding to the interface"))?;
        if options.promiscuous {
            socket.be_promiscuous(index).map_err(system("making it promiscuous"))?;
        }
        let frame_bytes_max = packet_bytes_max.saturating_add(LINK_BYTES_MAX);
        Ok(Self { ring, socket, index, kind, time_source, time_remark, frame_bytes_max })
    }

    /// Joins a group. Returns its number, if there is a group.
    ///
    /// The kernel spreads by a hash of addresses, ports and protocol that is the same for both
    /// directions. No rollover: a full ring drops, rather than hand packets of a flow to another.
    pub(super) fn join(&self, interface: &str, group: Group) -> Result<Option<u16>, LiveError> {
        let system = |source| failed(interface, "joining a group of sockets", source);
        let (number, flags) = match group {
            Group::None => return Ok(None),
            Group::New => (0, libc::PACKET_FANOUT_HASH | libc::PACKET_FANOUT_FLAG_UNIQUEID),
            Group::Numbered(number) => (number, libc::PACKET_FANOUT_HASH),
        };
        let request = (u32::from(number) | flags << 16).cast_signed();
        self.socket.set_number(libc::PACKET_FANOUT, request).map_err(system)?;
        let joined = self.socket.number(libc::PACKET_FANOUT).map_err(system)?;
        Ok(Some(joined as u16)) // the low half is the number
    }

    /// Lets frames through from now on.
    pub(super) fn start(&self, interface: &str, options: &LiveOptions) -> Result<(), LiveError> {
        let direction = match (self.kind, options.direction) {
            (Kind::Loopback, None) => Some(FrameDirection::Inbound),
            (_, direction) => direction,
        };
        let mut program = filter::open(direction, options.snap_length, self.frame_bytes_max);
        self.socket
            .set_filter(&mut program)
            .map_err(|source| failed(interface, "setting a filter", source))
    }

    /// Lets nothing through any more.
    pub(super) fn close(&self) -> io::Result<()> {
        self.socket.set_filter(&mut filter::closed())
    }
}

fn kind_of(socket: &PacketSocket, interface: &str, name: InterfaceName) -> Result<Kind, LiveError> {
    let hardware_type = socket
        .hardware_type_of(name)
        .map_err(|source| failed(interface, "querying the interface", source))?;
    Kind::of(hardware_type).ok_or_else(|| LiveError::UnsupportedKind {
        interface: interface.to_owned(),
        hardware_type,
    })
}

/// Who will take the time, and why it is not who was asked for.
fn prefer_times(
    socket: &PacketSocket,
    name: InterfaceName,
    preference: TimePreference,
) -> io::Result<(TimeSource, Option<String>)> {
    socket.stamp_early()?;
    let stamped = match preference {
        TimePreference::Kernel => return Ok((TimeSource::Kernel, None)),
        TimePreference::Adapter => socket.adapter_stamps(name),
        TimePreference::SwitchOnAdapter => socket.have_adapter_stamp(name),
    };
    let remark = match stamped {
        Ok(frames) if frames == libc::HWTSTAMP_FILTER_ALL.cast_signed() => None,
        Ok(0) => Some("the adapter's timestamps are switched off".to_owned()),
        Ok(frames) => Some(format!("the adapter timestamps only some frames (filter {frames})")),
        Err(error) => Some(format!("the adapter has no timestamps: {error}")),
    };
    if remark.is_some() {
        return Ok((TimeSource::Kernel, remark));
    }
    let raw_hardware = libc::SOF_TIMESTAMPING_RAW_HARDWARE.cast_signed();
    socket.set_number(libc::PACKET_TIMESTAMP, raw_hardware)?;
    Ok((TimeSource::Hardware, None))
}

fn ring_refused(interface: &str, options: &LiveOptions, source: io::Error) -> LiveError {
    match source.raw_os_error() {
        Some(libc::ENOMEM | libc::ENOBUFS) => LiveError::NoMemory {
            interface: interface.to_owned(),
            bytes: options.ring.bytes(),
            source,
        },
        _ => failed(interface, "creating the ring", source),
    }
}

/// What the system's refusal means.
fn failed(interface: &str, attempt: &'static str, source: io::Error) -> LiveError {
    let name = interface.to_owned();
    match source.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => LiveError::NotPermitted { interface: name },
        Some(libc::ENODEV | libc::ENXIO) => missing(interface),
        _ => LiveError::System { interface: name, attempt, source },
    }
}

fn missing(interface: &str) -> LiveError {
    if interface == "any" {
        return LiveError::EveryInterface { interface: interface.to_owned() };
    }
    let known = interface_names().unwrap_or_default();
    LiveError::NoSuchInterface { interface: interface.to_owned(), known }
}
