//! What a packet costs, as ratios to two reference loops in the same run.
//!
//! `walk` steps over the record headers of a capture; `floor` also hashes the bytes of a digest
//! with XXH3 and adds to a table as large as the synopsis: less than that no synopsis can do.
//! Times on shared machines are noisy, so ratios and instruction counts are what to look at.
//! Run with `cargo xtask bench`.
#![allow(clippy::unwrap_used, reason = "a bench that cannot go on stops")]

mod capture;
mod clock;
mod epochs;
mod growth;
mod instructions;
mod joint;
mod pipeline;
mod stages;
mod table;
mod whole;

use std::path::PathBuf;
use std::time::Duration;

use capture::Capture;
use clap::Parser;
use clock::Start;
use stages::Stage;
use table::Table;
use whole::Whole;

/// What a packet costs, as ratios to two reference loops in the same run.
#[derive(Parser)]
struct Options {
    /// Packets of the simulated capture.
    #[arg(long, default_value_t = 5_000_000)]
    packets: u64,
    /// Times that each is measured; the median counts.
    #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u16).range(1..))]
    repeats: u16,
    /// Only what has this in its name, and the two reference loops.
    #[arg(long, default_value = "")]
    only: String,
    /// Programs of others too, where they are installed: tcptrace, tshark.
    #[arg(long)]
    peers: bool,
    /// A capture of yours in place of the simulated one.
    #[arg(long, value_name = "FILE")]
    capture: Option<PathBuf>,
    /// Where the tables go as JSON.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// Everything that was measured.
#[derive(serde::Serialize)]
struct Report {
    packets: u64,
    lines: Vec<Line>,
    tables: Vec<Table>,
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
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["--stage", name, file, times] => run_stage(name, file, times.parse().unwrap()),
        ["--joint", flows, columns] => {
            joint::run(flows.parse().unwrap(), columns.parse().unwrap());
        }
        _ => report(&Options::parse()),
    }
}

fn report(options: &Options) {
    let (file, small) = match &options.capture {
        Some(path) => (capture::copied(path), capture::copied(path)),
        None => (capture::simulated(options.packets), capture::simulated(instructions::PACKETS)),
    };
    eprintln!("{} packets in {}", file.packets, file.path().display());
    let report = Report {
        packets: file.packets,
        lines: measure(options, &file, &small),
        tables: tables(options),
    };
    print_table(&report.lines);
    report.tables.iter().for_each(Table::print);
    if let Some(path) = &options.json {
        std::fs::write(path, serde_json::to_string_pretty(&report).unwrap()).unwrap();
    }
}

/// What is not measured by packets of a capture.
fn tables(options: &Options) -> Vec<Table> {
    if options.capture.is_some() {
        return Vec::new();
    }
    let repeats = usize::from(options.repeats);
    let is_asked_for = |name: &str| name.contains(&options.only);
    let mut tables: Vec<Table> = epochs::table(repeats, is_asked_for).into_iter().collect();
    tables.extend(joint::table(repeats, is_asked_for));
    tables.extend(growth::tables(repeats, is_asked_for));
    tables
}

/// For counting instructions: one stage, so many times.
fn run_stage(name: &str, file: &str, times: usize) {
    let stages = stages::all(file.as_ref());
    let mut stage = stages.into_iter().find(|stage| stage.name == name).unwrap();
    for _ in 0..times {
        std::hint::black_box((stage.run)());
    }
}

fn measure(options: &Options, file: &Capture, small: &Capture) -> Vec<Line> {
    let is_asked_for = |name: &str| name.contains(&options.only);
    let mut stages: Vec<Stage> = stages::all(&file.path());
    stages.retain(|stage| ["walk", "floor"].contains(&&*stage.name) || is_asked_for(&stage.name));
    let mut commands: Vec<Whole> = whole::commands(file);
    commands.retain(|command| is_asked_for(&command.name));
    commands.extend(options.peers.then(whole::peers).into_iter().flatten());
    let costs = costs(options, file, &mut stages, &commands);
    let line = |name: &str, ns: f64, instructions, memory| Line {
        name: name.to_owned(),
        ns_per_packet: ns,
        times_walk: ns / costs[0],
        times_floor: ns / costs[1],
        instructions_per_packet: instructions,
        peak_memory_bytes: memory,
    };
    let of_stages = stages.iter().zip(&costs);
    let of_stages = of_stages.map(|(stage, &ns)| {
        line(&stage.name, ns, instructions::of_stage(&stage.name, small), None)
    });
    let of_commands = commands.iter().zip(&costs[stages.len()..]).map(|(command, &ns)| {
        let instructions = instructions::of_command(command, small);
        line(&command.name, ns, instructions, command.peak_memory(file))
    });
    of_stages.chain(of_commands).collect()
}

/// Nanoseconds per packet, first of stages and then of commands: medians.
fn costs(options: &Options, file: &Capture, stages: &mut [Stage], commands: &[Whole]) -> Vec<f64> {
    let mut times: Vec<Vec<Duration>> = vec![Vec::new(); stages.len() + commands.len()];
    // In turn rather than one after the other, so that noise hits all alike.
    for _ in 0..options.repeats {
        let (of_stages, of_commands) = times.split_at_mut(stages.len());
        for (stage, times) in stages.iter_mut().zip(of_stages) {
            let start = Start::now();
            std::hint::black_box((stage.run)());
            times.push(start.elapsed());
        }
        for (command, times) in commands.iter().zip(of_commands) {
            times.push(command.time(file));
        }
    }
    let per_packet = |times: &mut Vec<Duration>| {
        times.sort();
        times[times.len() / 2].as_nanos() as f64 / file.packets as f64
    };
    times.iter_mut().map(per_packet).collect()
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
        // With few packets the reference takes less than what can be measured.
        let ratio = |times: f64| match times.is_finite() {
            true => format!("{times:.2}"),
            false => "–".to_owned(),
        };
        println!(
            "| {} | {:.1} | {} | {} | {instructions} | {memory} |",
            line.name,
            line.ns_per_packet,
            ratio(line.times_walk),
            ratio(line.times_floor)
        );
    }
}
