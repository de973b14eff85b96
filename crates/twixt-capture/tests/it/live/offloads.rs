//! Super-packets become the packets that the wire carries.
//!
//! The referee is the kernel: a token bucket whose bucket is smaller than a super-packet makes it
//! split them before they are sent.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv6Addr, TcpListener, TcpStream, UdpSocket};
use std::process::Stdio;
use std::thread;

use twixt_capture::{FrameDirection, LiveOptions, LiveSource};
use twixt_model::{DigestHash, DigestProfile, Needs};
use twixt_testing::{require, run, wait_for};
use twixt_wire::{Digester, HashKey, LinkType, Observer, ObserverOptions};

use crate::live::frames::{Packet, Seen, Transport, frames_of, open, read, sum};
use crate::live::namespace::{Peer, in_namespace, words};
use crate::live::sender::Sender;

const PIECE_BYTES: u16 = 1000;
/// The bucket holds one packet of the wire, and no super-packet.
const BUCKET: &str = "tbf rate 1gbit burst 1600 limit 10mb";

/// Frames that arrive when a super-packet is sent, with the tags.
fn arriving(packet: &Packet, tags: &[u8]) -> (Vec<Seen>, LiveSource) {
    let mut source = open("right", LiveOptions::default());
    let mut frame = packet.frame();
    let mut offload = packet.offload(PIECE_BYTES);
    frame.splice(12..12, tags.iter().copied());
    offload.headers_bytes += tags.len() as u16;
    offload.checksum[0] += tags.len() as u16;
    Sender::new("left").send_super_packet(&frame, offload);
    let count = packet.payload_bytes.div_ceil(usize::from(PIECE_BYTES));
    (frames_of(&mut source, count), source.0)
}

/// Without what is not restored: the checksum of TCP and UDP.
fn comparable(seen: &Seen, packet: &Packet, tags: &[u8]) -> (Vec<u8>, u32) {
    let [transport_at, checksum_at] = packet.offload(PIECE_BYTES).checksum.map(usize::from);
    let mut bytes = seen.bytes.clone();
    bytes[transport_at + checksum_at + tags.len()..][..2].fill(0);
    (bytes, seen.wire_length)
}

#[track_caller]
fn check(packet: Packet, tags: &[u8]) {
    let comparable = |seen: &[Seen]| -> Vec<_> {
        seen.iter().map(|seen| comparable(seen, &packet, tags)).collect()
    };
    let (split_here, source) = arriving(&packet, tags);
    assert_eq!(source.live_counts().super_packets, 1, "it arrived as one");
    assert_eq!(source.live_counts().pieces, split_here.len() as u64);
    run(&format!("tc qdisc add dev left root {BUCKET}"));
    let (split_by_kernel, source) = arriving(&packet, tags);
    run("tc qdisc del dev left root");
    assert_eq!(source.live_counts().super_packets, 0, "the kernel split it");
    let is_same = comparable(&split_here) == comparable(&split_by_kernel);
    assert!(is_same, "{split_here:x?} is not {split_by_kernel:x?}");
    if !packet.v6 {
        let header = &split_here[0].bytes[14 + tags.len()..][..20];
        assert_eq!(sum(header), 0xffff, "the checksum of the IP header is right");
    }
}

#[test]
fn super_packets_are_split_as_the_kernel_does() {
    in_namespace(|| {
        let tcp = Packet { payload_bytes: 4500, ..Packet::default() };
        check(tcp, &[]);
        // All flags but SYN, RST and URG: FIN, PSH, ACK, ECE, CWR.
        check(Packet { tcp_flags: 0b1101_1001, ..tcp }, &[]);
        check(Packet { v6: true, tcp_flags: 0x19, ..tcp }, &[]);
        check(Packet { payload_bytes: 4000, ..tcp }, &[0x81, 0, 0x20, 7]);
        check(Packet { payload_bytes: 60_000, ..tcp }, &[]);
        let udp = Packet { transport: Transport::Udp, ..tcp };
        check(udp, &[]);
        check(Packet { identification: 0, ..udp }, &[]);
        check(Packet { v6: true, ..udp }, &[]);
    });
}

/// How often each digest of a TCP packet was seen.
fn digests(seen: &[Seen]) -> BTreeMap<u64, u32> {
    let digester = Digester::new(
        DigestProfile::Default,
        DigestHash::Xxh3,
        twixt_wire::PAYLOAD_BYTES_MAX,
        HashKey::from_seed(1),
    );
    let observer = Observer::new(ObserverOptions {
        needs: Needs { digest: true, flow: false, detail: false, group: false, exchange: false },
        outer: false,
        filter: Some("tcp".parse().unwrap()),
        classes: Vec::new(),
        digester,
    })
    .unwrap();
    let mut digests = BTreeMap::new();
    for frame in seen {
        let link = LinkType::ETHERNET;
        if let Ok(observed) = observer.observe(link, &frame.bytes, frame.wire_length, frame.time) {
            *digests.entry(observed.digest.0).or_default() += 1;
        }
    }
    digests
}

const TRANSFER_BYTES: usize = 2 << 20;
const PORT: u16 = 7777;
const PEER: &str = "TWIXT_TEST_IS_PEER";
/// A datagram behind the transfer.
const MARKER: &[u8] = b"that was all";

/// Sends to the peer, and reads how much arrived.
fn transfer(address: &str) {
    let mut stream = wait_for("a peer that listens", || TcpStream::connect((address, PORT)));
    let bytes: Vec<u8> = (0..TRANSFER_BYTES).map(|at| (at / 3 + at / 1000) as u8).collect();
    stream.write_all(&bytes).unwrap();
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert_eq!(answer, TRANSFER_BYTES.to_string());
}

/// An address for a socket of IPv6.
fn mapped(address: &str) -> Ipv6Addr {
    match address.parse().unwrap() {
        IpAddr::V4(address) => address.to_ipv6_mapped(),
        IpAddr::V6(address) => address,
    }
}

/// Reads all that comes, and answers how much it was; once.
fn serve() {
    let listener = TcpListener::bind(("::", PORT)).unwrap();
    let (mut stream, _) = listener.accept().unwrap();
    let length = stream.read_to_end(&mut Vec::new()).unwrap();
    write!(stream, "{length}").unwrap();
}

/// Reads what an interface sends, on a thread of its own, until [`MARKER`] has passed.
fn reading(interface: &str) -> thread::JoinHandle<(Vec<Seen>, LiveSource)> {
    let direction = Some(FrameDirection::Outbound);
    let (mut source, _) = open(interface, LiveOptions { direction, ..LiveOptions::default() });
    let has_marker = |seen: &[Seen]| seen.iter().any(|seen| seen.bytes.ends_with(MARKER));
    thread::spawn(move || (read(&mut source, |seen, _| has_marker(seen)), source))
}

/// Digests of a transfer as a bridge sends it and as the interface below sends it.
fn check_transfer(name: &str, peer: &Peer, address: &str) {
    let mut server = words(&format!("nsenter --target {} --net", peer.pid()))
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture"])
        .env(PEER, "1")
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let readers = ["bridge", "left"].map(reading);
    transfer(address);
    assert!(server.wait().unwrap().success());
    // The connection has ended, so that this is the last that passes both.
    UdpSocket::bind(("::", 0)).unwrap().send_to(MARKER, (mapped(address), PORT)).unwrap();
    let [(above, bridge), (below, left)] = readers.map(|reader| reader.join().unwrap());
    assert!(bridge.live_counts().super_packets > 10, "{:?}", bridge.live_counts());
    assert_eq!(left.live_counts().super_packets, 0, "{:?}", left.live_counts());
    assert_eq!([bridge.counts().dropped, left.counts().dropped], [Some(0); 2]);
    assert!(below.len() > TRANSFER_BYTES / 1500);
    let (above, below) = (digests(&above), digests(&below));
    let common = above.iter().filter(|&(digest, count)| below.get(digest) == Some(count)).count();
    assert_eq!([above.len(), below.len()], [common; 2], "digests above, below, and in common");
}

#[test]
fn a_transfer_has_the_same_digests_with_and_without_offload() {
    if std::env::var_os(PEER).is_some() {
        return serve();
    }
    let name = "live::offloads::a_transfer_has_the_same_digests_with_and_without_offload";
    in_namespace(|| {
        // A bridge sends super-packets; the interface below it has them split by the kernel.
        let peer = Peer::new();
        run("ip link add bridge type bridge");
        run("ip link set left master bridge");
        run("ip link set bridge up");
        run(&format!("ip link set right netns {}", peer.pid()));
        peer.run("ip link set right up");
        for network in ["10.9.0.", "fd00:9::"] {
            let bits = if network.contains(':') { "64 nodad" } else { "24" };
            run(&format!("ip address add {network}1/{bits} dev bridge"));
            peer.run(&format!("ip address add {network}2/{bits} dev right"));
        }
        run(&format!("tc qdisc add dev left root {BUCKET}"));
        check_transfer(name, &peer, "10.9.0.2");
        check_transfer(name, &peer, "fd00:9::2");
    });
}

#[test]
fn packets_that_were_joined_on_arrival_are_parted_again() {
    in_namespace(|| {
        require!(program "ethtool");
        run("ethtool -K left tso off gso off tx-udp-segmentation off");
        let packets = [
            Packet { payload_bytes: 8500, tcp_flags: 0x18, ..Packet::default() },
            Packet { payload_bytes: 8500, v6: true, tcp_flags: 0x19, ..Packet::default() },
        ];
        for packet in packets {
            // A last packet that is not joined may overtake the others.
            let comparable = |seen: &[Seen]| -> BTreeSet<_> {
                seen.iter().map(|seen| comparable(seen, &packet, &[])).collect()
            };
            run("ethtool -K right gro off");
            let (apart, source) = arriving(&packet, &[]);
            assert_eq!(source.live_counts().super_packets, 0);
            run("ethtool -K right gro on");
            let (joined, source) = arriving(&packet, &[]);
            assert!(source.live_counts().super_packets > 0, "{:?}", source.live_counts());
            assert!(comparable(&joined) == comparable(&apart), "{joined:x?} of {apart:x?}");
        }
    });
}
