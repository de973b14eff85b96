//! Sends frames as they are, super-packets too.

#![allow(unsafe_code, reason = "packet sockets")]

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// A packet socket that sends on one interface.
pub(crate) struct Sender {
    socket: OwnedFd,
}

/// As in `virtio_net_hdr`: what the kernel shall make of a super-packet.
#[derive(Clone, Copy)]
pub(crate) struct Offload {
    /// 1 is TCP over IPv4, 4 over IPv6, 5 UDP.
    pub(crate) kind: u8,
    pub(crate) headers_bytes: u16,
    pub(crate) piece_bytes: u16,
    /// Where the transport header begins, and the checksum in it.
    pub(crate) checksum: [u16; 2],
}

impl Sender {
    pub(crate) fn new(interface: &str) -> Self {
        let name = std::ffi::CString::new(interface).unwrap();
        // SAFETY: no pointers.
        let socket = unsafe { libc::socket(libc::AF_PACKET, libc::SOCK_RAW, 0) };
        assert!(socket >= 0, "{}", io::Error::last_os_error());
        // SAFETY: new, and ours alone.
        let socket = unsafe { OwnedFd::from_raw_fd(socket) };
        // SAFETY: a string that ends in zero.
        let index = unsafe { libc::if_nametoindex(name.as_ptr()) };
        assert!(index > 0, "{interface}: {}", io::Error::last_os_error());
        // SAFETY: a C struct of integers.
        let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_ifindex = index.cast_signed();
        let length = size_of::<libc::sockaddr_ll>() as u32;
        // SAFETY: the address is as long as stated.
        let bound = unsafe { libc::bind(socket.as_raw_fd(), (&raw const address).cast(), length) };
        assert_eq!(bound, 0, "{}", io::Error::last_os_error());
        let one: libc::c_int = 1;
        let value = (&raw const one).cast();
        let (level, option) = (libc::SOL_PACKET, libc::PACKET_VNET_HDR);
        // SAFETY: the value is as long as stated.
        let set = unsafe { libc::setsockopt(socket.as_raw_fd(), level, option, value, 4) };
        assert_eq!(set, 0, "{}", io::Error::last_os_error());
        Self { socket }
    }

    /// Sends a frame.
    pub(crate) fn send(&self, frame: &[u8]) {
        self.write(&[&[0; 10], frame].concat());
    }

    /// Sends a super-packet.
    pub(crate) fn send_super_packet(&self, frame: &[u8], offload: Offload) {
        const NEEDS_CHECKSUM: u8 = 1;
        let mut bytes = vec![NEEDS_CHECKSUM, offload.kind];
        let [start, offset] = offload.checksum;
        for field in [offload.headers_bytes, offload.piece_bytes, start, offset] {
            bytes.extend(field.to_ne_bytes());
        }
        bytes.extend(frame);
        self.write(&bytes);
    }

    fn write(&self, bytes: &[u8]) {
        let descriptor = self.socket.as_raw_fd();
        loop {
            // SAFETY: the slice is as long as stated.
            let sent = unsafe { libc::send(descriptor, bytes.as_ptr().cast(), bytes.len(), 0) };
            if usize::try_from(sent) == Ok(bytes.len()) {
                return;
            }
            let error = io::Error::last_os_error();
            assert_eq!(error.raw_os_error(), Some(libc::ENOBUFS), "{error}");
        }
    }
}
