//! What tshark finds in captures, packet by packet, and what must be taken away from it for a fair
//! comparison: its `ack_rtt` runs from a segment to the first ACK of its end, SYNs and FINs
//! included, whether or not the segment was sent again; a time of zero is left out. Its
//! `initial_rtt` runs from the SYN to the ACK of the SYN-ACK.

use std::collections::{HashMap, HashSet};
use std::io::Read;
use std::path::Path;

use serde_json::Value;
use twixt_capture::{BatchEnd, CaptureFile};
use twixt_model::tcp_flag;
use twixt_wire::{LinkType, ParseOptions, parse};

/// Names of truth files, and the captures they are about.
pub(crate) const CAPTURES: &[(&str, &str)] = &[
    ("composite-a", "composite-a/composite-a.pcap.gz"),
    ("dns_udp_tcp_random", "dns-tcp-many/dns_udp_tcp_random.pcap"),
    ("dsack", "reorder-retx/dsack.dmp.gz"),
    ("mercury-emix", "mercury-mix/emix.pcap"),
    ("mlab-121C1A0", "mlab-ndt/ndt-4c6fb_1625899199_000000000121C1A0.pcap.gz"),
    ("mlab-363A84", "mlab-ndt/ndt-4dh2l_1591894023_0000000000363A84.pcap.gz"),
    ("mlab-5B90B", "mlab-ndt/ndt-m6znc_1632401351_000000000005B90B.pcap.gz"),
    ("mlab-5B9EA", "mlab-ndt/ndt-m6znc_1632401351_000000000005B9EA.pcap.gz"),
    ("mlab-C2DA9", "mlab-ndt/ndt-nnwk2_1611335823_00000000000C2DA9.pcap.gz"),
    ("mlab-C2DFE", "mlab-ndt/ndt-nnwk2_1611335823_00000000000C2DFE.pcap.gz"),
    ("mlab-C2E15", "mlab-ndt/ndt-nnwk2_1611335823_00000000000C2E15.pcap.gz"),
    ("mptcp-client_1", "mptcp-twoside/client_1_tcp_only.pcapng"),
    ("mptcp-server_1", "mptcp-twoside/server_1_tcp_only.pcapng"),
    ("pcapplusplus-example", "pcapplusplus-mix/example.pcap"),
    ("redart-capture_4", "redart-wifi/capture_4.pcap"),
    ("spindump-tcp-medium", "spindump/trace_tcp_medium_snap80.pcap"),
    ("zeek-206b", "reorder-retx/zeek-206_example_b.pcap"),
    ("zeek-echo", "zeek-echo/echo-connections.pcap.gz"),
    ("zeek-rdp", "reorder-retx/zeek-rdp-proprietary-encryption.pcap"),
];

/// Round trips by when they ended: whose, and how long.
#[derive(Default)]
pub(crate) struct RoundTrips {
    found: HashMap<i64, Vec<(String, i64)>>,
    count: usize,
}

impl RoundTrips {
    fn add(&mut self, time_ns: i64, flow: String, rtt_ns: i64) {
        self.found.entry(time_ns).or_default().push((flow, rtt_ns));
        self.count += 1;
    }

    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Whether tshark reports this round trip too; it reports none of length zero.
    pub(crate) fn has(&self, sample: &Value) -> bool {
        let integer = |key: &str| sample[key].as_i64().expect("a number");
        let (time_ns, rtt_ns) = (integer("time_ns"), integer("rtt_ns"));
        let flow = sample["scope"].as_str().expect("a flow");
        let same = |(of, length): &(String, i64)| of == flow && (length - rtt_ns).abs() <= 1;
        rtt_ns == 0 || self.found.get(&time_ns).is_some_and(|found| found.iter().any(same))
    }
}

/// A truth file.
pub(crate) struct Truth {
    pub(crate) data: RoundTrips,
    pub(crate) handshakes: RoundTrips,
    pub(crate) streams: usize,
    /// Packets that were sent again or came out of order, as tshark judges.
    pub(crate) sent_again: usize,
    /// Share of our round trips that tshark may not report. Captures laid over each other have
    /// flows of one name at one time, which tshark takes for one.
    pub(crate) tolerance: f64,
    /// `initial_rtt` by when the handshake was complete, and the flow of its SYN-ACK.
    initial: HashMap<(i64, String), i64>,
}

impl Truth {
    pub(crate) fn read(path: &Path) -> Self {
        let file = std::fs::File::open(path).expect("a truth file");
        let mut text = String::new();
        flate2::read::GzDecoder::new(file).read_to_string(&mut text).expect("it is text");
        let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split('\t').collect()).collect();
        let is_syn = |row: &[&str]| matches!(first(row[18]), "1" | "True");
        let syns: HashSet<&str> = rows.iter().filter(|row| is_syn(row)).map(|row| row[0]).collect();
        let (mut data, mut handshakes) = (RoundTrips::default(), RoundTrips::default());
        let mut initial = HashMap::new();
        for row in rows.iter().filter(|row| !row[11].is_empty()) {
            let (time_ns, rtt_ns) = (nanos(row[1]), nanos(first(row[11])));
            match syns.contains(first(row[10])) {
                true => handshakes.add(time_ns, asked(row), rtt_ns),
                false => data.add(time_ns, asked(row), rtt_ns),
            }
            if !row[9].is_empty() && syns.contains(first(row[10])) {
                initial.insert((time_ns, asked(row)), nanos(first(row[9])));
            }
        }
        let again = |row: &&Vec<&str>| row[12..16].iter().any(|mark| !mark.is_empty());
        let composite = path.to_string_lossy().contains("composite");
        Self {
            data,
            handshakes,
            streams: rows.iter().map(|row| row[2]).collect::<HashSet<_>>().len(),
            sent_again: rows.iter().filter(again).count(),
            tolerance: if composite { 0.005 } else { 0.0 },
            initial,
        }
    }

    /// Checks that handshakes take as long as tshark's `initial_rtt`.
    pub(crate) fn check_handshakes(&self, ours: &[Value]) {
        let (mut compared, mut different) = (0, 0);
        for sample in ours {
            let integer = |key: &str| sample[key].as_i64().expect("a number");
            let flow = sample["scope"].as_str().expect("a flow");
            let (source, destination) =
                flow.trim_start_matches("tcp ").split_once(" > ").expect("two ends");
            let answer = format!("tcp {destination} > {source}");
            if let Some(initial) = self.initial.get(&(integer("time_ns"), answer)) {
                compared += 1;
                different += usize::from((integer("rtt_ns") - initial).abs() > 2);
            }
        }
        println!("{} handshakes, {compared} compared, {different} different", ours.len());
        assert!(different as f64 <= self.tolerance * compared as f64);
        assert!(compared > 0 || ours.is_empty(), "tshark has none of them");
    }
}

/// The flow of the segment that a row acknowledges.
fn asked(row: &[&str]) -> String {
    let end = |v4: &str, v6: &str, port: &str| match last(v4) {
        "" => format!("[{}]:{}", last(v6), last(port)),
        address => format!("{address}:{}", last(port)),
    };
    format!("tcp {} > {}", end(row[6], row[7], row[8]), end(row[3], row[4], row[5]))
}

fn first(field: &str) -> &str {
    field.split(',').next().unwrap_or("")
}

/// Of several headers in a tunnel, the inner one.
fn last(field: &str) -> &str {
    field.rsplit(',').next().unwrap_or("")
}

/// Seconds with nine decimals.
pub(crate) fn nanos(text: &str) -> i64 {
    let (seconds, fraction) = text.split_once('.').expect("a fraction");
    let padded = format!("{fraction:0<9}");
    let seconds: i64 = seconds.parse().expect("a number");
    seconds * 1_000_000_000 + padded[..9].parse::<i64>().expect("a number")
}

/// Segments of a capture: when each was sent, and how often.
pub(crate) struct Segments {
    by_time: HashMap<i64, (String, u32)>,
    times: HashMap<(String, u32), u32>,
}

impl Segments {
    /// Flow and end of the segment that passed at that moment.
    pub(crate) fn at(&self, time_ns: i64) -> Option<&(String, u32)> {
        self.by_time.get(&time_ns)
    }

    pub(crate) fn times_sent(&self, segment: &(String, u32)) -> u32 {
        self.times[segment]
    }
}

/// All segments with data.
pub(crate) fn segments(capture: &Path) -> Segments {
    let mut segments = Segments { by_time: HashMap::new(), times: HashMap::new() };
    let mut file = CaptureFile::open(capture).expect("a capture");
    let mut each = |frame: twixt_capture::Frame<'_>| {
        let options = ParseOptions { outer: false, wire_length: Some(frame.wire_length) };
        let Ok(packet) = parse(LinkType(frame.link_type), frame.bytes, options) else { return };
        let Some(tcp) = packet.tcp(frame.bytes) else { return };
        if tcp.payload_bytes > 0 && tcp.flags & tcp_flag::SYN == 0 {
            let end = tcp.sequence.wrapping_add(tcp.payload_bytes);
            let segment = (packet.flow_key().to_string(), end);
            *segments.times.entry(segment.clone()).or_default() += 1;
            segments.by_time.insert(frame.time.as_nanos(), segment);
        }
    };
    while file.read_batch(&mut each) != BatchEnd::End {}
    segments
}
