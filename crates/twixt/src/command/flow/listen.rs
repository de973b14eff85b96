//! Exports as they come: datagrams, or connections that carry messages of IPFIX.

use std::io::{self, Read};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::str::FromStr;
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context;
use twixt_flow::{MessageSplitter, SplitEnd};
use twixt_model::quantity::Nanoseconds;

use crate::exit::note;

/// Connections that are read at once at most; further ones are closed.
const CONNECTIONS_MAX: usize = 16;
/// Messages that wait to be read at most; senders wait then.
const WAITING_MAX: usize = 64;
/// How often the end is looked at while nothing comes.
const TICK: Duration = Duration::from_millis(100);
const DATAGRAM_BYTES_MAX: usize = 65_535;

/// `udp:PORT`, `tcp:PORT`, or with an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Listen {
    carrier: Carrier,
    address: SocketAddr,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Carrier {
    Udp,
    Tcp,
}

impl FromStr for Listen {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || "use udp:PORT, tcp:PORT, or udp:ADDRESS:PORT".to_owned();
        let (carrier, place) = text.split_once(':').ok_or_else(wrong)?;
        let carrier = match carrier {
            "udp" => Carrier::Udp,
            "tcp" => Carrier::Tcp,
            _ => return Err(wrong()),
        };
        let any = |port: u16| SocketAddr::from(([0, 0, 0, 0], port));
        let address = place.parse::<u16>().map(any).or_else(|_| place.parse());
        Ok(Self { carrier, address: address.map_err(|_| wrong())? })
    }
}

/// Hands messages to `each` until it has enough, or the time is over.
pub(super) fn receive(
    listen: &Listen,
    limit: Option<Nanoseconds>,
    each: impl FnMut(SocketAddr, &[u8]) -> bool,
) -> anyhow::Result<()> {
    let limit = limit.map(|limit| Duration::from_nanos(limit.0.max(0) as u64));
    let end = limit.map(|limit| Instant::now() + limit);
    let address = listen.address;
    let context = || format!("cannot listen on {address}");
    match listen.carrier {
        Carrier::Udp => {
            let socket = UdpSocket::bind(address).with_context(context)?;
            note(format_args!("listening on udp {}", socket.local_addr()?));
            datagrams(&socket, end, each)
        }
        Carrier::Tcp => {
            let listener = TcpListener::bind(address).with_context(context)?;
            note(format_args!("listening on tcp {}", listener.local_addr()?));
            connections(listener, end, each)
        }
    }
}

fn is_over(end: Option<Instant>) -> bool {
    end.is_some_and(|end| Instant::now() >= end)
}

fn datagrams(
    socket: &UdpSocket,
    end: Option<Instant>,
    mut each: impl FnMut(SocketAddr, &[u8]) -> bool,
) -> anyhow::Result<()> {
    socket.set_read_timeout(Some(TICK))?;
    let mut buffer = vec![0; DATAGRAM_BYTES_MAX];
    while !is_over(end) {
        match socket.recv_from(&mut buffer) {
            Ok((length, exporter)) => {
                if !each(exporter, &buffer[..length]) {
                    break;
                }
            }
            Err(error) if is_timeout(&error) => {}
            Err(error) => return Err(error).context("cannot receive"),
        }
    }
    Ok(())
}

fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}

/// A message, and who sent it.
type Sent = (SocketAddr, Vec<u8>);

fn connections(
    listener: TcpListener,
    end: Option<Instant>,
    mut each: impl FnMut(SocketAddr, &[u8]) -> bool,
) -> anyhow::Result<()> {
    let (sender, receiver) = sync_channel(WAITING_MAX);
    // Ends with the process: it waits for connections, which nothing else can end.
    thread::spawn(move || accept(&listener, &sender));
    while !is_over(end) {
        match receiver.recv_timeout(TICK) {
            Ok((exporter, message)) => {
                if !each(exporter, &message) {
                    break;
                }
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    Ok(())
}

fn accept(listener: &TcpListener, sender: &SyncSender<Sent>) {
    let mut open: Vec<thread::JoinHandle<()>> = Vec::new();
    for connection in listener.incoming().flatten() {
        open.retain(|thread| !thread.is_finished());
        if open.len() >= CONNECTIONS_MAX {
            note(format_args!("more than {CONNECTIONS_MAX} connections: closing one"));
            continue;
        }
        let sender = sender.clone();
        open.push(thread::spawn(move || {
            if let Err(error) = messages(connection, &sender) {
                note(format_args!("a connection ended: {error}"));
            }
        }));
    }
}

fn messages(mut connection: TcpStream, sender: &SyncSender<Sent>) -> io::Result<()> {
    let exporter = connection.peer_addr()?;
    let mut splitter = MessageSplitter::new();
    let mut buffer = vec![0; DATAGRAM_BYTES_MAX];
    loop {
        let length = connection.read(&mut buffer)?;
        if length == 0 {
            return Ok(());
        }
        splitter.feed(&buffer[..length]);
        while let Some(message) = splitter.next_message() {
            if sender.send((exporter, message.to_vec())).is_err() {
                return Ok(());
            }
        }
        if let SplitEnd::Lost { offset } = splitter.end() {
            note(format_args!(
                "{exporter}: no IPFIX message at byte {offset}; closing the connection"
            ));
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_to_listen_on() {
        let listen = |text: &str| text.parse::<Listen>();
        assert_eq!(listen("udp:2055").unwrap().address, "0.0.0.0:2055".parse().unwrap());
        assert_eq!(listen("tcp:[::1]:4739").unwrap().address, "[::1]:4739".parse().unwrap());
        for wrong in ["", "2055", "udp:", "sctp:1", "udp:host:1", "udp:99999"] {
            assert!(listen(wrong).is_err(), "{wrong}");
        }
    }
}
