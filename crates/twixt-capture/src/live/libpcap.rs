//! Frames by way of libpcap, for interfaces and systems that the ring of our own does not know.
//!
//! Only with the feature `libpcap`, which needs the library and its headers. It does not tell
//! super-packets apart, so offloads must be off; and one thread reads all of an interface.

use std::fmt;
use std::io;
use std::time::{Duration, Instant};

use pcap::{Active, Capture, Device, Precision};
use twixt_model::{TimeSource, Timestamp};

use super::{LiveCounts, LiveEnding, LiveError, LiveOptions};
use crate::{
    BatchEnd, CaptureError, Frame, FrameDirection, InterfaceDescription, PacketSource, Resolution,
    SourceCounts,
};

/// How long to sleep before looking again for frames.
const LOOK_EVERY: Duration = Duration::from_millis(2);
/// Within the library IP packets without a link header have another number than in files.
const RAW_IP_INSIDE: i32 = 12;
const RAW_IP: u16 = 101;

/// The frames of an interface, as libpcap hands them over.
pub struct LibpcapSource {
    interface: String,
    options: LiveOptions,
    capture: Capture<Active>,
    link_type: u16,
    counts: SourceCounts,
    live: LiveCounts,
    ending: Option<LiveEnding>,
}

impl LibpcapSource {
    /// Opens an interface.
    ///
    /// # Errors
    ///
    /// When it is not there or may not be captured.
    pub fn open(interface: &str, options: &LiveOptions) -> Result<Self, LiveError> {
        let capture = activate(interface, options).map_err(|error| explain(interface, error))?;
        let number = capture.get_datalink().0;
        let link_type = if number == RAW_IP_INSIDE { RAW_IP } else { number as u16 };
        Ok(Self {
            interface: interface.to_owned(),
            options: options.clone(),
            capture,
            link_type,
            counts: SourceCounts { dropped: Some(0), ..SourceCounts::default() },
            live: LiveCounts::default(),
            ending: None,
        })
    }

    /// Hands over what has come. Waits for frames no longer than the options say.
    ///
    /// # Errors
    ///
    /// When the library refuses.
    pub fn read_batch(
        &mut self,
        mut sink: impl FnMut(Frame<'_>),
    ) -> Result<BatchEnd, CaptureError> {
        if self.ending.is_some() {
            return Ok(BatchEnd::End);
        }
        let (start, is_last) = (Instant::now(), self.options.stop.is_set());
        while self.dispatch(&mut sink)? == 0 && self.ending.is_none() {
            if is_last || start.elapsed() >= self.options.wait {
                break;
            }
            std::thread::sleep(LOOK_EVERY);
        }
        if let Ok(statistics) = self.capture.stats() {
            self.counts.dropped = Some(statistics.dropped.into());
        }
        if is_last {
            self.ending = Some(LiveEnding::Stopped);
        }
        Ok(if self.ending.is_some() { BatchEnd::End } else { BatchEnd::More })
    }

    /// Why there are no more frames; `None` while there may be.
    #[must_use]
    pub const fn ending(&self) -> Option<LiveEnding> {
        self.ending
    }

    /// What the frames are of.
    #[must_use]
    pub fn interface(&self) -> InterfaceDescription {
        InterfaceDescription {
            name: Some(self.interface.clone()),
            link_type: self.link_type,
            snap_length: self.options.snap_length.map(Into::into),
            resolution: Resolution::NANOSECOND,
        }
    }

    /// How long a frame may lie there before it is handed over.
    #[must_use]
    pub const fn longest_wait(&self) -> Duration {
        self.options.ring.longest_wait()
    }

    /// What was handed over, and what the kernel dropped, up to the last batch.
    #[must_use]
    pub const fn counts(&self) -> SourceCounts {
        self.counts
    }

    /// What else was met, up to the last batch.
    #[must_use]
    pub const fn live_counts(&self) -> LiveCounts {
        self.live
    }

    /// Hands over a buffer of the library's; how many frames were in it.
    fn dispatch(&mut self, sink: &mut impl FnMut(Frame<'_>)) -> Result<usize, CaptureError> {
        let Self { capture, link_type, counts, live, options, .. } = self;
        let dispatched = capture.dispatch(None, |packet| {
            counts.frames += 1;
            counts.bytes += packet.data.len() as u64;
            (live.received, live.kernel_times) = (live.received + 1, live.kernel_times + 1);
            sink(Frame {
                time: time_of(packet.header),
                bytes: packet.data,
                memory: packet.data,
                wire_length: packet.header.len.max(packet.data.len() as u32), // below 2^32
                link_type: *link_type,
                interface: 0,
                direction: options.direction,
                time_source: TimeSource::Kernel,
            });
        });
        match dispatched {
            Ok(frames) => Ok(frames),
            Err(pcap::Error::TimeoutExpired) => Ok(0),
            Err(pcap::Error::PcapError(message)) if is_gone(&message) => {
                self.ending = Some(LiveEnding::InterfaceGone);
                Ok(0)
            }
            Err(error) => Err(explain(&self.interface, error).into()),
        }
    }
}

impl PacketSource for LibpcapSource {
    fn next_batch(&mut self, sink: &mut dyn FnMut(Frame<'_>)) -> Result<BatchEnd, CaptureError> {
        self.read_batch(sink)
    }

    fn counts(&self) -> SourceCounts {
        self.counts
    }
}

impl fmt::Debug for LibpcapSource {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { interface, counts, ending, .. } = self;
        let mut shown = formatter.debug_struct("LibpcapSource");
        shown.field("interface", interface).field("counts", counts).field("ending", ending);
        shown.finish_non_exhaustive()
    }
}

fn activate(interface: &str, options: &LiveOptions) -> Result<Capture<Active>, pcap::Error> {
    let wait_ms = options.ring.longest_wait().as_millis();
    let mut capture = Capture::from_device(interface)?
        .promisc(options.promiscuous)
        .timeout(i32::try_from(wait_ms).unwrap_or(i32::MAX))
        .buffer_size(i32::try_from(options.ring.bytes()).unwrap_or(i32::MAX))
        .precision(Precision::Nano);
    if let Some(length) = options.snap_length {
        capture = capture.snaplen(i32::try_from(length.get()).unwrap_or(i32::MAX));
    }
    let capture = capture.open()?.setnonblock()?;
    if let Some(direction) = options.direction {
        capture.direction(match direction {
            FrameDirection::Inbound => pcap::FrameDirection::In,
            FrameDirection::Outbound => pcap::FrameDirection::Out,
        })?;
    }
    Ok(capture)
}

/// Fractions are nanoseconds, as was asked for.
fn time_of(header: &pcap::PacketHeader) -> Timestamp {
    let seconds_ns = header.ts.tv_sec.saturating_mul(1_000_000_000);
    Timestamp::from_nanos(seconds_ns.saturating_add(header.ts.tv_usec))
}

fn is_gone(message: &str) -> bool {
    ["disappeared", "went down", "No such device"].iter().any(|part| message.contains(part))
}

/// The library has text only.
fn explain(interface: &str, error: pcap::Error) -> LiveError {
    let interface = interface.to_owned();
    let message = error.to_string();
    if message.contains("ermission") || message.contains("not permitted") {
        return LiveError::NotPermitted { interface };
    }
    if message.contains("No such device") {
        let known = Device::list().unwrap_or_default().into_iter().map(|device| device.name);
        return LiveError::NoSuchInterface { interface, known: known.collect() };
    }
    LiveError::System {
        interface,
        attempt: "capturing with libpcap",
        source: io::Error::other(message),
    }
}
