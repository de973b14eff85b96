//! Every integration test of the crate, in one program.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop where it stands")]

mod accuracy;
mod both_points;
mod cnf_accuracy;
mod colate;
mod heartbeats;
mod identical_packets;
mod joint;
mod laws;
mod lds_accuracy;
mod reorder;
mod round_trips;
mod spilled;
