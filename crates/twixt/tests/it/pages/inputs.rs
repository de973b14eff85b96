//! Files that the pages work on: real captures and topologies that are not part of the repository,
//! under the names that the pages give them.

use std::fs;
use std::path::Path;

/// A file of a page, and where it comes from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Input {
    pub(super) name: &'static str,
    /// Below the directory of shared data.
    pub(super) source: &'static str,
    change: fn(&[u8]) -> Vec<u8>,
}

pub(super) const BEFORE: Input = plain("before.pcap", "traces/tbf-queue/upstream.pcap");
pub(super) const AFTER: Input = plain("after.pcap", "traces/tbf-queue/downstream.pcap");
pub(super) const EDGE: Input = plain("edge.pcap", "traces/tbf-queue/upstream.pcap");
pub(super) const LEFT: Input = plain("left.pcap", "traces/qns-twoside/tcp-13ms-left.pcap");
pub(super) const RIGHT: Input = plain("right.pcap", "traces/qns-twoside/tcp-13ms-right.pcap");
pub(super) const DNS: Input = plain("dns.pcap", "traces/dns-tcp-many/dns_udp_tcp_random.pcap");
pub(super) const GEANT: Input = plain("Geant2012.gml", "topologies/zoo/Geant2012.gml");
pub(super) const SPRINT: Input = plain("weights.intra", "topologies/rocketfuel/1239/weights.intra");
/// `after.pcap`, cut within the TCP options.
pub(super) const SHORT: Input = Input { name: "short.pcap", change: cut_frames, ..AFTER };
/// `after.pcap`, with source addresses translated.
pub(super) const NATTED: Input = Input { name: "natted.pcap", change: translate, ..AFTER };

/// A call over UDP, at two points.
pub(super) const OFFICE: Input = Input { name: "office.pcap", change: office, ..BEFORE };
pub(super) const PROVIDER: Input = Input { name: "provider.pcap", change: provider, ..BEFORE };

fn office(_: &[u8]) -> Vec<u8> {
    crate::rtp::lossy_call()[0].bytes()
}

fn provider(_: &[u8]) -> Vec<u8> {
    crate::rtp::lossy_call()[1].bytes()
}

/// A released incident bundle, which is part of the repository.
pub(super) const INCIDENT: Input = plain("incident.twxb", "golden/bundle-v1.twxb");

const fn plain(name: &'static str, source: &'static str) -> Input {
    Input { name, source, change: <[u8]>::to_vec }
}

impl Input {
    /// The bytes of a file that is part of the repository.
    pub(super) fn own(&self) -> Option<Vec<u8>> {
        self.source.strip_prefix("golden/").map(twixt_testing::golden)
    }

    /// Writes the file into the directory of a page.
    pub(super) fn write(&self, source: &Path, folder: &Path) {
        let bytes = fs::read(source).expect("shared data can be read");
        fs::write(folder.join(self.name), (self.change)(&bytes)).expect("it can be written");
    }
}

fn cut_frames(capture: &[u8]) -> Vec<u8> {
    rewrite(capture, |frame| frame.truncate(60))
}

fn translate(capture: &[u8]) -> Vec<u8> {
    rewrite(capture, |frame| {
        // Source and destination in the IPv4 header behind that of Ethernet.
        for address in [26..30, 30..34] {
            if frame[address.clone()] == [10, 201, 1, 1] {
                frame[address].copy_from_slice(&[192, 0, 2, 1]);
            }
        }
    })
}

/// A little-endian pcap file with its frames changed.
fn rewrite(capture: &[u8], change: impl Fn(&mut Vec<u8>)) -> Vec<u8> {
    let (header, mut rest) = capture.split_at(24);
    let mut changed = header.to_vec();
    while let Some((record, frames)) = rest.split_first_chunk::<16>() {
        let length = u32::from_le_bytes(record[8..12].try_into().expect("four bytes")) as usize;
        let mut frame = frames[..length].to_vec();
        change(&mut frame);
        changed.extend_from_slice(&record[..8]);
        changed.extend_from_slice(&(frame.len() as u32).to_le_bytes());
        changed.extend_from_slice(&record[12..]);
        changed.extend_from_slice(&frame);
        rest = &frames[length..];
    }
    changed
}
