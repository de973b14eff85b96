//! The published experiments on LDS again, with its estimators beside each other: the tables of
//! `docs/algorithms/lds.md`.
//!
//! ```text
//! cargo run --release -p twixt-synopsis --example lds_figures -- [--flows N] [--packets N]
//!     [--seeds 1,2,3] [sizes|loss-0.01|weights|flow-loss|drop-tail|listed …]
//! ```
#![allow(clippy::unwrap_used, reason = "a program for the authors' own use")]

mod experiments;
mod table;
mod traffic;

use traffic::Scale;

fn main() {
    let mut scale = Scale { flows: 146_000, packets: 3_500_000, seeds: vec![1, 2, 3] };
    let mut names = Vec::new();
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().expect("the option has a value");
        match argument.as_str() {
            "--flows" => scale.flows = value().parse().unwrap(),
            "--packets" => scale.packets = value().parse().unwrap(),
            "--seeds" => {
                scale.seeds = value().split(',').map(|seed| seed.parse().unwrap()).collect();
            }
            name => names.push(name.to_owned()),
        }
    }
    println!("{} flows, {} packets, seeds {:?}", scale.flows, scale.packets, scale.seeds);
    for (name, run) in experiments::ALL {
        if names.is_empty() || names.iter().any(|wanted| wanted == name) {
            println!("\n## {name}");
            run(&scale);
        }
    }
}
