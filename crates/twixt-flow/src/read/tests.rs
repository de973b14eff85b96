use super::*;
use crate::template::{FIELDS_MAX, TEMPLATES_MAX};

mod hostile;

const SECONDS: u32 = 1_763_190_000;

pub(super) fn exporter() -> SocketAddr {
    "192.0.2.1:2055".parse().unwrap()
}

/// A set of IPFIX or NetFlow v9.
pub(super) fn set(number: u16, body: &[u8]) -> Vec<u8> {
    let length = body.len() as u16 + 4;
    [&number.to_be_bytes(), &length.to_be_bytes(), body].concat()
}

/// A template without its set.
pub(super) fn template(number: u16, fields: &[(u16, u16)]) -> Vec<u8> {
    let words = fields.iter().flat_map(|&(element, length)| [element, length]);
    let all = [number, fields.len() as u16].into_iter().chain(words);
    all.flat_map(u16::to_be_bytes).collect()
}

pub(super) fn ipfix(sequence: u32, seconds: u32, sets: &[Vec<u8>]) -> Vec<u8> {
    let body = sets.concat();
    let length = body.len() as u16 + 16;
    [
        &[0, 10][..],
        &length.to_be_bytes(),
        &seconds.to_be_bytes(),
        &sequence.to_be_bytes(),
        &[0, 0, 0, 1],
        &body,
    ]
    .concat()
}

pub(super) fn netflow9(sequence: u32, uptime_ms: u32, seconds: u32, sets: &[Vec<u8>]) -> Vec<u8> {
    let header = [uptime_ms, seconds, sequence, 1].map(u32::to_be_bytes).concat();
    [&[0, 9, 0, 1][..], &header, &sets.concat()].concat()
}

/// NetFlow v5 with flows from and to the given uptimes.
pub(super) fn netflow5(sequence: u32, uptime_ms: u32, flows: &[(u32, u32)]) -> Vec<u8> {
    let header = [uptime_ms, SECONDS, 500_000_000, sequence, 0].map(u32::to_be_bytes).concat();
    let flow = |&(first, last): &(u32, u32)| {
        let numbers = [0x0a00_0001, 0x0a00_0109, 0, 0, 7, 700, first, last, 0x0035_1388];
        [&numbers.map(u32::to_be_bytes).concat()[..], &[0, 0x18, 17, 0], &[0; 8]].concat()
    };
    let flows: Vec<Vec<u8>> = flows.iter().map(flow).collect();
    [&[0, 5, 0, flows.len() as u8][..], &header, &flows.concat()].concat()
}

/// Addresses, protocol, packets, bytes, and start and end by the given elements.
fn fields(start: u16, end: u16, bytes: u16) -> Vec<(u16, u16)> {
    vec![(8, 4), (12, 4), (4, 1), (2, 4), (1, 4), (start, bytes), (end, bytes)]
}

fn flow(start: &[u8], end: &[u8]) -> Vec<u8> {
    [&[10, 0, 0, 1, 10, 0, 1, 9, 47, 0, 0, 0, 7, 0, 0, 2, 0xbc][..], start, end].concat()
}

fn milliseconds_template() -> Vec<u8> {
    set(2, &template(256, &fields(152, 153, 8)))
}

fn milliseconds_flow(start_ms: u64) -> Vec<u8> {
    flow(&start_ms.to_be_bytes(), &(start_ms + 5).to_be_bytes())
}

/// Reads messages, and says first and last times, resolutions and counts.
struct Outcome {
    times: Vec<(i64, i64)>,
    resolutions_ns: Vec<u64>,
    counts: ReadCounts,
}

fn read(messages: &[Vec<u8>]) -> Outcome {
    let mut reader = FlowReader::default();
    let (mut times, mut resolutions_ns) = (Vec::new(), Vec::new());
    for message in messages {
        let _ = reader.message(exporter(), message, &mut |ReadRecord { record, .. }| {
            times.push((record.first.as_nanos(), record.last.as_nanos()));
            resolutions_ns.push(record.resolution_ns);
        });
    }
    Outcome { times, resolutions_ns, counts: *reader.counts() }
}

/// One IPFIX record with times in these elements.
#[track_caller]
fn check_times(start: (u16, &[u8]), end: (u16, &[u8]), expected: (i64, i64), resolution_ns: u64) {
    let layout = fields(start.0, end.0, start.1.len() as u16);
    let sets = [set(2, &template(256, &layout)), set(256, &flow(start.1, end.1))];
    let outcome = read(&[ipfix(0, SECONDS, &sets)]);
    assert_eq!((outcome.times, outcome.resolutions_ns), (vec![expected], vec![resolution_ns]));
}

#[test]
fn times_in_every_unit() {
    let second = 1_000_000_000;
    let base = i64::from(SECONDS) * second;
    let seconds = SECONDS.to_be_bytes();
    check_times((150, &seconds), (151, &seconds), (base, base), 1_000_000_000);
    let millis = (u64::from(SECONDS) * 1000 + 7).to_be_bytes();
    check_times((152, &millis), (153, &millis), (base + 7_000_000, base + 7_000_000), 1_000_000);
    // Seconds since 1900, and half a second.
    let ntp = ((u64::from(SECONDS) + 2_208_988_800) << 32 | 1 << 31).to_be_bytes();
    let half = (base + second / 2, base + second / 2);
    check_times((154, &ntp), (155, &ntp), half, 1_000);
    check_times((156, &ntp), (157, &ntp), half, 1);
    let ago = 250_u32.to_be_bytes();
    check_times((158, &ago), (159, &ago), (base - 250_000, base - 250_000), 1_000);
}

#[test]
fn uptimes_of_ipfix_need_the_start_of_the_system() {
    // Template 256: two fields, one of them scope: metering process, and when it started.
    let options = set(3, &[256_u16, 2, 1, 143, 4, 160, 8].map(u16::to_be_bytes).concat());
    let started_ms = (u64::from(SECONDS) - 100) * 1000;
    let described = set(256, &[&[0, 0, 0, 1][..], &started_ms.to_be_bytes()].concat());
    let layout = set(2, &template(257, &fields(22, 21, 4)));
    // The flow began before the counter did: a wrapped number.
    let record = set(257, &flow(&(-5_000_i32).to_be_bytes(), &99_000_u32.to_be_bytes()));
    let early = ipfix(0, SECONDS, &[layout, record.clone()]);
    let announced = ipfix(1, SECONDS, &[options, described, record]);
    let outcome = read(&[early, announced]);
    assert_eq!(outcome.counts.unusable(Unusable::NoSystemStart), 1);
    let base = (i64::from(SECONDS) - 100) * 1_000_000_000;
    assert_eq!(outcome.times, [(base - 5_000_000_000, base + 99_000_000_000)]);
    assert_eq!(outcome.resolutions_ns, [2_000_000]);
}

#[test]
fn uptimes_of_netflow_v5_wrap() {
    let outcome = read(&[netflow5(0, 2_000, &[(1_000, 1_500), (u32::MAX - 999, 1_000)])]);
    let now = i64::from(SECONDS) * 1_000_000_000 + 500_000_000;
    assert_eq!(
        outcome.times,
        [(now - 1_000_000_000, now - 500_000_000), (now - 3_000_000_000, now - 1_000_000_000)]
    );
    assert_eq!(outcome.resolutions_ns, [1_000_000; 2]);
}

#[test]
fn netflow_v9_says_how_well_it_knows_the_time() {
    let layout = set(0, &template(256, &fields(22, 21, 4)));
    let data = |uptime: u32| set(256, &flow(&uptime.to_be_bytes(), &uptime.to_be_bytes()));
    // The exporter started at 0.400 s after a whole second.
    let messages = [
        netflow9(0, 9_700, SECONDS + 10, &[layout, data(9_000)]),
        netflow9(1, 11_500, SECONDS + 11, &[data(11_000)]),
        netflow9(2, 12_599, SECONDS + 12, &[data(12_000)]),
    ];
    let outcome = read(&messages);
    assert_eq!(outcome.resolutions_ns[0], 1_000_000_000);
    assert!(outcome.resolutions_ns[2] <= 200_000_000, "{:?}", outcome.resolutions_ns);
    let truth = i64::from(SECONDS) * 1_000_000_000 + 12_400_000_000;
    let error_ns = (outcome.times[2].0 - truth).unsigned_abs();
    assert!(error_ns <= outcome.resolutions_ns[2], "{error_ns}");
    assert_eq!(outcome.counts.troubles().count(), 0);
}

#[test]
fn the_finest_time_of_a_record_is_taken() {
    let layout = [fields(150, 151, 4), vec![(152, 8), (153, 8)]].concat();
    let seconds = SECONDS.to_be_bytes();
    let millis = (u64::from(SECONDS) * 1000 + 7).to_be_bytes();
    let record = [flow(&seconds, &seconds), millis.to_vec(), millis.to_vec()].concat();
    let sets = [set(2, &template(256, &layout)), set(256, &record)];
    assert_eq!(read(&[ipfix(0, SECONDS, &sets)]).resolutions_ns, [1_000_000]);
}

/// A record of a template without one field, or with something impossible, and why.
#[track_caller]
fn check_unusable(layout: &[(u16, u16)], record: &[u8], reason: Unusable) {
    let sets = [set(2, &template(256, layout)), set(256, record)];
    let outcome = read(&[ipfix(0, SECONDS, &sets)]);
    assert_eq!(outcome.counts.all_unusable().collect::<Vec<_>>(), [(reason, 1)]);
    assert_eq!((outcome.times.len(), outcome.counts.malformed), (0, 0));
}

#[test]
fn records_without_what_is_needed_are_counted_by_reason() {
    let millis = u64::from(SECONDS) * 1000;
    let record = milliseconds_flow(millis);
    let layout = fields(152, 153, 8);
    let without = |element: u16| -> Vec<(u16, u16)> {
        // 210 is padding.
        let pad =
            |&(number, length): &(u16, u16)| (if number == element { 210 } else { number }, length);
        layout.iter().map(pad).collect()
    };
    check_unusable(&without(8), &record, Unusable::NoAddresses);
    check_unusable(&without(12), &record, Unusable::NoAddresses);
    check_unusable(&without(4), &record, Unusable::NoProtocol);
    check_unusable(&without(2), &record, Unusable::NoPackets);
    check_unusable(&without(1), &record, Unusable::NoBytes);
    check_unusable(&without(152), &record, Unusable::NoTimes);
    let swapped = flow(&millis.to_be_bytes(), &(millis - 1).to_be_bytes());
    check_unusable(&layout, &swapped, Unusable::EndsBeforeStart);
    let mut none = record.clone();
    none[9..13].fill(0);
    check_unusable(&layout, &none, Unusable::NoPackets);
    let wide = [layout.clone(), vec![(7, 3)]].concat();
    let bad = [record.clone(), vec![1, 0, 0]].concat();
    check_unusable(&wide, &bad, Unusable::BadField);
    check_unusable(
        &[layout, vec![(530, 4)]].concat(),
        &[record, vec![0; 4]].concat(),
        Unusable::DelayResult,
    );
}

#[test]
fn variable_lengths_and_padding_are_passed_over() {
    let layout = [vec![(82, 65_535)], fields(152, 153, 8)].concat();
    let millis = u64::from(SECONDS) * 1000;
    let short = [vec![3], b"eth".to_vec(), milliseconds_flow(millis)].concat();
    let long = [vec![255, 1, 0], vec![7; 256], milliseconds_flow(millis)].concat();
    let body = [short, long, vec![0; 3]].concat();
    let outcome = read(&[ipfix(0, SECONDS, &[set(2, &template(256, &layout)), set(256, &body)])]);
    assert_eq!((outcome.times.len(), outcome.counts.malformed), (2, 0));
}

#[test]
fn templates_change_and_are_withdrawn_in_the_middle() {
    let millis = u64::from(SECONDS) * 1000;
    let seconds = SECONDS.to_be_bytes();
    let data = set(256, &milliseconds_flow(millis));
    let messages = [
        ipfix(0, SECONDS, &[milliseconds_template(), data.clone()]),
        // The same number now means records with seconds.
        ipfix(1, SECONDS, &[set(2, &template(256, &fields(150, 151, 4)))]),
        ipfix(1, SECONDS, &[set(256, &flow(&seconds, &seconds))]),
        // One withdrawn, then known again, then all withdrawn.
        ipfix(2, SECONDS, &[set(2, &template(256, &[])), data.clone()]),
        ipfix(3, SECONDS, &[milliseconds_template(), data.clone()]),
        ipfix(4, SECONDS, &[set(2, &template(2, &[])), data]),
    ];
    let Outcome { resolutions_ns, counts, .. } = read(&messages);
    assert_eq!(resolutions_ns, [1_000_000, 1_000_000_000, 1_000_000]);
    assert_eq!((counts.templates, counts.templates_changed), (2, 1));
    assert_eq!((counts.templates_withdrawn, counts.sets_without_template), (2, 2));
    assert_eq!((counts.missing, counts.malformed), (0, 0));
}

#[test]
fn templates_belong_to_one_exporter() {
    let mut reader = FlowReader::default();
    let mut records = 0;
    let data = set(256, &milliseconds_flow(u64::from(SECONDS) * 1000));
    let mut send = |reader: &mut FlowReader, port: u16, sets: &[Vec<u8>]| {
        let exporter = SocketAddr::new(exporter().ip(), port);
        reader.message(exporter, &ipfix(0, SECONDS, sets), &mut |_| records += 1).unwrap();
    };
    send(&mut reader, 1, &[milliseconds_template(), data.clone()]);
    send(&mut reader, 2, &[data]);
    assert_eq!((records, reader.counts().sets_without_template), (1, 1));
}

#[test]
fn gaps_and_late_messages_are_counted() {
    let data = set(256, &milliseconds_flow(u64::from(SECONDS) * 1000));
    let message = |sequence| ipfix(sequence, SECONDS, &[milliseconds_template(), data.clone()]);
    // One each: 2, 3 and 4 are missing, of which 3 comes late.
    let sequences = [0, 1, 5, 3, 6];
    let counts = read(&sequences.map(message)).counts;
    assert_eq!((counts.missing, counts.out_of_order, counts.records), (3, 1, 5));
    // An exporter that restarted is believed after three messages.
    let counts = read(&[900, 901, 0, 1, 2, 3, 4].map(message)).counts;
    assert_eq!((counts.missing, counts.out_of_order), (0, 3));
    // Numbers wrap.
    let counts = read(&[u32::MAX, 0, 1].map(message)).counts;
    assert_eq!((counts.missing, counts.out_of_order), (0, 0));
    // NetFlow v5 counts flows, v9 messages.
    let flows = [(1, 2), (3, 4)];
    let counts = read(&[0, 2, 6].map(|sequence| netflow5(sequence, 10, &flows))).counts;
    assert_eq!(counts.missing, 2);
    let counts = read(&[7, 8, 11].map(|sequence| netflow9(sequence, 10, SECONDS, &[]))).counts;
    assert_eq!(counts.missing, 2);
}

#[test]
fn clock_steps_and_restarts_are_counted() {
    let step = |seconds| ipfix(0, seconds, &[]);
    assert_eq!(read(&[SECONDS, SECONDS - 3, SECONDS + 50].map(step)).counts.clock_steps, 0);
    assert_eq!(read(&[SECONDS, SECONDS - 60, SECONDS - 59].map(step)).counts.clock_steps, 1);
    let messages = [
        netflow9(0, 10_000, SECONDS, &[]),
        netflow9(1, 11_000, SECONDS + 1, &[]),
        netflow9(2, 12_000, SECONDS + 300, &[]),
        netflow9(3, 13_000, SECONDS + 301, &[]),
        netflow9(4, 500, SECONDS + 310, &[]),
    ];
    let counts = read(&messages).counts;
    assert_eq!((counts.clock_steps, counts.restarts), (1, 1));
}

#[test]
fn options_of_netflow_v9_tell_the_sampling() {
    // Template 300: one scope (system, 4 bytes), sampling interval.
    let layout = [300_u16, 4, 4, 1, 4, 34, 4].map(u16::to_be_bytes).concat();
    let described = [0_u32, 100].map(u32::to_be_bytes).concat();
    let mut reader = FlowReader::default();
    let message = netflow9(0, 1, SECONDS, &[set(1, &layout), set(300, &described)]);
    reader.message(exporter(), &message, &mut |_| {}).unwrap();
    let [(_, domain, notice)] = reader.selectors()[..] else { panic!("there is one") };
    assert_eq!((domain, notice.interval, notice.rate()), (1, Some(100), Some(0.01)));
}
