//! Frames to observations.
//!
//! A frame is bytes and a link type; what is measured is one IP packet in it. [`parse()`] finds that
//! packet, through VLAN tags, MPLS labels and tunnels, or says why there is none ([`Skip`]). A
//! [`Digester`] hashes the fields that no router changes, so that two points can recognise the
//! packet. An [`Observer`] does both, applies a [`Filter`], and computes nothing that no algorithm
//! asked for.
//!
//! This crate does not know where frames come from, nor what observations are for. It allocates
//! nothing per packet, and no bytes make it panic.
//!
//! ```
//! use twixt_model::{DigestHash, DigestProfile, Needs, Timestamp};
//! use twixt_wire::{
//!     Digester, HashKey, LinkType, Observer, ObserverOptions, PAYLOAD_BYTES_MAX, Skip,
//! };
//!
//! // 10.0.0.1:53 to 10.0.0.2:9 over UDP, no payload, as raw IP.
//! let frame = [
//!     0x45, 0, 0, 28, 0, 1, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, // IPv4
//!     0, 53, 0, 9, 0, 8, 0, 0, // UDP
//! ];
//! let key = HashKey::from_passphrase("a secret of both points");
//! let observer = Observer::new(ObserverOptions {
//!     needs: Needs { digest: true, flow: true, detail: false, group: false, exchange: false },
//!     outer: false,
//!     filter: Some("udp and src port 53".parse()?),
//!     classes: Vec::new(),
//!     digester: Digester::new(DigestProfile::Default, DigestHash::Xxh3, PAYLOAD_BYTES_MAX, key),
//! })?;
//! let observe = |frame: &[u8]| observer.observe(LinkType::RAW, frame, 28, Timestamp::default());
//!
//! let seen = observe(&frame).expect("it is IP and selected");
//! assert_eq!(seen.length, 28);
//!
//! // One hop later the time to live is smaller, and the digest the same.
//! let mut later = frame;
//! later[8] = 63;
//! assert_eq!(observe(&later).map(|observation| observation.digest), Ok(seen.digest));
//!
//! // What is cut before its ports cannot be measured; another port was not asked for.
//! assert_eq!(observe(&frame[..22]), Err(Skip::Truncated));
//! later[21] = 54;
//! assert_eq!(observe(&later), Err(Skip::Filtered));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod bytes;
mod cuts;
mod digest;
mod exchange;
mod filter;
mod link;
mod observer;
mod packet;
mod parse;
mod rtp;
mod selection;
mod skip;
mod window;

pub use cuts::{ByteRange, Cuts, PIECES_MAX, SEGMENTS_MAX, SeenSegments};
pub use digest::{
    Available, Digester, HashKey, PAYLOAD_BYTES_MAX, RECORD_BYTES, Record, available,
};
pub use filter::{FILTER_BYTES_MAX, FILTER_DEPTH_MAX, Filter, FilterError, Headers, dscp_name};
pub use link::LinkType;
pub use observer::{CLASSES_MAX, OTHER_CLASS, Observer, ObserverError, ObserverOptions};
pub use packet::{IcmpEcho, Packet};
pub use parse::{EXTENSIONS_MAX, FRAME_BYTES_MAX, LAYERS_MAX, ParseOptions, parse};
pub use rtp::{RTP_FLOWS_MAX, RtpFinder, RtpHeader, RtpStream};
pub use selection::{
    HashRange, IpsxInput, SELECTION_PAYLOAD_BYTES_MAX, Selection, SelectionCounts,
    SelectionFunction, Selector, SelectorError, SelectorInput, bob, crc32, ipsx,
};
pub use skip::{Skip, SkipCounts};
pub use window::FrameBytes;
