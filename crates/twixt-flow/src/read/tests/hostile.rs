//! Hostile bytes: floods end at their bounds, nonsense is refused, nothing panics.

use proptest::prelude::*;

use super::*;

fn read_all(messages: &[Vec<u8>]) -> FlowReader {
    let mut reader = FlowReader::default();
    for message in messages {
        let _ = reader.message(exporter(), message, &mut |_| {});
    }
    reader
}

#[track_caller]
fn check_malformed(message: &[u8], expected: Malformed) {
    let mut reader = FlowReader::default();
    assert_eq!(reader.message(exporter(), message, &mut |_| {}), Err(expected));
    assert_eq!(reader.counts().malformed, 1);
}

#[test]
fn malformed_messages_are_named() {
    check_malformed(&[], Malformed::Truncated { what: "the header" });
    check_malformed(b"GET / HTTP/1.1", Malformed::Version { version: 0x4745 });
    check_malformed(&[0, 5, 0, 1], Malformed::Truncated { what: "the header" });
    check_malformed(&[0, 9, 0, 1], Malformed::Truncated { what: "the header" });
    check_malformed(&netflow5(0, 1, &[(0, 1)])[..71], Malformed::Truncated { what: "a record" });
    let whole = ipfix(0, 1, &[milliseconds_template()]);
    check_malformed(&whole[..20], Malformed::Truncated { what: "the message" });
    let mut short = whole.clone();
    short[2..4].copy_from_slice(&[0, 15]);
    check_malformed(&short, Malformed::Length { what: "the message" });
    check_malformed(&ipfix(0, 1, &[vec![1, 0, 0, 3]]), Malformed::Length { what: "a set" });
    check_malformed(&ipfix(0, 1, &[vec![1, 0, 0, 9]]), Malformed::Truncated { what: "a set" });
    check_malformed(&ipfix(0, 1, &[vec![1, 0]]), Malformed::Truncated { what: "a set" });
}

#[test]
fn impossible_templates_are_refused_and_forgotten() {
    let bad = |body: &[u8]| ipfix(0, 1, &[set(2, body)]);
    let number = 256;
    check_malformed(&bad(&template(256, &[(8, 0)])), Malformed::Template { number });
    check_malformed(&bad(&template(255, &[(8, 4)])), Malformed::Template { number: 255 });
    check_malformed(&bad(&[1, 0, 0xff, 0xff]), Malformed::Template { number });
    let many = vec![(8, 4); FIELDS_MAX + 1];
    check_malformed(&bad(&template(256, &many)), Malformed::Template { number });
    // Options without a scope, and with more scopes than fields.
    for scopes in [0, 2] {
        let options = set(3, &[1, 0, 0, 1, 0, scopes, 0, 160, 0, 8]);
        check_malformed(&ipfix(0, 1, &[options]), Malformed::Template { number });
    }
    // What comes by an old template after a broken new one would be nonsense.
    let data = set(256, &milliseconds_flow(1));
    let messages = [
        ipfix(0, 1, &[milliseconds_template(), data.clone()]),
        bad(&template(256, &[(8, 0)])),
        ipfix(1, 1, &[data]),
    ];
    let counts = *read_all(&messages).counts();
    assert_eq!((counts.records, counts.sets_without_template), (1, 1));
}

#[test]
fn templates_of_netflow_v9_are_judged_alike() {
    let bad = |number: u16, body: &[u8]| netflow9(0, 1, SECONDS, &[set(number, body)]);
    check_malformed(&bad(0, &template(256, &[(8, 0)])), Malformed::Template { number: 256 });
    check_malformed(&bad(0, &template(9, &[(8, 4)])), Malformed::Template { number: 9 });
    check_malformed(&bad(0, &[1, 0, 0xff, 0xff]), Malformed::Template { number: 256 });
    // Options: reserved number, more bytes of fields than there are, no fields at all.
    let options = |words: [u16; 5]| words.map(u16::to_be_bytes).concat();
    check_malformed(&bad(1, &options([9, 4, 0, 1, 4])), Malformed::Template { number: 9 });
    check_malformed(&bad(1, &options([300, 4, 65_532, 1, 4])), Malformed::Template { number: 300 });
    check_malformed(&bad(1, &options([300, 0, 0, 1, 4])), Malformed::Template { number: 300 });
    // One that changes counts from then on.
    let uptimes = set(0, &template(256, &fields(22, 21, 4)));
    let seconds = set(0, &template(256, &fields(150, 151, 4)));
    let data = |value: u32| set(256, &flow(&value.to_be_bytes(), &value.to_be_bytes()));
    let messages = [
        netflow9(0, 5_000, SECONDS, &[uptimes, data(4_000)]),
        netflow9(1, 6_000, SECONDS + 1, &[seconds, data(SECONDS)]),
    ];
    let outcome = read(&messages);
    assert_eq!(outcome.times[1].0, i64::from(SECONDS) * 1_000_000_000);
    assert_eq!((outcome.counts.templates, outcome.counts.templates_changed), (1, 1));
    // A flood of options ends at its bound: 48 names a sampler, 34 tells its interval.
    let layout = [300_u16, 4, 8, 1, 4, 48, 4, 34, 4].map(u16::to_be_bytes).concat();
    let say = |number: u32| [0, number, 9].map(u32::to_be_bytes).concat();
    let said = (0..5_000).map(say).collect::<Vec<_>>().concat();
    let reader = read_all(&[netflow9(0, 1, SECONDS, &[set(1, &layout), set(300, &said)])]);
    assert_eq!(reader.counts().options_records, 5_000);
    assert!(reader.selectors().len() <= SELECTORS_MAX);
}

#[test]
fn floods_end_at_their_bounds() {
    let templates = |numbers: std::ops::Range<u16>| {
        let each = numbers.map(|number| template(number, &[(8, 4), (12, 4)]));
        ipfix(0, 1, &[set(2, &each.collect::<Vec<_>>().concat())])
    };
    let counts = *read_all(&[templates(256..3_000), templates(3_000..5_000)]).counts();
    assert_eq!(counts.templates, TEMPLATES_MAX as u64);
    assert_eq!(counts.templates_refused, 4_744 - TEMPLATES_MAX as u64);

    // Options that describe selectors: 302 names them, 305 tells the interval.
    let layout = [400_u16, 2, 1, 302, 8, 305, 4].map(u16::to_be_bytes).concat();
    let say = |number: u64| [&number.to_be_bytes()[..], &[0, 0, 0, 9]].concat();
    let said = (0..5_000).map(say).collect::<Vec<_>>().concat();
    let reader = read_all(&[ipfix(0, 1, &[set(3, &layout), set(400, &said)])]);
    assert_eq!(reader.selectors().len(), SELECTORS_MAX);
    assert_eq!(reader.counts().selectors_refused, 5_000 - SELECTORS_MAX as u64);
    assert_eq!(reader.counts().options_records, 5_000);
}

#[test]
fn the_exporter_that_was_silent_longest_makes_room() {
    let mut reader = FlowReader::default();
    let mut records = 0;
    let mut send = |reader: &mut FlowReader, port: u16, sets: &[Vec<u8>]| {
        let exporter = SocketAddr::new(exporter().ip(), port);
        reader.message(exporter, &ipfix(0, 1, sets), &mut |_| records += 1).unwrap();
    };
    let data = set(256, &milliseconds_flow(1));
    for port in 0..=STREAMS_MAX as u16 {
        send(&mut reader, port, &[milliseconds_template()]);
        send(&mut reader, 0, &[]);
    }
    send(&mut reader, 0, std::slice::from_ref(&data));
    send(&mut reader, 1, &[data]);
    assert_eq!(reader.streams.len(), STREAMS_MAX);
    assert_eq!(records, 1, "0 spoke all the time, 1 was forgotten");
    assert!(reader.counts().streams_forgotten >= 1);
}

/// Messages that are almost right: any template, then anything as its records.
fn almost_right() -> impl Strategy<Value = Vec<u8>> {
    let field = (
        prop::sample::select(vec![1, 2, 4, 8, 12, 21, 22, 27, 150, 153, 156, 326, 0x8001]),
        prop_oneof![0..20_u16, Just(65_535)],
    );
    let fields = prop::collection::vec(field, 0..12);
    let body = prop::collection::vec(any::<u8>(), 0..300);
    (fields, body, any::<[u32; 3]>(), any::<bool>()).prop_map(|(fields, body, [a, b, c], v9)| {
        let (templates, data) = (template(256, &fields), set(256, &body));
        match v9 {
            true => netflow9(a, b, c, &[set(0, &templates), data]),
            false => ipfix(a, b, &[set(2, &templates), data]),
        }
    })
}

proptest! {
    #![proptest_config(twixt_testing::cases(3_000))]

    #[test]
    fn no_bytes_make_it_panic(
        version in prop::sample::select(vec![5_u8, 9, 10]),
        bytes in prop::collection::vec(any::<u8>(), 0..200),
    ) {
        let _ = read_all(&[[&[0, version], &bytes[..]].concat()]);
    }

    #[test]
    fn almost_right_messages_do_not_either(messages in prop::collection::vec(almost_right(), 1..5)) {
        let reader = read_all(&messages);
        prop_assert_eq!(reader.counts().messages as usize, messages.len());
    }
}
