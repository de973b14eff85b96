//! Reordering at one point, by the prefix that packets come from.
//!
//! A flow shows whether its own packets are in order, but how the network treats a prefix shows
//! in all of its flows. So flows are followed one by one, and what they show is added up by
//! prefix: by `exact` for every flow, by `sampled` for many flows in turns, each for a short
//! while, and by `hybrid` for the large flows besides, for as long as they last.
//!
//! Zheng, Yu, Rexford: "Detecting TCP Packet Reordering in the Data Plane", 2023, is where the
//! two come from. What they leave open is documented where it is decided.

mod config;
mod exact;
mod follow;
mod handshake;
mod holes;
mod judge;
mod record;
mod tally;
#[cfg(test)]
mod tests;

pub use exact::ReorderExact;
pub use follow::{ReorderHybrid, ReorderSampled};
pub use judge::Definition;
