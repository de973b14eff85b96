//! The source itself: blocks to frames, waiting, ending, and opening again.

use std::time::{Duration, Instant};

use twixt_model::{TimeSource, Timestamp};

use super::block::{Offload, Slot, for_each_slot};
use super::setup::{Group, Kind, Opened};
use super::split::{CountingFlows, Piece, SuperPacket};
use super::sys::Readiness;
use super::{GROUP_MAX, LiveCounts, LiveEnding, LiveError, LiveOptions};
use crate::{
    BatchEnd, CaptureError, Frame, FrameDirection, InterfaceDescription, PacketSource, Resolution,
    SourceCounts,
};

/// How long to wait at the end for frames that lie in a block which the kernel has not handed over.
/// It does so within two of the ring's longest waits, but may be late on a busy machine.
const LAST_WAIT_MAX: Duration = Duration::from_secs(2);

/// The frames of an interface, as they pass.
///
/// ```no_run
/// use twixt_capture::{BatchEnd, LiveOptions, LiveSource};
///
/// let mut source = LiveSource::open("eth0", &LiveOptions::default())?;
/// while source.read_batch(|frame| println!("{} bytes", frame.wire_length))? == BatchEnd::More {}
/// println!("{}", source.ending().expect("a source without more batches has ended"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct LiveSource {
    interface: String,
    options: LiveOptions,
    group: Option<u16>,
    opened: Opened,
    counts: SourceCounts,
    live: LiveCounts,
    counting: CountingFlows,
    /// Frames that the kernel wrote to the ring, up to the last look.
    entered: u64,
    /// The interface was down when last looked at.
    is_down: bool,
    ending: Option<LiveEnding>,
}

impl LiveSource {
    /// Opens an interface.
    ///
    /// # Errors
    ///
    /// When it is not there, is down, has frames of an unknown kind, or may not be captured.
    pub fn open(interface: &str, options: &LiveOptions) -> Result<Self, LiveError> {
        let source = Self::unstarted(interface, options, Group::None)?;
        source.opened.start(interface, options)?;
        Ok(source)
    }

    /// Opens an interface for several threads, a source each. The kernel spreads frames by flow:
    /// both directions of a flow, and all packets of a pair of hosts for protocols without ports,
    /// reach the same source. Between 1 and [`GROUP_MAX`] of them.
    ///
    /// # Errors
    ///
    /// As [`Self::open`].
    pub fn open_group(
        interface: &str,
        options: &LiveOptions,
        sources: usize,
    ) -> Result<Vec<Self>, LiveError> {
        let first = Self::unstarted(interface, options, Group::New)?;
        let group = first.group.map_or(Group::None, Group::Numbered);
        let mut all = vec![first];
        for _ in 1..sources.min(GROUP_MAX) {
            all.push(Self::unstarted(interface, options, group)?);
        }
        // Frames come only now that every flow has its final place.
        for source in &all {
            source.opened.start(interface, options)?;
        }
        Ok(all)
    }

    /// Opens the interface again after [`LiveEnding::InterfaceGone`], once there is one of that
    /// name. Counts go on. A source of a group joins it again, which the kernel refuses as long as
    /// another source of the group still has the interface that is gone.
    ///
    /// # Errors
    ///
    /// As [`Self::open`]. Then the source remains ended, and this may be called again.
    pub fn reopen(&mut self) -> Result<(), LiveError> {
        let opened = Opened::new(&self.interface, &self.options)?;
        opened.join(&self.interface, self.group.map_or(Group::None, Group::Numbered))?;
        opened.start(&self.interface, &self.options)?;
        self.opened = opened;
        self.entered = self.live.received;
        (self.is_down, self.ending) = (false, None);
        Ok(())
    }

    /// Hands the frames of a block to `sink`. Waits for one no longer than the options say, and
    /// then hands over nothing. The same as [`PacketSource::next_batch`] without a virtual call per
    /// frame.
    ///
    /// # Errors
    ///
    /// When the kernel refuses what it never should.
    #[inline]
    pub fn read_batch(
        &mut self,
        mut sink: impl FnMut(Frame<'_>),
    ) -> Result<BatchEnd, CaptureError> {
        if self.ending.is_some() {
            return Ok(BatchEnd::End);
        }
        if self.options.stop.is_set() {
            return self.end(LiveEnding::Stopped, sink);
        }
        if !self.read_block(&mut sink) {
            match self.wait(self.options.wait)? {
                Waited::Frames => {
                    self.read_block(&mut sink);
                }
                Waited::Nothing => {}
                Waited::Gone => return self.end(LiveEnding::InterfaceGone, sink),
            }
        }
        self.note_statistics();
        Ok(BatchEnd::More)
    }

    /// Why there are no more frames; `None` while there may be.
    #[must_use]
    pub fn ending(&self) -> Option<LiveEnding> {
        self.ending
    }

    /// What the frames are of.
    #[must_use]
    pub fn interface(&self) -> InterfaceDescription {
        InterfaceDescription {
            name: Some(self.interface.clone()),
            link_type: self.opened.kind.link_type(),
            snap_length: self.options.snap_length.map(Into::into),
            resolution: Resolution::NANOSECOND,
        }
    }

    /// Who takes the time of frames that are received.
    #[must_use]
    pub fn time_source(&self) -> TimeSource {
        self.opened.time_source
    }

    /// Why the time is not the adapter's, though that was preferred.
    #[must_use]
    pub fn time_remark(&self) -> Option<&str> {
        self.opened.time_remark.as_deref()
    }

    /// How long a frame may lie in the ring before it is handed over.
    #[must_use]
    pub fn longest_wait(&self) -> Duration {
        self.options.ring.longest_wait()
    }

    /// What was handed over, and what the kernel dropped, up to the last batch.
    #[must_use]
    pub fn counts(&self) -> SourceCounts {
        self.counts
    }

    /// What else was met, up to the last batch.
    #[must_use]
    pub fn live_counts(&self) -> LiveCounts {
        self.live
    }

    fn unstarted(interface: &str, options: &LiveOptions, group: Group) -> Result<Self, LiveError> {
        let opened = Opened::new(interface, options)?;
        let group = opened.join(interface, group)?;
        Ok(Self {
            interface: interface.to_owned(),
            options: options.clone(),
            group,
            opened,
            counts: SourceCounts { dropped: Some(0), ..SourceCounts::default() },
            live: LiveCounts::default(),
            counting: CountingFlows::new(),
            entered: 0,
            is_down: false,
            ending: None,
        })
    }

    /// Hands over the next block, if it is there. Says whether it was.
    #[inline]
    fn read_block(&mut self, sink: &mut impl FnMut(Frame<'_>)) -> bool {
        let Some(mut block) = self.opened.ring.take() else { return false };
        let (first, frames) = (block.first(), block.frames());
        let mut passing = Passing {
            kind: self.opened.kind,
            snap_length: self
                .options
                .snap_length
                .map_or(usize::MAX, |length| length.get() as usize),
            counts: &mut self.counts,
            live: &mut self.live,
            counting: &mut self.counting,
            sink,
        };
        let walked = for_each_slot(block.bytes(), first, frames, |slot| passing.pass(slot));
        self.live.malformed_blocks += u64::from(walked.is_err());
        true
    }

    fn wait(&mut self, longest: Duration) -> Result<Waited, LiveError> {
        let system = |attempt, source| LiveError::System {
            interface: self.interface.clone(),
            attempt,
            source,
        };
        match self.opened.socket.wait(longest) {
            Ok(Readiness::Ready) => return Ok(Waited::Frames),
            Ok(Readiness::Nothing) => {}
            // Reported once, whether the interface goes down or disappears.
            Ok(Readiness::Trouble(error)) if error.raw_os_error() == Some(libc::ENETDOWN) => {
                self.is_down = true;
                self.live.downs += 1;
            }
            Ok(Readiness::Trouble(error)) => return Err(system("capturing", error)),
            Err(error) => return Err(system("waiting for frames", error)),
        }
        Ok(if self.is_down { self.look_at_interface() } else { Waited::Nothing })
    }

    /// Whether an interface that went down is still there. The kernel goes on by itself when it
    /// comes up again, but does not say when it goes away.
    fn look_at_interface(&mut self) -> Waited {
        let socket = &self.opened.socket;
        match socket.name_of(self.opened.index).and_then(|name| socket.is_up(name)) {
            Ok(is_up) => {
                self.is_down = !is_up;
                Waited::Nothing
            }
            Err(_) => Waited::Gone,
        }
    }

    /// Hands over what was captured before now, and ends.
    fn end(
        &mut self,
        ending: LiveEnding,
        mut sink: impl FnMut(Frame<'_>),
    ) -> Result<BatchEnd, CaptureError> {
        // An interface that is gone lets nothing through anyway.
        let _ = self.opened.close();
        self.note_statistics();
        let start = Instant::now();
        // The kernel hands over a block that is not full when its time is over.
        while self.live.received < self.entered && start.elapsed() < LAST_WAIT_MAX {
            if !self.read_block(&mut sink) {
                let _ = self.opened.socket.wait(self.options.ring.longest_wait());
            }
        }
        self.note_statistics();
        self.ending = Some(ending);
        Ok(BatchEnd::End)
    }

    fn note_statistics(&mut self) {
        // Cannot fail on a packet socket; if it did, drops would be found out the next time.
        let Ok(statistics) = self.opened.socket.take_statistics() else { return };
        let dropped = self.counts.dropped.unwrap_or(0);
        self.counts.dropped = Some(dropped.saturating_add(statistics.tp_drops.into()));
        // The kernel counts those that it dropped as well.
        self.entered += u64::from(statistics.tp_packets.saturating_sub(statistics.tp_drops));
        self.live.freezes += u64::from(statistics.tp_freeze_q_cnt);
    }
}

impl PacketSource for LiveSource {
    fn next_batch(&mut self, sink: &mut dyn FnMut(Frame<'_>)) -> Result<BatchEnd, CaptureError> {
        self.read_batch(sink)
    }

    fn counts(&self) -> SourceCounts {
        self.counts()
    }
}

/// What waiting came to.
enum Waited {
    Frames,
    Nothing,
    Gone,
}

/// Frames on their way from a block to the sink.
struct Passing<'a, F> {
    kind: Kind,
    snap_length: usize,
    counts: &'a mut SourceCounts,
    live: &'a mut LiveCounts,
    counting: &'a mut CountingFlows,
    sink: &'a mut F,
}

impl<F: FnMut(Frame<'_>)> Passing<'_, F> {
    #[inline]
    fn pass(&mut self, slot: Slot<'_>) {
        self.live.received += 1;
        let frame = self.frame_of(&slot);
        self.live.tags_restored += u64::from(slot.tag.is_some());
        if slot.offload.kind == Offload::NONE {
            return self.hand_over_whole(frame, slot);
        }
        self.pass_super_packet(frame, slot);
    }

    #[cold]
    fn pass_super_packet(&mut self, frame: Frame<'static>, slot: Slot<'_>) {
        let super_packet = SuperPacket {
            bytes: &mut *slot.bytes,
            start: slot.start,
            wire_length: slot.wire_length,
            has_ethernet: self.kind.has_ethernet(),
            tag: slot.tag,
            offload: slot.offload,
        };
        let Self { snap_length, counts, counting, sink, .. } = self;
        let split = super_packet
            .split(counting, |piece| hand_over(frame, piece, *snap_length, counts, *sink));
        match split {
            Ok(pieces) => {
                self.live.super_packets += 1;
                self.live.pieces += u64::from(pieces);
            }
            Err(_) => {
                self.live.unsplit += 1;
                self.hand_over_whole(frame, slot);
            }
        }
    }

    #[inline]
    fn hand_over_whole(&mut self, frame: Frame<'static>, slot: Slot<'_>) {
        let (bytes, wire_length) = slot.with_tag(self.kind.has_ethernet());
        let piece = Piece { bytes, wire_length };
        hand_over(frame, piece, self.snap_length, self.counts, self.sink);
    }

    /// All but the bytes.
    #[inline]
    fn frame_of(&mut self, slot: &Slot<'_>) -> Frame<'static> {
        let nanos = i64::from(slot.seconds) * 1_000_000_000 + i64::from(slot.nanoseconds);
        let by_adapter = slot.status & libc::TP_STATUS_TS_RAW_HARDWARE != 0;
        self.live.adapter_times += u64::from(by_adapter);
        self.live.kernel_times += u64::from(!by_adapter);
        Frame {
            time: Timestamp::from_nanos(nanos),
            bytes: &[],
            memory: &[],
            wire_length: 0,
            link_type: self.kind.link_type(),
            interface: 0,
            direction: direction_of(slot.packet_type),
            time_source: if by_adapter { TimeSource::Hardware } else { TimeSource::Kernel },
        }
    }
}

/// Hands a packet on, cut at the snap length; `frame` is all else about it.
#[inline]
fn hand_over(
    frame: Frame<'static>,
    piece: Piece<'_>,
    snap_length: usize,
    counts: &mut SourceCounts,
    sink: &mut impl FnMut(Frame<'_>),
) {
    let bytes = &piece.bytes[..piece.bytes.len().min(snap_length)];
    let wire_length = piece.wire_length.max(bytes.len() as u32); // a block has less than 2^32
    counts.frames += 1;
    counts.bytes += bytes.len() as u64;
    sink(Frame { bytes, memory: piece.bytes, wire_length, ..frame });
}

/// To this host, to all, to some and to others are received; the rest is loops within the kernel.
#[inline]
fn direction_of(packet_type: u8) -> Option<FrameDirection> {
    match packet_type {
        libc::PACKET_OUTGOING => Some(FrameDirection::Outbound),
        libc::PACKET_HOST..=libc::PACKET_OTHERHOST => Some(FrameDirection::Inbound),
        _ => None,
    }
}
