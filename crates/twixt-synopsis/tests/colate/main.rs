//! How right COLATE is, on simulated traffic with known truth; what it takes to store; and why it
//! fails as printed. Experiments of full size are ignored: run them with
//! `cargo test --release -p twixt-synopsis --test colate -- --ignored --nocapture`.
#![allow(clippy::unwrap_used, reason = "helpers of tests may panic as tests do")]

mod accuracy;
mod alone;
mod plan;
mod printed;
mod storage;
mod traffic;
mod triangle;
