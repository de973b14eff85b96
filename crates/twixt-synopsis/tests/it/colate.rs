//! How right COLATE is, on simulated traffic with known truth; what it takes to store; and why it
//! fails as printed. Experiments of full size are ignored: run them with
//! `cargo test --release -p twixt-synopsis --test it -- --ignored --nocapture`.

mod accuracy;
mod alone;
mod plan;
mod printed;
mod storage;
mod traffic;
mod triangle;
