//! What a packet costs, as ratios to two reference loops in the same run.
//!
//! `walk` steps over the record headers of a capture; `floor` also hashes the bytes of a digest
//! with XXH3 and adds to a table as large as the synopsis: less than that no synopsis can do.
//! Times on shared machines are noisy, so ratios and instruction counts are what to look at.
//! Run with `cargo xtask bench`.
#![allow(clippy::unwrap_used, reason = "a bench that cannot go on stops")]

mod capture;
mod clock;
mod instructions;
mod pipeline;
mod stages;
mod whole;

use std::time::Duration;

use clock::Start;
use stages::Stage;

const HELP: &str = "\
What a packet costs, as ratios to two reference loops in the same run

Usage: cargo xtask bench [OPTIONS]

  --packets N   packets of the simulated capture [default: 5000000]
  --repeats N   times everything is run; medians are shown [default: 7]
  --only TEXT   only what has this in its name, and the two reference loops
  --peers       programs of others too, where they are installed
  --json FILE   the table as JSON as well
  --help        this
";

/// How to run.
struct Options {
    packets: u64,
    repeats: usize,
    /// Only what has this in its name, and the two reference loops.
    only: String,
    /// Whether programs of others run too.
    peers: bool,
    /// Where the table goes as JSON.
    json: Option<String>,
}

/// One line of the table.
#[derive(serde::Serialize)]
struct Line {
    name: String,
    ns_per_packet: f64,
    times_walk: f64,
    times_floor: f64,
    instructions_per_packet: Option<f64>,
    peak_memory_bytes: Option<u64>,
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [flag, name, file, times] = arguments.as_slice()
        && flag == "--stage"
    {
        return run_stage(name, file, times.parse().unwrap());
    }
    if arguments.iter().any(|argument| argument == "--help" || argument == "-h") {
        return print!("{HELP}");
    }
    let options = options(&arguments);
    let file = capture::simulated(options.packets);
    let small = capture::simulated(instructions::PACKETS);
    eprintln!("{} packets in {}", options.packets, file.path().display());
    let lines = measure(&options, &file, &small);
    print_table(&lines);
    if let Some(path) = &options.json {
        std::fs::write(path, serde_json::to_string_pretty(&lines).unwrap()).unwrap();
    }
}

fn options(arguments: &[String]) -> Options {
    let value = |flag: &str| {
        let index = arguments.iter().position(|argument| argument == flag)?;
        Some(arguments[index + 1].clone())
    };
    let number = |flag, default: u64| value(flag).map_or(default, |text| text.parse().unwrap());
    Options {
        packets: number("--packets", 5_000_000),
        repeats: number("--repeats", 7) as usize,
        only: value("--only").unwrap_or_default(),
        peers: arguments.iter().any(|argument| argument == "--peers"),
        json: value("--json"),
    }
}

/// For counting instructions: one stage, so many times.
fn run_stage(name: &str, file: &str, times: usize) {
    let stages = stages::all(file.as_ref());
    let mut stage = stages.into_iter().find(|stage| stage.name == name).unwrap();
    for _ in 0..times {
        std::hint::black_box((stage.run)());
    }
}

fn measure(options: &Options, file: &capture::Capture, small: &capture::Capture) -> Vec<Line> {
    let is_asked_for = |name: &str| name.contains(&options.only);
    let mut stages: Vec<Stage> = stages::all(&file.path());
    stages.retain(|stage| ["walk", "floor"].contains(&&*stage.name) || is_asked_for(&stage.name));
    let mut times: Vec<Vec<Duration>> = vec![Vec::new(); stages.len()];
    // In turn rather than one after the other, so that noise hits all alike.
    for _ in 0..options.repeats {
        for (stage, times) in stages.iter_mut().zip(&mut times) {
            let start = Start::now();
            std::hint::black_box((stage.run)());
            times.push(start.elapsed());
        }
    }
    let per_packet = |times: &mut Vec<Duration>| {
        times.sort();
        times[times.len() / 2].as_nanos() as f64 / options.packets as f64
    };
    let costs: Vec<f64> = times.iter_mut().map(per_packet).collect();
    let (walk, floor) = (costs[0], costs[1]);
    let line = |name: &str, ns: f64, instructions, memory| Line {
        name: name.to_owned(),
        ns_per_packet: ns,
        times_walk: ns / walk,
        times_floor: ns / floor,
        instructions_per_packet: instructions,
        peak_memory_bytes: memory,
    };
    let mut lines: Vec<Line> = stages
        .iter()
        .zip(&costs)
        .map(|(stage, &ns)| line(&stage.name, ns, instructions::of_stage(&stage.name, small), None))
        .collect();
    let peers = if options.peers { whole::peers() } else { Vec::new() };
    for command in whole::commands().into_iter().chain(peers) {
        if !is_asked_for(&command.name) {
            continue;
        }
        let (ns, memory) = command.measure(file, options.packets, options.repeats);
        lines.push(line(&command.name, ns, instructions::of_command(&command, small), memory));
    }
    lines
}

fn print_table(lines: &[Line]) {
    println!("| what | ns/packet | × walk | × floor | instructions/packet | peak memory |");
    println!("|---|---:|---:|---:|---:|---:|");
    for line in lines {
        let instructions = line
            .instructions_per_packet
            .map_or_else(|| "–".to_owned(), |count| format!("{count:.0}"));
        let memory = line
            .peak_memory_bytes
            .map_or_else(|| "–".to_owned(), |bytes| format!("{:.1} MiB", bytes as f64 / 1048576.0));
        println!(
            "| {} | {:.1} | {:.2} | {:.2} | {instructions} | {memory} |",
            line.name, line.ns_per_packet, line.times_walk, line.times_floor
        );
    }
}
