//! What is in a capture, or passes an interface.

use std::collections::{BTreeMap, HashSet};

use serde::Serialize;
use twixt_capture::{CaptureFile, Frame, InterfaceDescription, LiveCounts, SourceCounts};
use twixt_model::{DigestHash, DigestProfile, FlowHash, Needs, Span, Timestamp, protocol};
use twixt_observe::is_timeless;
use twixt_wire::{
    Digester, FrameBytes, HashKey, LinkType, Observer, PAYLOAD_BYTES_MAX, Packet, Skip, SkipCounts,
};

use super::Args;
use super::findings::{Finding, Noting};
use crate::args::TrafficArgs;
use crate::exit::Exit;
use crate::frame_input::{FrameSource, LiveInterface, OnePass};
use crate::output::{self, Format, units};

/// Maximum number of flows counted.
const FLOWS_MAX: usize = 1 << 20;

pub(super) fn run(
    mut source: FrameSource,
    traffic: &TrafficArgs,
    args: &Args,
) -> anyhow::Result<Exit> {
    // Hashes never leave this command: a fixed key will do.
    let (profile, hash) = (DigestProfile::Default, DigestHash::Xxh3);
    let digester = Digester::new(profile, hash, PAYLOAD_BYTES_MAX, HashKey::from_seed(0));
    let needs = Needs { digest: true, flow: true, detail: false, group: false, exchange: false };
    let mut looking = Looking {
        observer: traffic.observer(needs, digester)?,
        most: args.count.unwrap_or(u64::MAX),
        content: Content::default(),
        within: traffic.within()?,
    };
    source.read(&mut looking)?;
    let document = CaptureDocument::new(&source, &looking.content);
    let exit = source.conclude(Exit::Done);
    match args.format {
        Format::Json => output::json(&document)?,
        _ => output::text(&document.report())?,
    }
    Ok(exit)
}

/// Summarises frames.
struct Looking {
    observer: Observer,
    /// Frames wanted.
    most: u64,
    content: Content,
    within: Option<Span>,
}

impl OnePass for Looking {
    fn take(&mut self, frame: &Frame<'_>) {
        if self.within.is_some_and(|span| !span.contains(frame.time)) {
            self.content.skipped.count(Skip::OutsideStretch);
        } else if !self.has_enough() {
            self.content.add(&self.observer, frame);
        }
    }

    fn has_enough(&self) -> bool {
        self.content.frames >= self.most
    }
}

/// What was found so far.
#[derive(Default)]
struct Content {
    frames: u64,
    captured_bytes: u64,
    wire_bytes: u64,
    cut_frames: u64,
    out_of_order: u64,
    span: Option<Span>,
    packets: u64,
    protocols: BTreeMap<String, u64>,
    flows: HashSet<FlowHash>,
    flows_refused: bool,
    skipped: SkipCounts,
    noting: Noting,
}

impl Content {
    fn add(&mut self, observer: &Observer, frame: &Frame<'_>) {
        self.frames += 1;
        self.captured_bytes += frame.bytes.len() as u64;
        self.wire_bytes += u64::from(frame.wire_length);
        self.cut_frames += u64::from((frame.bytes.len() as u64) < u64::from(frame.wire_length));
        if is_timeless(frame.time) {
            return self.skipped.count(Skip::NoTime);
        }
        if let Some(span) = self.span.filter(|span| frame.time < span.end) {
            self.out_of_order += 1;
            self.noting.note_behind(span.end - frame.time);
        }
        self.span = Some(self.span.map_or(Span::at(frame.time), |span| span.including(frame.time)));
        let link = LinkType(frame.link_type);
        let bytes = FrameBytes::within(frame.memory, frame.bytes.len());
        match observer.observe_packet(link, bytes, frame.wire_length, frame.time) {
            Err(skip) => self.skipped.count(skip),
            Ok((observation, packet)) => {
                self.noting.note(&observation, &packet);
                self.add_packet(observation.flow, &packet);
            }
        }
    }

    fn add_packet(&mut self, flow: FlowHash, packet: &Packet) {
        self.packets += 1;
        *self.protocols.entry(protocol_name(packet)).or_default() += 1;
        if self.flows.len() < FLOWS_MAX {
            self.flows.insert(flow);
        } else {
            self.flows_refused |= !self.flows.contains(&flow);
        }
    }
}

fn protocol_name(packet: &Packet) -> String {
    let name = match packet.protocol() {
        protocol::TCP => "tcp",
        protocol::UDP => "udp",
        protocol::ICMP | protocol::ICMPV6 => "icmp",
        protocol::SCTP => "sctp",
        other => return format!("ipv{} ip-proto {other}", packet.version()),
    };
    format!("ipv{} {name}", packet.version())
}

/// `twixt info -F json` of a capture.
#[derive(Serialize)]
struct CaptureDocument {
    /// Of captures only.
    file: Option<String>,
    format: String,
    /// Of captures only.
    compression: Option<String>,
    /// Of captures only.
    byte_order: Option<String>,
    interfaces: Vec<InterfaceDocument>,
    frames: u64,
    captured_bytes: u64,
    wire_bytes: u64,
    cut_frames: u64,
    out_of_order: u64,
    dropped: Option<u64>,
    start_ns: Option<i64>,
    end_ns: Option<i64>,
    packets: u64,
    flows: usize,
    flows_complete: bool,
    protocols: BTreeMap<String, u64>,
    skipped: BTreeMap<&'static str, u64>,
    ending: String,
    /// Of interfaces only.
    live: Option<LiveDocument>,
    findings: Vec<Finding>,
}

/// What the kernel did with frames before they were captured.
#[derive(Serialize)]
struct LiveDocument {
    super_packets: u64,
    pieces: u64,
    unsplit: u64,
    tags_restored: u64,
    kernel_times: u64,
    adapter_times: u64,
    freezes: u64,
}

impl From<LiveCounts> for LiveDocument {
    fn from(counts: LiveCounts) -> Self {
        Self {
            super_packets: counts.super_packets,
            pieces: counts.pieces,
            unsplit: counts.unsplit,
            tags_restored: counts.tags_restored,
            kernel_times: counts.kernel_times,
            adapter_times: counts.adapter_times,
            freezes: counts.freezes,
        }
    }
}

#[derive(Serialize)]
struct InterfaceDocument {
    name: Option<String>,
    link_type: String,
    snap_length: Option<u32>,
    resolution: String,
}

impl From<&InterfaceDescription> for InterfaceDocument {
    fn from(interface: &InterfaceDescription) -> Self {
        Self {
            name: interface.name.clone(),
            link_type: LinkType(interface.link_type).to_string(),
            snap_length: interface.snap_length,
            resolution: interface.resolution.to_string(),
        }
    }
}

impl CaptureDocument {
    fn new(source: &FrameSource, content: &Content) -> Self {
        let found = Self::of_content(source.counts(), content);
        match source {
            FrameSource::Capture(capture) => found.of_file(source.name(), capture.capture.file()),
            FrameSource::Interface(interface) => found.of_interface(interface),
        }
    }

    fn of_file(self, name: String, file: &CaptureFile) -> Self {
        Self {
            file: Some(name),
            format: file.format().to_string(),
            compression: Some(file.compression().to_string()),
            byte_order: Some(file.byte_order().to_string()),
            interfaces: file.interfaces().map(InterfaceDocument::from).collect(),
            ending: file.ending().map_or(self.ending, ToString::to_string),
            ..self
        }
    }

    fn of_interface(self, interface: &LiveInterface) -> Self {
        Self {
            format: "live".to_owned(),
            interfaces: vec![InterfaceDocument::from(&interface.description())],
            ending: interface.ending().map_or(self.ending, |ending| ending.to_string()),
            live: Some(interface.live_counts().into()),
            ..self
        }
    }

    fn of_content(counts: SourceCounts, content: &Content) -> Self {
        let mut skipped = content.skipped;
        skipped.add(Skip::NoTime, counts.skipped());
        Self {
            file: None,
            format: String::new(),
            compression: None,
            byte_order: None,
            interfaces: Vec::new(),
            frames: content.frames,
            captured_bytes: content.captured_bytes,
            wire_bytes: content.wire_bytes,
            cut_frames: content.cut_frames,
            out_of_order: content.out_of_order,
            dropped: counts.dropped,
            start_ns: content.span.map(|span| span.start.as_nanos()),
            end_ns: content.span.map(|span| span.end.as_nanos()),
            packets: content.packets,
            flows: content.flows.len(),
            flows_complete: !content.flows_refused,
            protocols: content.protocols.clone(),
            skipped: skipped.iter().map(|(skip, count)| (skip.name(), count)).collect(),
            ending: "not reached".to_owned(),
            live: None,
            findings: content.noting.findings(content.packets, counts.dropped),
        }
    }

    fn report(&self) -> String {
        let mut lines = self.file_lines();
        lines.extend(self.interface_lines());
        lines.extend(self.frame_lines());
        let more = if self.flows_complete { "" } else { "at least " };
        let (packets, flows) = (units::count(self.packets), units::count(self.flows as u64));
        lines.push(("packets", format!("{packets} in {more}{flows} flows")));
        let counted = |name: &str, count: u64| format!("{} {name}", units::count(count));
        lines.extend(self.protocols.iter().map(|(name, count)| ("", counted(name, *count))));
        lines.extend(
            self.skipped.iter().map(|(reason, count)| ("skipped", counted(reason, *count))),
        );
        lines.extend(
            self.dropped.map(|count| ("dropped", counted("by the capturing kernel", count))),
        );
        lines.extend(self.live_lines());
        lines.extend(self.findings.iter().map(|finding| ("finding", finding.text.clone())));
        lines.iter().map(|(name, value)| format!("{name:<10} {value}\n")).collect()
    }

    fn file_lines(&self) -> Vec<(&'static str, String)> {
        let Self { file: Some(file), compression, byte_order: Some(byte_order), .. } = self else {
            return Vec::new();
        };
        let compression = match compression.as_deref() {
            None | Some("none") => String::new(),
            Some(name) => format!(", compressed with {name}"),
        };
        let format = format!("{}, {byte_order}{compression}", self.format);
        vec![("file", file.clone()), ("format", format)]
    }

    fn live_lines(&self) -> Vec<(&'static str, String)> {
        let Some(live) = &self.live else { return Vec::new() };
        let mut lines = Vec::new();
        if live.super_packets > 0 {
            let (super_packets, pieces) =
                (units::count(live.super_packets), units::count(live.pieces));
            lines.push((
                "offload",
                format!("{pieces} packets arrived as {super_packets} super-packets"),
            ));
        }
        if live.adapter_times > 0 {
            let frames = units::count(live.adapter_times);
            lines.push(("times", format!("{frames} by the adapter")));
        }
        lines
    }

    fn interface_lines(&self) -> Vec<(&'static str, String)> {
        const SHOWN: usize = 8;
        let line = |interface: &InterfaceDocument| {
            let InterfaceDocument { name, link_type, snap_length, resolution } = interface;
            let name = name.as_deref().map(|name| format!("{name}: ")).unwrap_or_default();
            let snap =
                snap_length.map_or("no limit".to_owned(), |length| format!("{length} bytes"));
            ("interface", format!("{name}{link_type}, snap length {snap}, resolution {resolution}"))
        };
        let mut lines: Vec<_> = self.interfaces.iter().take(SHOWN).map(line).collect();
        if self.interfaces.len() > SHOWN {
            lines.push(("", format!("… and {} more", self.interfaces.len() - SHOWN)));
        }
        lines
    }

    fn frame_lines(&self) -> Vec<(&'static str, String)> {
        let cut = match self.cut_frames {
            0 => String::new(),
            cut => format!(", {} of them truncated", units::count(cut)),
        };
        let (captured, wire) = (units::bytes(self.captured_bytes), units::bytes(self.wire_bytes));
        let mut lines = vec![
            ("frames", format!("{}{cut}", units::count(self.frames))),
            ("bytes", format!("{captured} captured of {wire}")),
        ];
        if let (Some(start), Some(end)) = (self.start_ns, self.end_ns) {
            let length = units::duration(end.saturating_sub(start) as f64);
            let start = units::moment(Timestamp::from_nanos(start));
            lines.push(("time", format!("{length} from {start} UTC")));
        }
        if self.out_of_order > 0 {
            let frames = units::count(self.out_of_order);
            lines.push(("order", format!("{frames} frames are out of time order")));
        }
        lines
    }
}
