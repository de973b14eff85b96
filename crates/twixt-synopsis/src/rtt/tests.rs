//! Packets in, round trips out.

use twixt_model::{
    ClassId, Detail, Exchange, FlowKey, Observation, RoundTripEstimate, RoundTripKind,
    RoundTripSample, Span, TcpFields, Timestamp, tcp_flag,
};

use RoundTripKind::{TcpHandshake, TcpHandshakeClient, TcpHandshakeServer};

use super::*;
use crate::question::Question;
use crate::synopsis::{OnePoint, Synopsis};

const MILLISECOND: i64 = 1_000_000;
const CLIENT: &str = "tcp 10.0.0.1:40312 > 10.0.1.9:443";
const SERVER: &str = "tcp 10.0.1.9:443 > 10.0.0.1:40312";

/// A packet at a time in milliseconds.
type Packet = (i64, Detail);

fn tcp(flow: &str, at_ms: i64, flags: u8, sequence: u32, ack: u32, payload_bytes: u32) -> Packet {
    let tcp = TcpFields {
        sequence,
        acknowledgement: ack,
        flags,
        payload_bytes,
        timestamps: Some((sequence, ack)),
    };
    let key = flow.parse().unwrap();
    (at_ms, Detail { key, tcp: Some(tcp), ..Detail::default() })
}

fn there(at_ms: i64, flags: u8, sequence: u32, ack: u32, payload_bytes: u32) -> Packet {
    tcp(CLIENT, at_ms, flags, sequence, ack, payload_bytes)
}

fn back(at_ms: i64, flags: u8, sequence: u32, ack: u32, payload_bytes: u32) -> Packet {
    let (at_ms, detail) = there(at_ms, flags, sequence, ack, payload_bytes);
    (at_ms, Detail { key: detail.key.reversed(), ..detail })
}

fn exchange(flow: &str, at_ms: i64, exchange: Exchange) -> Packet {
    (at_ms, Detail { key: flow.parse().unwrap(), exchange: Some(exchange), ..Detail::default() })
}

/// A connection: handshake of 10 + 1 ms, data answered after 20 ms, an end after a second.
fn connection() -> Vec<Packet> {
    use tcp_flag::{ACK, FIN, SYN};
    vec![
        there(0, SYN, 99, 0, 0),
        back(10, SYN | ACK, 499, 100, 0),
        there(11, ACK, 100, 500, 0),
        there(20, ACK, 100, 500, 50),
        back(40, ACK, 500, 150, 0),
        back(50, ACK, 500, 150, 10),
        there(53, ACK, 150, 510, 0),
        there(1000, FIN | ACK, 150, 510, 0),
    ]
}

fn feed<S: Synopsis>(synopsis: &mut S, packets: &[Packet]) {
    for (at_ms, detail) in packets {
        let time = Timestamp::from_nanos(at_ms * MILLISECOND);
        let observation =
            Observation { time, length: 100, class: ClassId(1), ..Observation::default() };
        synopsis.update_detailed(&observation, detail);
    }
}

fn sampled<S: RoundTrips>(config: &S::Config, packets: &[Packet]) -> Vec<RoundTripSample> {
    let mut synopsis = S::new(config);
    synopsis.take_samples();
    feed(&mut synopsis, packets);
    synopsis.take_samples()
}

/// Checks kind, length in milliseconds and flow of every round trip, with every algorithm.
#[track_caller]
fn check(packets: &[Packet], expected: &[(RoundTripKind, i64, &str)]) {
    let generous = FridgeConfig::new(Watch::default(), 1 << 16, Some(1.0), 1).unwrap();
    let whole = [Compartment { entries: 1 << 16, probability: 1.0 }];
    let fridges = FridgesConfig::new(Watch::default(), &whole).unwrap();
    for samples in [
        sampled::<ExactRoundTrips>(&ExactRoundTripsConfig::default(), packets),
        sampled::<SimpleRoundTrips>(&SimpleConfig::default(), packets),
        sampled::<Fridge>(&generous, packets),
        sampled::<Fridges>(&fridges, packets),
    ] {
        let found: Vec<(RoundTripKind, i64, String)> = samples
            .iter()
            .map(|sample| (sample.kind, sample.rtt_ns / MILLISECOND, sample.key.to_string()))
            .collect();
        let expected: Vec<(RoundTripKind, i64, String)> =
            expected.iter().map(|&(kind, ms, flow)| (kind, ms, flow.to_owned())).collect();
        assert_eq!(found, expected);
        assert!(samples.iter().all(|sample| (1.0..1.01).contains(&sample.weight)));
    }
}

#[test]
fn a_connection_has_round_trips_of_seven_kinds() {
    use RoundTripKind::{ServerResponse, TcpDuration, TcpSequence, TcpTimestamp};
    let mut packets = connection();
    // Echoes: the ACK of data returns its TSval, which is its sequence number here.
    packets[4].1.tcp.as_mut().unwrap().timestamps = Some((500, 100));
    packets[6].1.tcp.as_mut().unwrap().timestamps = Some((150, 500));
    check(
        &packets,
        &[
            (TcpHandshakeServer, 10, CLIENT),
            (TcpHandshakeClient, 1, SERVER),
            (TcpHandshake, 11, CLIENT),
            (TcpSequence, 20, CLIENT),
            (TcpTimestamp, 20, CLIENT),
            (ServerResponse, 30, CLIENT),
            (TcpSequence, 3, SERVER),
            (TcpTimestamp, 3, SERVER),
            (TcpDuration, 1000, CLIENT),
        ],
    );
}

#[test]
fn what_is_sent_again_gives_nothing() {
    use tcp_flag::{ACK, SYN};
    check(
        &[there(0, SYN, 99, 0, 0), there(5, SYN, 99, 0, 0), back(10, SYN | ACK, 499, 100, 0)],
        &[],
    );
    let data = |at_ms| {
        let (at_ms, mut detail) = there(at_ms, ACK, 100, 500, 50);
        detail.tcp.as_mut().unwrap().timestamps = None;
        (at_ms, detail)
    };
    check(&[data(0), data(300), back(310, ACK, 500, 150, 0)], &[]);
}

#[test]
fn a_handshake_of_which_a_part_is_sent_again_gives_what_is_certain() {
    use tcp_flag::{ACK, SYN};
    let (syn, answer) = (there(0, SYN, 99, 0, 0), back(10, SYN | ACK, 499, 100, 0));
    let again = |(at_ms, detail): Packet| (at_ms + 1000, detail);
    let done = there(1011, ACK, 100, 500, 0);
    // The SYN-ACK was lost behind the point: both send again.
    check(&[syn, answer, again(syn), again(answer), done], &[(TcpHandshakeServer, 10, CLIENT)]);
    // The SYN was lost behind the point, or the SYN-ACK before it: which SYN it answers is unknown.
    check(&[syn, again(syn), again(answer), done], &[(TcpHandshakeClient, 1, SERVER)]);
    // The SYN-ACK was not seen at all.
    check(&[syn, done], &[]);
    // The ACK was lost before the point: what follows may have waited for the application.
    let data = there(700, ACK, 100, 500, 20);
    check(&[syn, answer, data, there(800, ACK, 120, 500, 0)], &[(TcpHandshakeServer, 10, CLIENT)]);
    // Given up, and tried again with another number.
    let later = [there(1000, SYN, 7099, 0, 0), back(1010, SYN | ACK, 8499, 7100, 0)];
    check(
        &[syn, later[0], later[1], there(1011, ACK, 7100, 8500, 0)],
        &[
            (TcpHandshakeServer, 10, CLIENT),
            (TcpHandshakeClient, 1, SERVER),
            (TcpHandshake, 11, CLIENT),
        ],
    );
}

#[test]
fn data_in_a_syn_may_be_accepted_or_not() {
    use tcp_flag::{ACK, SYN};
    // Numbers wrap within the data.
    let first = u32::MAX - 9;
    for accepted in [20, 0] {
        let next = first.wrapping_add(1 + accepted);
        check(
            &[
                there(0, SYN, first, 0, 20),
                back(10, SYN | ACK, 499, next, 0),
                there(12, ACK, next, 500, 0),
            ],
            &[
                (TcpHandshakeServer, 10, CLIENT),
                (TcpHandshakeClient, 2, SERVER),
                (TcpHandshake, 12, CLIENT),
            ],
        );
    }
}

/// Both sides open at once: each answers the other's SYN, and acknowledges the other's SYN-ACK.
#[test]
fn a_simultaneous_open_has_two_handshakes() {
    use tcp_flag::{ACK, SYN};
    check(
        &[
            there(0, SYN, 99, 0, 0),
            back(3, SYN, 499, 0, 0),
            there(5, SYN | ACK, 99, 500, 0),
            back(10, SYN | ACK, 499, 100, 0),
            there(12, ACK, 100, 500, 0),
            back(15, ACK, 500, 100, 0),
        ],
        &[
            (TcpHandshakeServer, 2, SERVER),
            (TcpHandshakeServer, 10, CLIENT),
            (TcpHandshakeClient, 2, SERVER),
            (TcpHandshake, 12, CLIENT),
            (TcpHandshakeClient, 10, CLIENT),
            (TcpHandshake, 12, SERVER),
        ],
    );
}

#[test]
fn a_plain_table_states_no_interval() {
    let mut simple = SimpleRoundTrips::new(&SimpleConfig::default());
    feed(&mut simple, &connection());
    let mut fridge = Fridge::new(&FridgeConfig::default());
    feed(&mut fridge, &connection());
    let intervals = |estimates: Vec<RoundTripEstimate>| {
        let times = estimates.into_iter().filter_map(|estimate| estimate.times);
        times.map(|times| times.half_width_ns.is_some()).collect::<Vec<bool>>()
    };
    let (none, all) = (intervals(conclusions(&simple)), intervals(conclusions(&fridge)));
    assert!(none.len() >= 5 && none.iter().all(|known| !known), "{none:?}");
    assert!(all.len() == none.len() && all.iter().all(|&known| known), "{all:?}");
}

#[test]
fn questions_of_other_protocols_meet_their_answers() {
    use RoundTripKind::{Dns, Icmp, Ntp, QuicHandshake, QuicSpin, ServerResponse};
    let (dns, dns_back) = ("udp 10.0.0.1:5353 > 8.8.8.8:53", "udp 8.8.8.8:53 > 10.0.0.1:5353");
    let (ntp, ntp_back) = ("udp 10.0.0.1:123 > 10.0.0.2:123", "udp 10.0.0.2:123 > 10.0.0.1:123");
    let (ping, ping_back) = ("icmp 10.0.0.1 > 10.0.0.2", "icmp 10.0.0.2 > 10.0.0.1");
    let (quic, quic_back) =
        ("udp 10.0.0.1:5000 > 10.0.0.2:443", "udp 10.0.0.2:443 > 10.0.0.1:5000");
    let long = |initial, source_id, destination_id| Exchange::QuicLong {
        initial,
        source_id,
        destination_id,
    };
    let spin = |flow, at_ms, spin| exchange(flow, at_ms, Exchange::QuicShort { spin });
    // Thirty packets before the second edge show that the bit is no random one.
    let spins = (50..80).map(|at_ms| spin(quic, at_ms, at_ms >= 60)).chain([spin(quic, 85, false)]);
    let packets = [
        exchange(dns, 0, Exchange::Dns { id: 7, response: false }),
        exchange(dns, 1, Exchange::Dns { id: 8, response: false }),
        exchange(dns_back, 5, Exchange::Dns { id: 8, response: true }),
        exchange(dns_back, 6, Exchange::Dns { id: 9, response: true }),
        exchange(ntp, 10, Exchange::Ntp { stamp: 3, response: false }),
        exchange(ntp_back, 12, Exchange::Ntp { stamp: 3, response: true }),
        exchange(ping, 20, Exchange::IcmpEcho { id: 1, reply: false }),
        exchange(ping_back, 29, Exchange::IcmpEcho { id: 1, reply: true }),
        exchange(ping_back, 30, Exchange::IcmpEcho { id: 1, reply: true }),
        exchange(quic, 40, long(true, 5, 6)),
        exchange(quic, 41, long(true, 5, 6)),
        exchange(quic_back, 47, long(true, 9, 5)),
    ];
    check(
        &packets.into_iter().chain(spins).collect::<Vec<_>>(),
        &[
            (Dns, 4, dns),
            (ServerResponse, 4, dns),
            (Ntp, 2, ntp),
            (Icmp, 9, ping),
            (QuicHandshake, 7, quic),
            (QuicSpin, 25, quic),
        ],
    );
}

fn conclusions<S: OnePoint<Conclusion = RoundTripEstimate>>(
    synopsis: &S,
) -> Vec<RoundTripEstimate> {
    synopsis.conclude(&Question::about(Span::at(Timestamp::from_nanos(0))))
}

/// A request before the boundary, its answer behind it: counted once, where the answer is.
#[test]
fn requests_wait_across_the_end_of_an_epoch() {
    let kinds = KindSet::of(&[RoundTripKind::TcpHandshake]).unwrap();
    let config =
        FridgeConfig::new(Watch { kinds, ..Watch::default() }, 64, None, 1_000_000).unwrap();
    let mut fridge = Fridge::new(&config);
    let packets = connection();
    feed(&mut fridge, &packets[..1]);
    let first = fridge.cut();
    feed(&mut fridge, &packets[1..]);
    let second = fridge.cut();
    let counts = |sealed: &Fridge| {
        let estimates = conclusions(sealed);
        assert_eq!(estimates.len(), 1);
        (estimates[0].requests, estimates[0].responses, estimates[0].matched)
    };
    assert_eq!(counts(&first), (Some(1), Some(0), 0));
    assert_eq!(counts(&second), (Some(0), Some(1), 1));
    assert_eq!((first.totals().packets, second.totals().packets), (1, 7));
    let mut both = first;
    both.merge(&second);
    assert_eq!(counts(&both), (Some(1), Some(1), 1));
}

#[test]
fn groups_are_named_by_the_flow_that_asked() {
    let by = |text: &str| {
        let config =
            ExactRoundTripsConfig::new(Watch { by: text.parse().unwrap(), ..Watch::default() });
        let mut exact = ExactRoundTrips::new(&config);
        feed(&mut exact, &connection());
        let estimates = conclusions(&exact);
        let handshakes = estimates.iter().filter(|e| e.kind == RoundTripKind::TcpHandshake);
        handshakes.map(|estimate| estimate.scope.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(by("all"), ["all"]);
    assert_eq!(by("port"), ["all", "tcp port 443"]);
    assert_eq!(by("class"), ["all", "class 1"]);
    assert_eq!(by("prefix/24").len(), 2);
    assert_eq!(by("flow")[1], CLIENT);
}

#[test]
fn state_reads_back_with_its_groups() {
    let watch = Watch { by: Grouping::Flow, ..Watch::default() };
    let config = FridgeConfig::new(watch, 64, Some(1.0), 1_000_000).unwrap();
    let mut fridge = Fridge::new(&config);
    feed(&mut fridge, &connection());
    let sealed = fridge.cut();
    let bytes = crate::encode(&sealed);
    let (_, read) = crate::decode(&bytes).unwrap();
    assert_eq!(crate::encode(read.as_ref()), bytes);
    let mut input = crate::Reader::new(&bytes[7..bytes.len() - 8]);
    assert_eq!(conclusions(&Fridge::decode(&mut input).unwrap()), conclusions(&sealed));
}

/// Bytes with times and groups in them stay readable. `TWIXT_BLESS=1` writes the file if it is
/// missing.
#[test]
fn golden_bytes_of_a_connection_read_back() {
    let name = "rtt-fridge-connection-v3.bin";
    let watch = Watch { by: Grouping::Flow, ..Watch::default() };
    let config = FridgeConfig::new(watch, 64, Some(0.5), 1_000_000).unwrap();
    let mut fridge = Fridge::new(&config);
    feed(&mut fridge, &connection());
    twixt_testing::check_golden(name, &crate::encode(&fridge.cut()));
    let golden = twixt_testing::golden(name);
    assert_eq!(crate::encode(crate::decode(&golden).unwrap().1.as_ref()), golden);
    // The first version had both legs of a handshake as one kind, the second no parts of kinds.
    for older in ["rtt-fridge-connection-v1.bin", "rtt-fridge-connection-v2.bin"] {
        let read = crate::decode(&twixt_testing::golden(older)).unwrap().1;
        assert_eq!(crate::decode(&crate::encode(read.as_ref())).unwrap().1.totals().packets, 8);
    }
}

#[test]
fn a_stranger_cannot_make_us_reserve_memory() {
    let watch = Watch { flows: 1 << 20, ..Watch::default() };
    let config = FridgeConfig::new(watch, 1 << 24, Some(0.5), 1).unwrap();
    let bytes = crate::encode(&Fridge::new(&config));
    assert!(bytes.len() < 300);
    let (_, read) = crate::decode(&bytes).unwrap();
    assert!(read.state_bytes() > 1 << 28, "what it would take is said, not taken");
}

#[test]
fn settings_are_checked() {
    let read = |name: &str, text: &str| {
        let algorithm = crate::find(crate::Purpose::RoundTrip, name).unwrap();
        let started = (algorithm.start)(&text.parse().unwrap());
        started.map(|synopsis| synopsis.config().to_string()).map_err(|error| error.to_string())
    };
    for (name, text, problem) in [
        ("exact", "entries = 5", "unknown setting entries"),
        ("exact", "kind = \"tls\"", "unknown kind of round trip"),
        ("simple", "fridges = \"1:1\"", "unknown setting fridges"),
        ("simple", "entries = 1", "entries must be"),
        ("fridge", "entry_probability = 0.0", "above 0"),
        ("fridge", "longest = 0", "longest must be"),
        ("fridge", "by = \"hosts\"", "use all, flow"),
        ("fridge", "buckets = 1", "buckets must be"),
        ("fridges", "fridges = \"1024\"", "entries:probability"),
        ("fridges", "fridges = \"64:0.7,64:0.7\"", "must not sum"),
    ] {
        let error = read(name, text).unwrap_err();
        assert!(error.contains(problem), "{error}");
    }
    let fridges = read("fridges", "fridges = \"1024:0.0625, 512:0.002\"\nby = \"prefix/24\"");
    let fridges = fridges.unwrap();
    assert!(fridges.contains("1024:0.0625,512:0.002") && fridges.contains("prefix/24,48"));
}

#[test]
fn memory_is_what_was_asked_for() {
    for memory_bytes in [4 << 10, 16 << 10, 64 << 10, 1 << 20_u64] {
        let config = Fridge::sized(memory_bytes).unwrap();
        let mut fridge = Fridge::new(&config);
        feed(&mut fridge, &connection()[..1]);
        assert!(fridge.state_bytes() <= memory_bytes + 512, "{memory_bytes}");
        // Nearly half of it, but for histograms of the least size in 4 KiB.
        let table_bytes = u64::from(config.entries()) * 24;
        assert!(table_bytes * 5 + 5 * 1024 > 2 * memory_bytes, "{memory_bytes}: {table_bytes}");
    }
    assert!(Fridge::sized(1000).is_none());
    assert!(ExactRoundTrips::sized(1 << 30).is_none());
}

/// Requests at a steady rate; the weight of those answered at once tells the entry probability.
#[test]
fn the_entry_probability_follows_the_pace() {
    let config = FridgeConfig::new(Watch::default(), 1024, None, 100_000_000).unwrap();
    let mut store = FridgeStore::new(&config);
    let (mut now_ns, mut id) = (0_i64, 0_u64);
    let mut probability_at = |store: &mut FridgeStore, gap_ns: i64| {
        let mut last = 0.0;
        for _ in 0..200_000 {
            (now_ns, id) = (now_ns + gap_ns, id + 1);
            let request = Request {
                id: twixt_model::mix(id),
                kind: RoundTripKind::Dns,
                time: Timestamp::from_nanos(now_ns),
                class: ClassId(0),
                canonical: true,
                variant: Variant::default(),
            };
            if store.ask(&request) == Asked::Kept {
                last = 1.0 / store.answer(request.id, request.time).unwrap().weight;
            }
        }
        last
    };
    // A million a second: half of 100 ms are 50 000 requests, 48.8 times the table.
    assert_eq!(probability_at(&mut store, 1_000), 1.0 / 64.0);
    assert_eq!(probability_at(&mut store, 1_000_000), 1.0);
    assert_eq!(probability_at(&mut store, 10_000), 1.0 / 4.0);
}

/// Key of the flow that asked, whichever side ends the connection.
#[test]
fn a_duration_belongs_to_who_opened_the_connection() {
    use tcp_flag::{ACK, RST, SYN};
    let opened: FlowKey = CLIENT.parse().unwrap();
    for end in [there(9, RST, 1, 0, 0), back(9, RST | ACK, 1, 0, 0)] {
        let kinds = KindSet::of(&[RoundTripKind::TcpDuration]).unwrap();
        let config = ExactRoundTripsConfig::new(Watch { kinds, ..Watch::default() });
        let samples = sampled::<ExactRoundTrips>(&config, &[there(0, SYN, 9, 0, 0), end]);
        assert_eq!(samples.len(), 1);
        assert_eq!((samples[0].key, samples[0].rtt_ns), (opened, 9 * MILLISECOND));
    }
}
