//! Why an interface cannot be captured.

use std::io;

/// Why an interface cannot be captured.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LiveError {
    /// The system has no packet sockets. Capture on Linux, or elsewhere with another program, and
    /// read its file.
    #[error(
        "{interface}: live capture needs Linux; capture with tcpdump here, and read its file with -r"
    )]
    NotLinux {
        /// The interface as given.
        interface: String,
    },
    /// The process may not open packet sockets. Run it as root, or give the program the
    /// capability.
    #[error(
        "{interface}: capturing needs the capability CAP_NET_RAW; run with sudo, or once: \
         sudo setcap cap_net_raw=ep \"$(command -v twixt)\""
    )]
    NotPermitted {
        /// The interface as given.
        interface: String,
    },
    /// There is no interface of that name. Check the spelling, and the network namespace.
    #[error("{interface}: no such interface; there are: {}", known.join(", "))]
    NoSuchInterface {
        /// The interface as given.
        interface: String,
        /// Those that exist.
        known: Vec<String>,
    },
    /// All interfaces at once would show most packets more than once. Name one.
    #[error(
        "{interface}: would capture packets once per interface that they cross; name one interface"
    )]
    EveryInterface {
        /// The interface as given.
        interface: String,
    },
    /// The interface is down. Bring it up.
    #[error("{interface}: is down; bring it up with: ip link set {interface} up")]
    Down {
        /// The interface as given.
        interface: String,
    },
    /// The interface has frames of a kind that is not read here. Capture with another program, and
    /// read its file.
    #[error(
        "{interface}: interfaces of ARPHRD type {hardware_type} are not supported; capture with \
         tcpdump -y LINUX_SLL2, and read its file with -r"
    )]
    UnsupportedKind {
        /// The interface as given.
        interface: String,
        /// The kernel's number for the kind.
        hardware_type: u16,
    },
    /// The kernel has no memory for the ring. Ask for a smaller one.
    #[error("{interface}: no memory for a ring of {bytes} bytes; use a smaller one")]
    NoMemory {
        /// The interface as given.
        interface: String,
        /// How much was asked for.
        bytes: usize,
        /// The system error.
        source: io::Error,
    },
    /// The system refused something else. The source says why.
    #[error("{interface}: {attempt} failed")]
    System {
        /// The interface as given.
        interface: String,
        /// What was tried.
        attempt: &'static str,
        /// The system error.
        source: io::Error,
    },
}
