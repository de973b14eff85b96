//! From frames to sealed epochs, at one point.
//!
//! A [`PacketPath`] takes frames, counts what it skips, and hands packets to a [`PacketSink`]. The
//! usual sink is [`Meters`], one for each class and algorithm, which cut time into epochs; commands
//! for one point feed a synopsis of their own. A [`PointShare`] is what one thread of a live point
//! observes, with its gaps and clock steps; a [`Merger`] puts the shares of all its threads together.
//!
//! Knows no file, interface, thread or clock: frames and times are handed in.

mod gaps;
mod merger;
mod meters;
mod packet_path;
mod point_share;
mod synopsis_feed;

pub use gaps::GAPS_MAX;
pub use merger::{Merger, MergerCounts, PENDING_EPOCHS_MAX, SealedPart};
pub use meters::{LATENESS, Meters, MetersConfig};
pub use packet_path::{
    FrameParts, PacketPath, PacketSink, PathCounts, SeenPacket, is_timeless, marker_in,
};
pub use point_share::{Era, PointShare};
pub use synopsis_feed::SynopsisFeed;
