//! The pcapng format (draft-ietf-opsawg-pcapng): sections of blocks.
//!
//! Reads what says when and where frames were captured and how many were dropped. Skips names,
//! secrets, comments and blocks it does not know.

mod block;
mod options;

use twixt_model::{TimeSource, Timestamp};

pub use self::block::MAX_BLOCK_BYTES;
use self::block::{Block, PacketFields, kind};
use self::options::Options;
use crate::decode::{Damage, Stop};
use crate::interface::{Interface, InterfaceDescription, MAX_INTERFACE_NAME_BYTES, snap_length_of};
use crate::{ByteOrder, Frame, FrameDirection, MAX_INTERFACES, Resolution, SourceCounts};

/// Takes frames out of a pcapng file, from its first byte on.
pub(crate) struct PcapngDecoder {
    section: Option<Section>,
    /// Of all sections so far, one after the other.
    interfaces: Vec<Interface>,
    counts: SourceCounts,
}

/// What holds until the next section header.
#[derive(Clone, Copy, Debug)]
struct Section {
    order: ByteOrder,
    /// Where its interfaces begin in the list of all.
    first_interface: usize,
}

impl PcapngDecoder {
    pub(crate) fn new() -> Self {
        Self { section: None, interfaces: Vec::new(), counts: SourceCounts::default() }
    }

    /// The byte order of the current section; `None` before the first.
    pub(crate) fn byte_order(&self) -> Option<ByteOrder> {
        self.section.map(|section| section.order)
    }

    pub(crate) fn interfaces(&self) -> &[Interface] {
        &self.interfaces
    }

    pub(crate) fn counts(&self) -> SourceCounts {
        let reported = self.interfaces.iter().filter_map(|interface| interface.drops.total());
        let dropped = reported.reduce(u64::saturating_add);
        SourceCounts { dropped, ..self.counts }
    }

    /// The first frame in `bytes`, and what follows it; or why there is none, and what follows the
    /// blocks before. If no frame is wanted, those up to the next packet are taken.
    ///
    /// Always a part of the loop over all frames, and not only for speed with this format. In loops
    /// without a loop inside, LLVM on x86 turns conditional moves into branches, and those on what
    /// differs from packet to packet are guessed wrongly half the time. This is such a loop inside.
    #[inline(always)]
    pub(crate) fn next_frame<'a>(
        &mut self,
        bytes: &'a [u8],
        is_wanted: bool,
    ) -> (Result<Frame<'a>, Stop>, &'a [u8]) {
        let mut rest = bytes;
        loop {
            match self.next_block(rest, !is_wanted) {
                Ok((frame, length)) => {
                    rest = &rest[length..];
                    if let Some(frame) = frame {
                        return (Ok(frame), rest);
                    }
                }
                Err(stop) => return (Err(stop), rest),
            }
        }
    }

    /// The block at the front of `bytes`: its frame, if it has one, and its length.
    #[inline]
    fn next_block<'a>(
        &mut self,
        bytes: &'a [u8],
        is_full: bool,
    ) -> Result<(Option<Frame<'a>>, usize), Stop> {
        let block = Block::first_of(bytes, self.byte_order())?;
        let is_packet = matches!(block.kind, kind::ENHANCED_PACKET | kind::OBSOLETE_PACKET);
        if is_full && is_packet {
            return Err(Stop::BatchFull);
        }
        let frame = match is_packet {
            true => self.packet(&block, bytes.get(block::PACKET_AT..).unwrap_or_default()),
            false => self.other_block(&block).map(|()| None),
        };
        frame.map(|frame| (frame, block.length)).map_err(Stop::Damaged)
    }

    #[inline]
    fn packet<'a>(
        &mut self,
        block: &Block<'a>,
        memory: &'a [u8],
    ) -> Result<Option<Frame<'a>>, Damage> {
        let PacketFields { interface: index, units, captured, wire_length, dropped_before, rest } =
            block.packet_fields()?;
        let room = rest.len();
        if captured as usize > room {
            return Err(Damage::FrameBeyondBlock { captured, room });
        }
        let first = self.section.map_or(0, |section| section.first_interface);
        let index = first.saturating_add(index as usize);
        let Some(interface) = self.interfaces.get_mut(index) else {
            self.counts.skipped_without_interface += 1;
            return Ok(None);
        };
        let limit = interface.longest_frame_bytes;
        if captured > limit {
            return Err(Damage::FrameLength { captured, limit });
        }
        self.counts.count_frame(captured, wire_length, interface.snap_length);
        let time = time_of(interface, units, &mut self.counts);
        let (bytes, options) = rest.split_at(captured as usize);
        let options = options.get(padding(captured)..).unwrap_or(&[]);
        let remarks = packet_remarks(options, block.order);
        if let Some(dropped) = dropped_before.or(remarks.dropped_before) {
            interface.drops.add_before_frame(dropped);
        }
        Ok(Some(Frame {
            time,
            bytes,
            memory,
            wire_length: wire_length.max(captured),
            link_type: interface.description.link_type,
            interface: index as u32, // below MAX_INTERFACES
            direction: remarks.direction,
            time_source: TimeSource::File,
        }))
    }

    fn other_block(&mut self, block: &Block<'_>) -> Result<(), Damage> {
        match block.kind {
            kind::SECTION_HEADER => self.start_section(block),
            kind::INTERFACE_DESCRIPTION => self.describe_interface(block),
            kind::INTERFACE_STATISTICS => self.note_statistics(block),
            kind::SIMPLE_PACKET => {
                self.counts.skipped_without_time += 1;
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn start_section(&mut self, block: &Block<'_>) -> Result<(), Damage> {
        block.check_version()?;
        let first_interface = self.interfaces.len();
        self.section = Some(Section { order: block.order, first_interface });
        Ok(())
    }

    fn describe_interface(&mut self, block: &Block<'_>) -> Result<(), Damage> {
        let (fields, options) = block.fields::<8>()?;
        if self.interfaces.len() >= MAX_INTERFACES {
            self.counts.interfaces_refused += 1;
            return Ok(());
        }
        let mut description = InterfaceDescription {
            name: None,
            link_type: block.order.u16_at(fields, 0),
            snap_length: snap_length_of(block.order.u32_at(fields, 4)),
            resolution: Resolution::MICROSECOND,
        };
        let mut offset_seconds = 0;
        for option in Options::new(options, block.order) {
            match (option.code, option.value) {
                (options::IF_NAME, name) => description.name = name_of(name),
                (options::IF_TIME_RESOLUTION, &[value, ..]) => {
                    description.resolution = Resolution::from_option(value);
                }
                (options::IF_TIME_OFFSET, _) => {
                    offset_seconds = option.u64().map_or(offset_seconds, u64::cast_signed);
                }
                _ => {}
            }
        }
        self.interfaces.push(Interface::new(description, offset_seconds));
        Ok(())
    }

    fn note_statistics(&mut self, block: &Block<'_>) -> Result<(), Damage> {
        let (fields, options) = block.fields::<12>()?;
        let first = self.section.map_or(0, |section| section.first_interface);
        let index = first.saturating_add(block.order.u32_at(fields, 0) as usize);
        let reported = Options::new(options, block.order)
            .filter(|option| {
                matches!(
                    option.code,
                    options::STATISTICS_INTERFACE_DROPS | options::STATISTICS_SYSTEM_DROPS
                )
            })
            .filter_map(|option| option.u64())
            .reduce(u64::saturating_add);
        if let (Some(interface), Some(dropped)) = (self.interfaces.get_mut(index), reported) {
            interface.drops.note_running_total(dropped);
        }
        Ok(())
    }
}

#[inline]
fn time_of(interface: &Interface, units: u64, counts: &mut SourceCounts) -> Timestamp {
    interface.clock.time(units).unwrap_or_else(|| {
        counts.odd_times += 1;
        interface.clock.nearest_time(units)
    })
}

/// What the options of a packet say.
#[derive(Clone, Copy, Debug, Default)]
struct PacketRemarks {
    direction: Option<FrameDirection>,
    dropped_before: Option<u64>,
}

#[inline]
fn packet_remarks(bytes: &[u8], order: ByteOrder) -> PacketRemarks {
    let mut remarks = PacketRemarks::default();
    for option in Options::new(bytes, order) {
        match option.code {
            options::PACKET_FLAGS => {
                remarks.direction = option.u32().and_then(direction_of);
            }
            options::PACKET_DROP_COUNT => remarks.dropped_before = option.u64(),
            _ => {}
        }
    }
    remarks
}

/// The lowest two bits of the flags.
fn direction_of(flags: u32) -> Option<FrameDirection> {
    match flags & 0b11 {
        0b01 => Some(FrameDirection::Inbound),
        0b10 => Some(FrameDirection::Outbound),
        _ => None,
    }
}

fn name_of(value: &[u8]) -> Option<String> {
    let kept = &value[..value.len().min(MAX_INTERFACE_NAME_BYTES)];
    let name = String::from_utf8_lossy(kept).trim_end_matches('\0').to_owned();
    (!name.is_empty()).then_some(name)
}

/// Bytes between a packet and its options, which begin at a multiple of four.
#[inline]
fn padding(captured: u32) -> usize {
    (captured.wrapping_neg() & 0b11) as usize
}
