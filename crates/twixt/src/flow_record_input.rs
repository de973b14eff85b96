//! Flow records out of files: IPFIX messages one after another, or the exports in a capture.

use std::fs::File;
use std::io::{self, Cursor, Read};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use anyhow::Context;
use twixt_capture::{BatchEnd, Frame};
use twixt_flow::{
    FlowReader, MessageSplitter, ReadRecord, SplitEnd, looks_like_export, looks_like_ipfix,
};
use twixt_model::protocol;
use twixt_offline::{Capture, is_standard_input};
use twixt_wire::{LinkType, ParseOptions, parse};

use crate::exit::note;
use crate::output::units;
use crate::progress::ReadProgress;
use crate::remarks;

/// Bytes read at once.
const CHUNK_BYTES: usize = 1 << 18;
/// Bytes by which kinds of files are recognised.
const MAGIC_BYTES: usize = 4;

/// The exporter of a file, which has no address.
pub(crate) const FILE_EXPORTER: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);

/// Whether the file begins as a file of IPFIX messages does.
pub(crate) fn is_ipfix_file(path: &Path) -> bool {
    let mut start = [0; MAGIC_BYTES];
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut start));
    read.is_ok() && looks_like_ipfix(&start)
}

/// Hands all flow records of a file to `each`. Returns whether a part of it was unusable, having
/// reported it.
pub(crate) fn read_records(
    path: &Path,
    reader: &mut FlowReader,
    each: &mut dyn FnMut(&ReadRecord),
) -> anyhow::Result<bool> {
    let mut source = RecordSource::open(path)?;
    while source.read_batch(reader, each)? {}
    Ok(source.note_ending() | (reader.counts().malformed > 0))
}

/// A file, a pipe or standard input with flow records, read a little at a time.
pub(crate) struct RecordSource {
    path: PathBuf,
    content: Content,
}

enum Content {
    /// Messages of IPFIX one after another.
    Messages { input: Box<dyn Read + Send>, splitter: MessageSplitter, chunk: Vec<u8> },
    /// A capture in which exports are found.
    Exports { capture: Box<Capture>, progress: ReadProgress },
}

impl RecordSource {
    /// Opens a file and sees what it is; `-` is standard input. A pipe is opened once only.
    pub(crate) fn open(path: &Path) -> anyhow::Result<Self> {
        let shown = path.display();
        let mut input: Box<dyn Read + Send> = match is_standard_input(path) {
            true => Box::new(io::stdin()),
            false => Box::new(File::open(path).with_context(|| format!("cannot open {shown}"))?),
        };
        let mut start = Vec::with_capacity(MAGIC_BYTES);
        input
            .by_ref()
            .take(MAGIC_BYTES as u64)
            .read_to_end(&mut start)
            .with_context(|| format!("cannot read {shown}"))?;
        let is_ipfix = looks_like_ipfix(&start);
        let input: Box<dyn Read + Send> = Box::new(Cursor::new(start).chain(input));
        let content = match is_ipfix {
            true => {
                let (splitter, chunk) = (MessageSplitter::new(), vec![0; CHUNK_BYTES]);
                Content::Messages { input, splitter, chunk }
            }
            false => {
                let opened = match path.is_file() {
                    true => Capture::open(path),
                    false => Capture::from_reader(input, path),
                };
                let capture = opened.with_context(|| {
                    format!("{shown} is neither IPFIX nor a capture of export traffic")
                })?;
                let progress = ReadProgress::new(capture.size_bytes(), "reading");
                Content::Exports { capture: Box::new(capture), progress }
            }
        };
        Ok(Self { path: path.to_owned(), content })
    }

    /// Hands the next records to `each`. Returns whether there may be more.
    pub(crate) fn read_batch(
        &mut self,
        reader: &mut FlowReader,
        each: &mut dyn FnMut(&ReadRecord),
    ) -> anyhow::Result<bool> {
        // What is malformed is counted by the reader, and reported with its counts.
        match &mut self.content {
            Content::Messages { input, splitter, chunk } => {
                let read = input.read(chunk);
                let length =
                    read.with_context(|| format!("cannot read {}", self.path.display()))?;
                splitter.feed(&chunk[..length]);
                while let Some(message) = splitter.next_message() {
                    let _ = reader.message(FILE_EXPORTER, message, each);
                }
                Ok(length > 0)
            }
            Content::Exports { capture, progress } => {
                let mut take = |frame: Frame<'_>| {
                    if let Some((exporter, message)) = export_in(&frame) {
                        let _ = reader.message(exporter, message, each);
                    }
                };
                Ok(capture.read_batch(progress, &mut take) == BatchEnd::More)
            }
        }
    }

    /// Says what is wrong with how it ended; whether there was something.
    pub(crate) fn note_ending(&self) -> bool {
        let shown = self.path.display();
        let end = match &self.content {
            Content::Exports { capture, .. } => return remarks::note_ending(capture),
            Content::Messages { splitter, .. } => splitter.end(),
        };
        match end {
            SplitEnd::Clean => return false,
            SplitEnd::Torn { bytes } => {
                note(format_args!("{shown}: the last {bytes} bytes are an unfinished message"));
            }
            SplitEnd::Lost { offset } => {
                note(format_args!(
                    "{shown}: no IPFIX message at byte {offset}; the rest is not read"
                ));
            }
        }
        true
    }
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
