//! Exports of flow records: IPFIX, NetFlow v9 and v5.

use std::net::{Ipv4Addr, SocketAddr};

use twixt_flow::{
    FlowReader, FlowWriter, MessageSplitter, ReadRecord, WriterConfig, looks_like_export,
};
use twixt_model::{FlowRecord, Side, Span, Timestamp};
use twixt_synopsis::By;
use twixt_synopsis::cnf::{
    Merge, PairingBounds, RecordEstimator, RecordPairing, RecordPairingConfig, Rule, TimingBounds,
};

use crate::FuzzResult;

/// Reads the bytes as one datagram, as a stream of IPFIX messages, and as datagrams that follow
/// each other, with a length (two bytes) before each. What reads as a record and can be represented
/// in IPFIX survives being written and read, and any records can be paired.
pub fn records(bytes: &[u8]) -> FuzzResult {
    let mut found = read(&[bytes]);
    found.extend(read(&datagrams(bytes)));
    found.extend(read_stream(bytes));
    let _ = looks_like_export(bytes);
    survives(&found);
    for rule in [Rule::Label, Rule::Timing(BOUNDS)] {
        pairs(&found, rule);
    }
    FuzzResult::of(!found.is_empty())
}

fn exporter() -> SocketAddr {
    SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 4739)
}

fn datagrams(mut bytes: &[u8]) -> Vec<&[u8]> {
    let mut datagrams = Vec::new();
    while let Some((length, rest)) = bytes.split_first_chunk() {
        let length = usize::from(u16::from_be_bytes(*length)).min(rest.len());
        let (datagram, left) = rest.split_at(length);
        datagrams.push(datagram);
        bytes = left;
    }
    datagrams
}

fn read(messages: &[&[u8]]) -> Vec<FlowRecord> {
    let mut reader = FlowReader::default();
    let mut found = Vec::new();
    for message in messages {
        let before = found.len();
        let result = reader.message(exporter(), message, &mut |read| found.push(check(read)));
        if let Err(error) = result {
            assert!(!error.to_string().is_empty());
        }
        // A record has a byte at least.
        assert!(found.len() - before <= message.len());
    }
    assert_eq!(reader.counts().records, found.len() as u64);
    assert_eq!(reader.counts().messages, messages.len() as u64);
    let _ = reader.selectors();
    found
}

fn read_stream(bytes: &[u8]) -> Vec<FlowRecord> {
    let mut splitter = MessageSplitter::new();
    let mut messages: Vec<Vec<u8>> = Vec::new();
    let (first, second) = bytes.split_at(bytes.len() / 2);
    for piece in [first, second] {
        splitter.feed(piece);
        while let Some(message) = splitter.next_message() {
            messages.push(message.to_vec());
        }
    }
    let _ = splitter.end();
    read(&messages.iter().map(Vec::as_slice).collect::<Vec<_>>())
}

fn check(read: &ReadRecord) -> FlowRecord {
    let record = read.record;
    assert!(record.packets > 0 && record.first <= record.last && record.resolution_ns > 0);
    record
}

fn survives(records: &[FlowRecord]) {
    let mut writer =
        FlowWriter::new(WriterConfig { classes: true, ..WriterConfig::UDP }).expect("it is valid");
    // Times that are coarser than they say would be written by a coarser unit.
    let exact = records.iter().filter(|record| record.resolution_ns == 1);
    let mut expected = Vec::new();
    for record in exact {
        if writer.record(record, record.last).is_ok() {
            expected.push(*record);
        }
    }
    writer.finish();
    let mut reader = FlowReader::default();
    let mut found = Vec::new();
    while let Some(message) = writer.poll() {
        assert!(message.len() <= usize::from(WriterConfig::UDP.message_bytes_max));
        let result = reader.message(exporter(), &message, &mut |read| found.push(read.record));
        result.expect("what we wrote, we read");
    }
    assert_eq!(found, expected);
}

const BOUNDS: TimingBounds = TimingBounds {
    propagation_min_ns: 0,
    propagation_max_ns: 20_000_000,
    processing_ns: 50_000_000,
    clock_ns: 1_000_000,
    active_timeout_ns: 60_000_000_000,
    inactive_timeout_ns: 15_000_000_000,
};

/// Every other record is one of the other point.
fn pairs(records: &[FlowRecord], rule: Rule) {
    let asked = RecordPairingConfig {
        rule,
        window_ns: 90_000_000_000,
        active_timeout_ns: 60_000_000_000,
        by: By::Flow,
        estimator: RecordEstimator::Hybrid,
        outliers: 0.01,
        bounds: PairingBounds { records_max: 4, scopes_max: 3 },
    };
    let mut merge = Merge::new(asked.window_ns);
    for (index, record) in records.iter().enumerate() {
        let side = if index % 2 == 0 { Side::Upstream } else { Side::Downstream };
        merge.push(side, *record);
    }
    let mut pairing = RecordPairing::new(asked);
    while let Some((side, record)) = merge.take() {
        pairing.offer(side, record, 1.0);
    }
    pairing.finish(1.0);
    let counts = pairing.counts().association;
    assert_eq!(counts.upstream + counts.downstream, records.len() as u64);
    assert!(counts.associated <= counts.upstream.min(counts.downstream));
    let estimates = pairing.estimates(1.0, Span::at(Timestamp::from_nanos(0)));
    assert!(estimates.len() <= 3);
}
