//! Flow records out of files: IPFIX messages one after another, or the exports in a capture.

use std::fs::File;
use std::io::Read;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;

use anyhow::Context;
use twixt_capture::{BatchEnd, Frame};
use twixt_flow::{
    FlowReader, MessageSplitter, ReadRecord, SplitEnd, looks_like_export, looks_like_ipfix,
};
use twixt_model::protocol;
use twixt_wire::{LinkType, ParseOptions, parse};

use crate::exit::note;
use crate::input::Capture;
use crate::output::units;
use crate::progress::Progress;

/// Bytes read at once.
const CHUNK_BYTES: usize = 1 << 20;

/// Who wrote a file: nobody that has an address.
pub(crate) const FILE_EXPORTER: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);

/// Whether the file begins as a file of IPFIX messages does.
pub(crate) fn is_ipfix_file(path: &Path) -> bool {
    let mut start = [0; 4];
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut start));
    read.is_ok() && looks_like_ipfix(&start)
}

/// Hands all flow records of a file to `each`. Returns whether a part of it was unusable, having
/// said so.
pub(crate) fn read_records(
    path: &Path,
    reader: &mut FlowReader,
    each: &mut dyn FnMut(&ReadRecord),
) -> anyhow::Result<bool> {
    let partial = match is_ipfix_file(path) {
        true => read_ipfix(path, reader, each)?,
        false => read_capture(path, reader, each)?,
    };
    Ok(partial | (reader.counts().malformed > 0))
}

/// Says what the reader met that should make the user look closer.
pub(crate) fn note_troubles(name: &str, reader: &FlowReader) {
    for (what, count) in reader.counts().troubles() {
        note(format_args!("{name}: {what}: {}", units::count(count)));
    }
    for (reason, records) in reader.counts().all_unusable() {
        note(format_args!("{name}: {} records not usable: {reason}", units::count(records)));
    }
}

fn read_ipfix(
    path: &Path,
    reader: &mut FlowReader,
    each: &mut dyn FnMut(&ReadRecord),
) -> anyhow::Result<bool> {
    let shown = path.display();
    let mut file = File::open(path).with_context(|| format!("cannot open {shown}"))?;
    let mut splitter = MessageSplitter::new();
    let mut chunk = vec![0; CHUNK_BYTES];
    loop {
        let length = file.read(&mut chunk).with_context(|| format!("cannot read {shown}"))?;
        if length == 0 {
            break;
        }
        splitter.feed(&chunk[..length]);
        while let Some(message) = splitter.next_message() {
            // Counted by the reader, and said with its counts.
            let _ = reader.message(FILE_EXPORTER, message, each);
        }
    }
    match splitter.end() {
        SplitEnd::Clean => return Ok(false),
        SplitEnd::Torn { bytes } => {
            note(format_args!("{shown}: the last {bytes} bytes are an unfinished message"));
        }
        SplitEnd::Lost { offset } => {
            note(format_args!(
                "{shown}: no IPFIX message at byte {offset}; what follows is not read"
            ));
        }
    }
    Ok(true)
}

fn read_capture(
    path: &Path,
    reader: &mut FlowReader,
    each: &mut dyn FnMut(&ReadRecord),
) -> anyhow::Result<bool> {
    let mut capture = Capture::open(path)
        .with_context(|| format!("{} is neither IPFIX nor a capture of exports", path.display()))?;
    let progress = Progress::new(capture.size_bytes());
    let mut take = |frame: Frame<'_>| {
        if let Some((exporter, message)) = export_in(&frame) {
            let _ = reader.message(exporter, message, each);
        }
    };
    while capture.read_batch(&progress, &mut take) == BatchEnd::More {}
    drop(progress);
    Ok(capture.note_ending(path))
}

/// The export in a frame, if it holds one that is whole, and who sent it.
fn export_in<'a>(frame: &Frame<'a>) -> Option<(SocketAddr, &'a [u8])> {
    let options = ParseOptions { outer: false, wire_length: Some(frame.wire_length) };
    let packet = parse(LinkType(frame.link_type), frame.bytes, options).ok()?;
    let whole = packet.has_ports() && !packet.more_fragments() && !packet.is_cut();
    if packet.protocol() != protocol::UDP || !whole {
        return None;
    }
    let message = packet.payload(frame.bytes);
    let exporter = SocketAddr::new(packet.source(), packet.source_port());
    looks_like_export(message).then_some((exporter, message))
}
