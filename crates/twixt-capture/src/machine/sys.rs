//! System calls about interfaces and disks, each behind a safe function.

#![allow(unsafe_code, reason = "system calls")]

use std::ffi::CString;
use std::io;
use std::mem::zeroed;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use libc::{c_int, c_ulong};

use super::{Adapter, ethtool};
use crate::live::InterfaceName;

/// Unlike /sys, this is of the network namespace of the thread.
const INTERFACES: &str = "/proc/thread-self/net/dev";

pub(super) fn interface_names() -> io::Result<Vec<String>> {
    let table = std::fs::read_to_string(INTERFACES)?;
    let names = table.lines().filter_map(|line| line.split_once(':'));
    let mut names: Vec<String> = names.map(|(name, _)| name.trim().to_owned()).collect();
    names.sort();
    Ok(names)
}

pub(super) fn look_at(interface: &str) -> io::Result<Adapter> {
    let missing = || io::Error::from_raw_os_error(libc::ENODEV);
    let name = InterfaceName::new(interface).ok_or_else(missing)?;
    let socket = ControlSocket::open()?;
    let flags = socket.flags_of(name)?;
    let has = |flag: c_int| flags & flag != 0;
    // What a driver does not answer is not known; that is not an error.
    Ok(Adapter {
        is_up: has(libc::IFF_UP),
        is_running: has(libc::IFF_UP) && has(libc::IFF_RUNNING),
        is_loopback: has(libc::IFF_LOOPBACK),
        packet_bytes_max: socket.packet_bytes_max_of(name)?,
        driver: socket
            .ethtool(name, ethtool::DRIVER)
            .ok()
            .and_then(|words| ethtool::driver(&words)),
        offloads: ethtool::offloads(|question| socket.ethtool(name, question).ok()),
        rings: socket.ethtool(name, ethtool::RINGS).ok().and_then(|words| ethtool::rings(&words)),
        stamps: socket.ethtool(name, ethtool::STAMPS).ok().map(|words| ethtool::stamps(&words)),
    })
}

pub(super) fn free_bytes(folder: &Path) -> io::Result<u64> {
    let path = CString::new(folder.as_os_str().as_bytes()).map_err(io::Error::other)?;
    // SAFETY: a C struct of integers, for which zeros are values.
    let mut answer: libc::statvfs = unsafe { zeroed() };
    // SAFETY: a string that ends in zero, and a struct that lives through the call.
    check(unsafe { libc::statvfs(path.as_ptr(), &raw mut answer) })?;
    #[allow(clippy::useless_conversion, reason = "narrower on some machines")]
    let blocks = u64::from(answer.f_bavail);
    #[allow(clippy::useless_conversion, reason = "narrower on some machines")]
    let block_bytes = u64::from(answer.f_frsize);
    Ok(blocks.saturating_mul(block_bytes))
}

/// Any socket will do to ask about interfaces; this one needs no privilege.
struct ControlSocket(OwnedFd);

/// Carries questions for the driver; linux/sockios.h.
const SIOCETHTOOL: c_ulong = 0x8946;

impl ControlSocket {
    fn open() -> io::Result<Self> {
        let kind = libc::SOCK_DGRAM | libc::SOCK_CLOEXEC;
        // SAFETY: no pointers.
        let descriptor = check(unsafe { libc::socket(libc::AF_UNIX, kind, 0) })?;
        // SAFETY: the kernel just gave it to us, and nobody else has it.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(descriptor) }))
    }

    fn flags_of(&self, name: InterfaceName) -> io::Result<c_int> {
        let mut carrier = name.carrier();
        self.control(libc::SIOCGIFFLAGS as c_ulong, &mut carrier)?;
        // SAFETY: this request fills this member; any bits are a value of it.
        Ok(c_int::from(unsafe { carrier.ifr_ifru.ifru_flags }))
    }

    fn packet_bytes_max_of(&self, name: InterfaceName) -> io::Result<u32> {
        let mut carrier = name.carrier();
        self.control(libc::SIOCGIFMTU as c_ulong, &mut carrier)?;
        // SAFETY: this request fills this member; any bits are a value of it.
        Ok(unsafe { carrier.ifr_ifru.ifru_mtu }.try_into().unwrap_or(0))
    }

    /// Asks the driver. `WORDS` is the length that the answer to the question has.
    fn ethtool<const WORDS: usize>(
        &self,
        name: InterfaceName,
        question: u32,
    ) -> io::Result<[u32; WORDS]> {
        let mut words = [0; WORDS];
        words[0] = question;
        let mut carrier = name.carrier();
        // The kernel reads and writes through this pointer only within the call.
        carrier.ifr_ifru.ifru_data = (&raw mut words).cast();
        self.control(SIOCETHTOOL, &mut carrier)?;
        Ok(words)
    }

    fn control(&self, request: c_ulong, carrier: &mut libc::ifreq) -> io::Result<()> {
        let descriptor = self.0.as_raw_fd();
        // SAFETY: every request of this module takes a pointer to an `ifreq`, which lives through
        // the call; where it points further, the caller made it point to something that does.
        check(unsafe { libc::ioctl(descriptor, request as _, &raw mut *carrier) }).map(drop)
    }
}

fn check(code: c_int) -> io::Result<c_int> {
    if code < 0 { Err(io::Error::last_os_error()) } else { Ok(code) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_interface_is_known() {
        let names = interface_names().unwrap();
        assert!(names.iter().any(|name| name == "lo"), "{names:?}");
        let adapter = look_at("lo").unwrap();
        assert!(adapter.is_loopback && adapter.packet_bytes_max >= 1280, "{adapter:?}");
        assert!(adapter.offloads.gso.is_some(), "{adapter:?}");
    }

    #[test]
    fn what_is_not_there_is_an_error() {
        assert!(look_at("no-such-thing0").is_err());
        assert!(look_at("a name that is too long for any").is_err());
        assert!(free_bytes(Path::new("/no/such/folder")).is_err());
    }

    #[test]
    fn there_is_room() {
        assert!(free_bytes(Path::new("/")).is_ok());
    }
}
