//! Where messages go: a file, a datagram each, or a connection.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs, UdpSocket};
use std::path::Path;
use std::thread;
use std::time::Duration;

use anyhow::Context;
use twixt_offline::is_standard_input;

/// Between two datagrams: a capture is read faster than collectors take what comes of it.
const DATAGRAM_PAUSE: Duration = Duration::from_micros(200);

/// Takes messages of IPFIX.
pub(super) enum Outlet {
    File { out: BufWriter<Box<dyn Write>>, name: String },
    Udp { socket: UdpSocket, name: String },
    Tcp { stream: TcpStream, name: String },
}

impl Outlet {
    /// A file, or standard output.
    pub(super) fn file(path: &Path) -> anyhow::Result<Self> {
        let name = path.display().to_string();
        let out: Box<dyn Write> = match is_standard_input(path) {
            true => Box::new(io::stdout().lock()),
            false => Box::new(File::create(path).with_context(|| format!("cannot write {name}"))?),
        };
        Ok(Self::File { out: BufWriter::new(out), name })
    }

    /// A collector that takes datagrams.
    pub(super) fn udp(collector: &str) -> anyhow::Result<Self> {
        let address = resolved(collector)?;
        let local = SocketAddr::new(
            match address {
                SocketAddr::V4(_) => [0, 0, 0, 0].into(),
                SocketAddr::V6(_) => [0; 16].into(),
            },
            0,
        );
        let socket = UdpSocket::bind(local).context("cannot send datagrams")?;
        socket.connect(address).with_context(|| format!("cannot send to {collector}"))?;
        Ok(Self::Udp { socket, name: collector.to_owned() })
    }

    /// A collector that takes a connection.
    pub(super) fn tcp(collector: &str) -> anyhow::Result<Self> {
        let stream = TcpStream::connect(resolved(collector)?)
            .with_context(|| format!("cannot connect to {collector}"))?;
        Ok(Self::Tcp { stream, name: collector.to_owned() })
    }

    /// What errors call it.
    pub(super) fn name(&self) -> &str {
        match self {
            Self::File { name, .. } | Self::Udp { name, .. } | Self::Tcp { name, .. } => name,
        }
    }

    /// Whether what is sent may get lost.
    pub(super) const fn may_lose(&self) -> bool {
        matches!(self, Self::Udp { .. })
    }

    pub(super) fn send(&mut self, message: &[u8]) -> anyhow::Result<()> {
        let sent = match self {
            Self::File { out, .. } => out.write_all(message),
            Self::Tcp { stream, .. } => stream.write_all(message),
            Self::Udp { socket, .. } => {
                thread::sleep(DATAGRAM_PAUSE);
                socket.send(message).map(|_| ())
            }
        };
        sent.with_context(|| format!("cannot write to {}", self.name()))
    }

    pub(super) fn finish(mut self) -> anyhow::Result<()> {
        let flushed = match &mut self {
            Self::File { out, .. } => out.flush(),
            Self::Tcp { stream, .. } => stream.flush(),
            Self::Udp { .. } => Ok(()),
        };
        flushed.with_context(|| format!("cannot write to {}", self.name()))
    }
}

fn resolved(collector: &str) -> anyhow::Result<SocketAddr> {
    let mut addresses =
        collector.to_socket_addrs().with_context(|| format!("{collector} is not HOST:PORT"))?;
    addresses.next().with_context(|| format!("{collector} does not resolve"))
}
