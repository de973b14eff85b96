//! System calls on packet sockets, each behind a safe function. Knows nothing of rings or frames.

#![allow(unsafe_code, reason = "system calls")]

use std::ffi::CStr;
use std::io;
use std::mem::{size_of, zeroed};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::time::Duration;

use libc::{c_int, c_ulong, c_void, socklen_t};

/// A packet socket that is not yet bound.
#[derive(Debug)]
pub(super) struct PacketSocket {
    descriptor: OwnedFd,
}

/// What waiting on a socket came to.
#[derive(Debug)]
pub(super) enum Readiness {
    /// Frames may be there.
    Ready,
    /// The time is over, or a signal came.
    Nothing,
    /// The kernel reports an error on the socket, once.
    Trouble(io::Error),
}

/// The name of an interface as system calls take it: shorter than 16 bytes, ending in zero.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InterfaceName([libc::c_char; libc::IFNAMSIZ]);

impl InterfaceName {
    /// `None` if no interface can be called so.
    pub(crate) fn new(name: &str) -> Option<Self> {
        let mut bytes = [0; libc::IFNAMSIZ];
        if name.is_empty() || name.len() >= bytes.len() || name.contains('\0') {
            return None;
        }
        for (to, from) in bytes.iter_mut().zip(name.bytes()) {
            *to = from.cast_signed() as libc::c_char;
        }
        Some(Self(bytes))
    }

    /// What carries questions about this interface.
    pub(crate) fn carrier(self) -> libc::ifreq {
        // SAFETY: integers, pointers and arrays of them, for which zeros are values.
        let mut carrier: libc::ifreq = unsafe { zeroed() };
        carrier.ifr_name = self.0;
        carrier
    }
}

/// Values that system calls read and write as bytes.
///
/// # Safety
///
/// The type has the layout that C gives it, and every pattern of bits is a value of it.
unsafe trait Plain: Copy {}
// SAFETY: an integer.
unsafe impl Plain for c_int {}
// SAFETY: a C struct of integers.
unsafe impl Plain for libc::tpacket_req3 {}
// SAFETY: a C struct of integers.
unsafe impl Plain for libc::tpacket_stats_v3 {}
// SAFETY: a C struct of integers.
unsafe impl Plain for libc::packet_mreq {}
// SAFETY: a C struct of an integer and a raw pointer, which may hold anything.
unsafe impl Plain for libc::sock_fprog {}

impl PacketSocket {
    /// A raw socket that receives nothing before it is bound. Never blocks.
    pub(super) fn open() -> io::Result<Self> {
        let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
        // SAFETY: no pointers.
        let descriptor = check(unsafe { libc::socket(libc::AF_PACKET, kind, 0) })?;
        // SAFETY: the kernel just gave it to us, and nobody else has it.
        Ok(Self { descriptor: unsafe { OwnedFd::from_raw_fd(descriptor) } })
    }

    /// Receives the frames of an interface from now on.
    pub(super) fn bind(&self, interface: c_int) -> io::Result<()> {
        // SAFETY: a C struct of integers, for which zeros are values.
        let mut address: libc::sockaddr_ll = unsafe { zeroed() };
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
        address.sll_ifindex = interface;
        let length = size_of::<libc::sockaddr_ll>() as socklen_t;
        let address: *const libc::sockaddr_ll = &raw const address;
        // SAFETY: the address lives through the call and is as long as stated.
        check(unsafe { libc::bind(self.raw(), address.cast(), length) }).map(drop)
    }

    /// Sets an option of packet sockets to an integer.
    pub(super) fn set_number(&self, option: c_int, value: c_int) -> io::Result<()> {
        self.set(libc::SOL_PACKET, option, &value)
    }

    /// Reads an option of packet sockets that is an integer.
    pub(super) fn number(&self, option: c_int) -> io::Result<c_int> {
        self.read(libc::SOL_PACKET, option)
    }

    /// Has frames stamped when they reach the kernel, rather than when they reach the socket.
    pub(super) fn stamp_early(&self) -> io::Result<()> {
        self.set(libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, &1)
    }

    /// Makes the ring that [`super::ring`] maps.
    pub(super) fn make_ring(&self, request: &libc::tpacket_req3) -> io::Result<()> {
        self.set(libc::SOL_PACKET, libc::PACKET_RX_RING, request)
    }

    /// Frames received and dropped since the last call.
    pub(super) fn take_statistics(&self) -> io::Result<libc::tpacket_stats_v3> {
        self.read(libc::SOL_PACKET, libc::PACKET_STATISTICS)
    }

    /// Has the interface receive frames for others as long as the socket lives.
    pub(super) fn be_promiscuous(&self, interface: c_int) -> io::Result<()> {
        let request = libc::packet_mreq {
            mr_ifindex: interface,
            mr_type: libc::PACKET_MR_PROMISC as u16,
            mr_alen: 0,
            mr_address: [0; 8],
        };
        self.set(libc::SOL_PACKET, libc::PACKET_ADD_MEMBERSHIP, &request)
    }

    /// Has the kernel run a program over every frame from now on.
    pub(super) fn set_filter(&self, program: &mut [libc::sock_filter]) -> io::Result<()> {
        let length = u16::try_from(program.len()).map_err(io::Error::other)?;
        // The kernel only reads it, within the call.
        let program = libc::sock_fprog { len: length, filter: program.as_mut_ptr() };
        self.set(libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, &program)
    }

    /// The number of an interface.
    pub(super) fn index_of(&self, name: InterfaceName) -> io::Result<c_int> {
        let answer = self.ask(libc::SIOCGIFINDEX as c_ulong, name)?;
        // SAFETY: this request fills this member; any bits are a value of it.
        Ok(unsafe { answer.ifr_ifru.ifru_ifindex })
    }

    /// What kind of frames an interface has: an ARPHRD number.
    pub(super) fn hardware_type_of(&self, name: InterfaceName) -> io::Result<u16> {
        let answer = self.ask(libc::SIOCGIFHWADDR as c_ulong, name)?;
        // SAFETY: this request fills this member; any bits are a value of it.
        Ok(unsafe { answer.ifr_ifru.ifru_hwaddr.sa_family })
    }

    /// How long a packet of an interface may be.
    pub(super) fn packet_bytes_max_of(&self, name: InterfaceName) -> io::Result<u32> {
        let answer = self.ask(libc::SIOCGIFMTU as c_ulong, name)?;
        // SAFETY: this request fills this member; any bits are a value of it.
        Ok(unsafe { answer.ifr_ifru.ifru_mtu }.try_into().unwrap_or(0))
    }

    /// Whether an interface is up, by its present name.
    pub(super) fn is_up(&self, name: InterfaceName) -> io::Result<bool> {
        let answer = self.ask(libc::SIOCGIFFLAGS as c_ulong, name)?;
        // SAFETY: this request fills this member; any bits are a value of it.
        let flags = c_int::from(unsafe { answer.ifr_ifru.ifru_flags });
        Ok(flags & libc::IFF_UP != 0)
    }

    /// The present name of the interface with that number.
    pub(super) fn name_of(&self, interface: c_int) -> io::Result<InterfaceName> {
        // SAFETY: integers, pointers and arrays of them, for which zeros are values.
        let mut request: libc::ifreq = unsafe { zeroed() };
        request.ifr_ifru.ifru_ifindex = interface;
        self.control(libc::SIOCGIFNAME as c_ulong, &mut request)?;
        Ok(InterfaceName(request.ifr_name))
    }

    /// Which received frames the adapter stamps, as a HWTSTAMP_FILTER number.
    pub(super) fn adapter_stamps(&self, name: InterfaceName) -> io::Result<c_int> {
        self.adapter_config(libc::SIOCGHWTSTAMP as c_ulong, name, libc::HWTSTAMP_FILTER_NONE)
    }

    /// Asks the adapter to stamp all received frames. Returns which ones it will.
    pub(super) fn have_adapter_stamp(&self, name: InterfaceName) -> io::Result<c_int> {
        self.adapter_config(libc::SIOCSHWTSTAMP as c_ulong, name, libc::HWTSTAMP_FILTER_ALL)
    }

    /// Waits until frames are there, the time is over, or something happened to the interface.
    pub(super) fn wait(&self, longest: Duration) -> io::Result<Readiness> {
        let milliseconds = c_int::try_from(longest.as_millis()).unwrap_or(c_int::MAX);
        let mut entry = libc::pollfd { fd: self.raw(), events: libc::POLLIN, revents: 0 };
        // SAFETY: one entry, which lives through the call.
        match check(unsafe { libc::poll(&raw mut entry, 1, milliseconds) }) {
            Ok(0) => Ok(Readiness::Nothing),
            Ok(_) if entry.revents & libc::POLLERR != 0 => self.take_error(),
            Ok(_) => Ok(Readiness::Ready),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(Readiness::Nothing),
            Err(error) => Err(error),
        }
    }

    /// For mapping.
    pub(super) fn raw(&self) -> c_int {
        self.descriptor.as_raw_fd()
    }

    fn take_error(&self) -> io::Result<Readiness> {
        match self.read::<c_int>(libc::SOL_SOCKET, libc::SO_ERROR)? {
            0 => Ok(Readiness::Ready),
            code => Ok(Readiness::Trouble(io::Error::from_raw_os_error(code))),
        }
    }

    fn adapter_config(
        &self,
        request: c_ulong,
        name: InterfaceName,
        rx_filter: libc::c_uint,
    ) -> io::Result<c_int> {
        let rx_filter = rx_filter.cast_signed();
        let mut config = libc::hwtstamp_config { flags: 0, tx_type: 0, rx_filter };
        let mut carrier = name.carrier();
        // The kernel reads and writes through this pointer only within the call.
        carrier.ifr_ifru.ifru_data = (&raw mut config).cast();
        self.control(request, &mut carrier)?;
        Ok(config.rx_filter)
    }

    fn ask(&self, request: c_ulong, name: InterfaceName) -> io::Result<libc::ifreq> {
        let mut carrier = name.carrier();
        self.control(request, &mut carrier)?;
        Ok(carrier)
    }

    fn control(&self, request: c_ulong, carrier: &mut libc::ifreq) -> io::Result<()> {
        // SAFETY: every request of this module takes a pointer to an `ifreq`, which lives through
        // the call; where it points further, the caller made it point to something that does.
        let code = unsafe { libc::ioctl(self.raw(), request as _, &raw mut *carrier) };
        check(code).map(drop)
    }

    fn set<T: Plain>(&self, level: c_int, option: c_int, value: &T) -> io::Result<()> {
        let length = size_of::<T>() as socklen_t;
        let value: *const T = value;
        // SAFETY: the value lives through the call and is as long as stated.
        let code =
            unsafe { libc::setsockopt(self.raw(), level, option, value.cast::<c_void>(), length) };
        check(code).map(drop)
    }

    fn read<T: Plain>(&self, level: c_int, option: c_int) -> io::Result<T> {
        // SAFETY: `Plain` says that all bits are a value, zeros too.
        let mut value: T = unsafe { zeroed() };
        let mut length = size_of::<T>() as socklen_t;
        let target: *mut T = &raw mut value;
        // SAFETY: the kernel writes at most `length` bytes, which the target has.
        check(unsafe {
            libc::getsockopt(self.raw(), level, option, target.cast(), &raw mut length)
        })?;
        Ok(value)
    }
}

impl std::fmt::Display for InterfaceName {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let bytes = self.0.map(|byte| byte as u8);
        let name = CStr::from_bytes_until_nul(&bytes).unwrap_or_default();
        formatter.write_str(&name.to_string_lossy())
    }
}

fn check(code: c_int) -> io::Result<c_int> {
    if code < 0 { Err(io::Error::last_os_error()) } else { Ok(code) }
}
