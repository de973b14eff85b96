//! Exports of flow records: IPFIX, NetFlow v9 and v5.

use std::net::{Ipv4Addr, SocketAddr};

use twixt_flow::{
    FlowReader, FlowWriter, MessageSplitter, ReadRecord, WriterConfig, looks_like_export,
};
use twixt_model::FlowRecord;

use crate::Verdict;

/// Reads the bytes as one datagram, as a stream of IPFIX messages, and as datagrams that follow
/// each other, with a length (two bytes) before each. What reads as a record and can be said in
/// IPFIX survives being written and read.
pub fn records(bytes: &[u8]) -> Verdict {
    let mut found = read(&[bytes]);
    found.extend(read(&datagrams(bytes)));
    found.extend(read_stream(bytes));
    let _ = looks_like_export(bytes);
    survives(&found);
    Verdict::of(!found.is_empty())
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
