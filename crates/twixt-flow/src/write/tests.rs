use std::net::SocketAddr;

use twixt_model::{ClassId, FlowEnd, PacketDigest};

use super::*;
use crate::{FlowReader, MessageSplitter, Protocol, ReadRecord, Unusable};

const NOW: i64 = 1_763_190_000_123_456_789;

fn exporter() -> SocketAddr {
    "192.0.2.1:4739".parse().unwrap()
}

fn record(port: u16) -> FlowRecord {
    FlowRecord {
        key: format!("udp 10.0.0.1:{port} > 10.0.1.9:53").parse().unwrap(),
        class: ClassId(0),
        first: Timestamp::from_nanos(NOW - 987_654_321),
        last: Timestamp::from_nanos(NOW),
        packets: 3 + u64::from(port),
        bytes: 1 << 40,
        tcp_flags: 0x1b,
        first_label: Some(PacketDigest(0x0123_4567_89ab_cdef)),
        last_label: Some(PacketDigest(u64::MAX)),
        end: FlowEnd::Active,
        resolution_ns: 1,
    }
}

fn written(config: WriterConfig, records: &[FlowRecord]) -> Vec<Vec<u8>> {
    let mut writer = FlowWriter::new(config).unwrap();
    for record in records {
        writer.record(record, record.last).unwrap();
    }
    writer.finish();
    std::iter::from_fn(|| writer.poll()).collect()
}

fn read(messages: &[Vec<u8>]) -> (Vec<ReadRecord>, FlowReader) {
    let mut reader = FlowReader::default();
    let mut records = Vec::new();
    for message in messages {
        let protocol = reader.message(exporter(), message, &mut |read| records.push(*read));
        assert_eq!(protocol, Ok(Protocol::Ipfix));
    }
    (records, reader)
}

/// What is written reads back, in messages of the allowed length, without gaps.
#[track_caller]
fn check(config: WriterConfig, records: &[FlowRecord]) -> Vec<Vec<u8>> {
    let messages = written(config, records);
    let (found, reader) = read(&messages);
    assert_eq!(found.iter().map(|read| read.record).collect::<Vec<_>>(), records);
    assert!(messages.iter().all(|bytes| bytes.len() <= usize::from(config.message_bytes_max)));
    assert_eq!(reader.counts().troubles().collect::<Vec<_>>(), []);
    messages
}

#[test]
fn records_of_every_kind_read_back() {
    let v4 = record(1);
    let v6 = FlowRecord { key: "tcp [2001:db8::1]:1 > [2001:db8::2]:2".parse().unwrap(), ..v4 };
    let bare = FlowRecord { first_label: None, last_label: None, ..v4 };
    let first = FlowRecord { last_label: None, ..v6 };
    let echo = FlowRecord { key: "icmp 10.0.0.1 > 10.0.1.9".parse().unwrap(), ..bare };
    let micro = FlowRecord {
        first: Timestamp::from_nanos(NOW / 1000 * 1000 - 1000),
        last: Timestamp::from_nanos(NOW / 1000 * 1000),
        resolution_ns: 1_000,
        ..v4
    };
    let milli = FlowRecord {
        first: Timestamp::from_nanos(NOW / 1_000_000 * 1_000_000 - 5_000_000),
        last: Timestamp::from_nanos(NOW / 1_000_000 * 1_000_000),
        resolution_ns: 1_000_000,
        ..v6
    };
    check(WriterConfig::STREAM, &[v4, v6, bare, first, echo, micro, milli, v4]);
    check(
        WriterConfig { message_bytes_max: MESSAGE_BYTES_MIN, ..WriterConfig::UDP },
        &[v4, v6, bare, first, echo, micro, milli, v4],
    );
}

#[test]
fn classes_and_points_travel_under_any_enterprise_number() {
    let config = WriterConfig {
        classes: true,
        observation_point: Some(7),
        enterprise: 9,
        domain: 77,
        ..WriterConfig::STREAM
    };
    let sent = FlowRecord { class: ClassId(300), ..record(1) };
    let messages = written(config, &[sent]);
    let mut reader = FlowReader::new(9);
    let mut found = Vec::new();
    reader.message(exporter(), &messages[0], &mut |read| found.push(*read)).unwrap();
    assert_eq!((found[0].record, found[0].observation_point, found[0].domain), (sent, Some(7), 77));
    // Who looks under another number finds neither class nor last label.
    let (stranger, _) = read(&messages);
    assert_eq!(stranger[0].record, FlowRecord { class: ClassId(0), last_label: None, ..sent });
}

#[test]
fn templates_come_again_over_udp() {
    let records: Vec<FlowRecord> = (0..2_000).map(record).collect();
    let messages = check(WriterConfig::UDP, &records);
    assert!(messages.len() > 60, "{}", messages.len());
    // A collector that starts late misses what came before the next templates, and no more.
    let (late, reader) = read(&messages[1..]);
    let missed = records.len() - late.len();
    let per_message = records.len().div_ceil(messages.len());
    assert!(missed <= 21 * per_message + 1, "{missed}");
    assert!(reader.counts().sets_without_template <= 20);
    // Over a stream they come once.
    let stream = check(WriterConfig::STREAM, &records).concat();
    let template = Layout::of_record(&records[0], &WriterConfig::STREAM)
        .unwrap()
        .template(&WriterConfig::STREAM);
    assert_eq!(stream.windows(template.len()).filter(|window| *window == template).count(), 1);
}

#[test]
fn many_templates_again_do_not_burst_short_messages() {
    let mut records = Vec::new();
    for round in 0..40 {
        let plain = record(round);
        records.push(plain);
        records.push(FlowRecord { last_label: None, ..plain });
        records.push(FlowRecord { first_label: None, ..plain });
        records.push(FlowRecord {
            key: "tcp [2001:db8::1]:1 > [2001:db8::2]:2".parse().unwrap(),
            ..plain
        });
    }
    let config = WriterConfig {
        message_bytes_max: MESSAGE_BYTES_MIN,
        templates_every: Some(1),
        ..WriterConfig::UDP
    };
    check(config, &records);
}

#[test]
fn a_file_is_messages_one_after_another() {
    let records: Vec<FlowRecord> = (0..500).map(record).collect();
    let file = written(WriterConfig::STREAM, &records).concat();
    let mut splitter = MessageSplitter::new();
    splitter.feed(&file);
    let mut messages = Vec::new();
    while let Some(message) = splitter.next_message() {
        messages.push(message.to_vec());
    }
    assert_eq!(read(&messages).0.len(), 500);
}

#[test]
fn a_lost_message_is_a_gap_of_its_records() {
    let records: Vec<FlowRecord> = (0..200).map(record).collect();
    let mut messages = written(WriterConfig::UDP, &records);
    messages.remove(3);
    let (found, reader) = read(&messages);
    assert_eq!(reader.counts().missing as usize, records.len() - found.len());
    assert!(reader.counts().missing > 0);
}

#[test]
fn selectors_read_back() {
    let bob = SelectorNotice {
        selector_id: 5,
        algorithm: Some(6),
        payload_offset: Some(0),
        payload_bytes: Some(20),
        output: Some((0, 0xffff_ffff)),
        selected: Some((0, 42_949_672)),
        initialiser: Some(0xdead_beef),
        packets: Some((1_000, 12)),
        ..SelectorNotice::default()
    };
    let keyed = SelectorNotice {
        selector_id: 6,
        key_id: Some(77),
        selected: Some((0, 9)),
        interval: Some(8),
        ..SelectorNotice::default()
    };
    let mut writer = FlowWriter::new(WriterConfig::STREAM).unwrap();
    let now = Timestamp::from_nanos(NOW);
    writer.selector(&bob, now).unwrap();
    writer.record(&record(1), now).unwrap();
    writer.selector(&keyed, now).unwrap();
    writer.finish();
    let (found, reader) = read(&[writer.poll().unwrap()]);
    assert_eq!(found.len(), 1);
    let selectors: Vec<SelectorNotice> = reader.selectors().iter().map(|found| found.2).collect();
    assert_eq!(selectors, [bob, keyed]);
    assert_eq!(reader.counts().options_records, 2);
}

#[test]
fn delays_are_told_apart_from_records() {
    let delay = DelayRecord {
        key: record(1).key,
        first: Timestamp::from_nanos(NOW),
        last: Timestamp::from_nanos(NOW),
        packets: 10,
        mean: Delay::from_nanos(1_234_567),
        extremes: Some((Delay::from_nanos(0), Delay::from_nanos(9_000_000))),
    };
    let mut writer = FlowWriter::new(WriterConfig::STREAM).unwrap();
    let now = Timestamp::from_nanos(NOW);
    writer.delay(&delay, now).unwrap();
    writer.delay(&DelayRecord { extremes: None, ..delay }, now).unwrap();
    let negative = DelayRecord { mean: Delay::from_nanos(-1), ..delay };
    assert_eq!(writer.delay(&negative, now), Err(FlowWriteError::Delay { nanoseconds: -1 }));
    writer.finish();
    let (found, reader) = read(&[writer.poll().unwrap()]);
    assert_eq!((found.len(), reader.counts().unusable(Unusable::DelayResult)), (0, 2));
}

#[test]
fn what_cannot_be_said_is_refused_and_leaves_no_trace() {
    let mut writer = FlowWriter::new(WriterConfig::STREAM).unwrap();
    let old = FlowRecord { first: Timestamp::from_nanos(i64::MIN), ..record(1) };
    let now = Timestamp::from_nanos(NOW);
    assert_eq!(writer.record(&old, now), Err(FlowWriteError::Time { nanoseconds: i64::MIN }));
    assert!(writer.record(&record(1), Timestamp::MIN).is_err());
    let mixed = FlowRecord {
        key: FlowKey { source: "::1".parse().unwrap(), ..record(1).key },
        ..record(1)
    };
    assert_eq!(writer.record(&mixed, now), Err(FlowWriteError::Addresses));
    writer.finish();
    assert_eq!(writer.poll(), None);
    let short = WriterConfig { message_bytes_max: 255, ..WriterConfig::UDP };
    assert!(FlowWriter::new(short).is_err());
}
