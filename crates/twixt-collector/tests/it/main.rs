//! The collector as agents meet it: over connections, with real files.

#![allow(clippy::unwrap_used, reason = "helpers of tests may panic as tests do")]

mod access;
mod alerts;
mod api;
mod bundle;
mod clock;
mod dashboard;
mod disk;
mod epochs;
mod flows;
mod hostile;
mod large_network;
mod late;
mod limits;
mod metrics;
mod one_point;
mod pairing;
mod prometheus;
mod python;
mod replaying;
mod rollups;
mod running;
mod storing;
