//! Sources of frames.
//!
//! A [`PacketSource`] hands over frames, each with the time at which it was seen. Where they come
//! from is this crate's business; what is in them is not: it never looks past a record's header.
//!
//! [`CaptureFile`] reads pcap and pcapng, plain or compressed, from a path, standard input or any
//! reader, in constant memory. A damaged end never takes away what was read before it: see
//! [`Ending`]. [`LiveSource`] captures an interface of this machine. [`PcapWriter`] writes
//! nanosecond pcap.
//!
//! ```
//! use twixt_capture::{CaptureFile, Ending, PcapWriter};
//! use twixt_model::Timestamp;
//!
//! let mut writer = PcapWriter::new(Vec::new(), 1, 96)?;
//! writer.write(Timestamp::from_nanos(1_700_000_000_123_456_789), b"a frame", 60)?;
//! let bytes = writer.into_inner();
//!
//! let mut file = CaptureFile::from_reader(Box::new(std::io::Cursor::new(bytes)), "example")?;
//! let mut lengths = Vec::new();
//! let ending = file.read_to_end(|frame| lengths.push((frame.bytes.len(), frame.wire_length)));
//! assert_eq!(*ending, Ending::Complete);
//! assert_eq!(lengths, [(7, 60)]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod buffer;
mod byte_order;
mod clock;
mod decode;
mod detect;
mod ending;
mod error;
mod file;
mod input;
mod interface;
mod kernel_clock;
mod live;
mod machine;
mod pcap;
mod pcapng;
mod privileges;
mod source;
mod writer;

pub use byte_order::ByteOrder;
pub use clock::Resolution;
pub use detect::CaptureFormat;
pub use ending::Ending;
pub use error::CaptureError;
pub use file::{BATCH_FRAMES_MAX, CaptureFile};
pub use input::Compression;
pub use interface::{
    InterfaceDescription, MAX_FRAME_BYTES, MAX_INTERFACE_NAME_BYTES, MAX_INTERFACES,
};
pub use kernel_clock::{KernelClock, kernel_clock};
#[cfg(feature = "libpcap")]
pub use live::LibpcapSource;
pub use live::{
    GROUP_MAX, LiveCounts, LiveEnding, LiveError, LiveOptions, LiveSource, RingSize, Stop,
    TimePreference,
};
pub use machine::{Adapter, AdapterRings, AdapterStamps, Offloads, free_bytes, interface_names};
pub use pcapng::MAX_BLOCK_BYTES;
pub use privileges::{PrivilegeError, User, become_user, find_user};
pub use source::{BatchEnd, PacketSource};
pub use twixt_model::{Frame, FrameDirection, SourceCounts};
pub use writer::{CaptureWriteError, PcapWriter};
