//! The packets of a real capture through a drop-tail and a RED queue at 85 % load: every way to the
//! delay of its flows out of records, beside those that look at packets.
//!
//! `cargo run --release -p twixt --example real_arrivals -- CAPTURE [SAMPLING] [COPIES]`

use std::net::IpAddr;

use anyhow::Context;
use twixt_capture::CaptureFile;
use twixt_evaluate::{FlowError, record_ways};
use twixt_model::{Delay, FlowKey};
use twixt_sim::{Arrival, Config, Simulation};
use twixt_wire::{LinkType, ParseOptions, parse};

const LOAD: f64 = 0.85;
/// Queues of 10 000 packets; thresholds as in the published experiments.
const QUEUES: [(&str, &str); 2] = [
    ("drop-tail", "droptail:queue=10000"),
    ("RED", "red:queue=10000,min=4000,max=9000,weight=0.002,max-p=0.02"),
];

fn main() -> anyhow::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().context("which capture?")?;
    let sampling: f64 = arguments.next().map_or(Ok(0.1), |text| text.parse())?;
    let copies: u32 = arguments.next().map_or(Ok(1), |text| text.parse())?;
    let arrivals = overlaid(&arrivals(&path)?, copies);
    let (bits, seconds) = offered(&arrivals).context("there are no packets in it")?;
    println!("{} packets in {seconds:.1} s, {:.2} Mbit/s", arrivals.len(), bits / seconds / 1e6);
    let line_bits = (bits / seconds / LOAD).round();
    for (name, queue) in QUEUES {
        let delay = format!("{queue},drain={line_bits}bit").parse().expect("it is well-formed");
        let config = Config { delay, ..Config::default() };
        let simulation = Simulation::with_arrivals(&config, arrivals.iter().copied())?;
        show(name, &simulation, sampling, line_bits);
    }
    Ok(())
}

fn arrivals(path: &str) -> anyhow::Result<Vec<Arrival>> {
    let mut arrivals = Vec::new();
    CaptureFile::open(path)?.read_to_end(|frame| {
        let options = ParseOptions { outer: false, wire_length: Some(frame.wire_length) };
        if let Ok(packet) = parse(LinkType(frame.link_type), frame.bytes, options) {
            let (key, length) = (packet.flow_key(), packet.length());
            let frame_number = arrivals.len() as u64;
            arrivals.push(Arrival { time: frame.time, key, length, frame: frame_number });
        }
    });
    Ok(arrivals)
}

/// The capture laid over itself so many times, each time with hosts of its own and turned by
/// another share of its length: as many flows at a time as a busier line has.
fn overlaid(arrivals: &[Arrival], copies: u32) -> Vec<Arrival> {
    let times = || arrivals.iter().map(|arrival| arrival.time);
    let (Some(first), Some(last)) = (times().min(), times().max()) else { return Vec::new() };
    let length_ns = (last - first).as_nanos() + 1;
    let turned = |copy: u32| {
        let by_ns = length_ns / i64::from(copies) * i64::from(copy);
        arrivals.iter().map(move |arrival| {
            let since_ns = ((arrival.time - first).as_nanos() + by_ns) % length_ns;
            let key = FlowKey { source: another(arrival.key.source, copy), ..arrival.key };
            Arrival { time: first + Delay::from_nanos(since_ns), key, ..*arrival }
        })
    };
    let mut overlaid: Vec<Arrival> = (0..copies).flat_map(turned).collect();
    overlaid.sort_by_key(|arrival| arrival.time);
    overlaid
}

/// The address of the same host in another copy.
fn another(host: IpAddr, copy: u32) -> IpAddr {
    match host {
        IpAddr::V4(address) => IpAddr::V4((address.to_bits() ^ (copy << 20)).into()),
        IpAddr::V6(address) => IpAddr::V6((address.to_bits() ^ (u128::from(copy) << 100)).into()),
    }
}

/// Bits of all packets, and how long they take.
fn offered(arrivals: &[Arrival]) -> Option<(f64, f64)> {
    let bits = arrivals.iter().map(|arrival| f64::from(arrival.length) * 8.0).sum();
    let times = || arrivals.iter().map(|arrival| arrival.time);
    let length = times().max()? - times().min()?;
    Some((bits, length.as_nanos() as f64 / 1e9))
}

fn show(name: &str, simulation: &Simulation, sampling: f64, line_bits: f64) {
    let compared = record_ways(simulation, sampling, line_bits);
    println!(
        "\n{name}: load {:.1} %, {:.2} % lost, {} % of packets metered\n",
        compared.load.unwrap_or(f64::NAN) * 100.0,
        compared.lost_share * 100.0,
        sampling * 100.0
    );
    println!("{:<20} {:>10} {:>10} {:>10}", "median error", "all", "100+", "1000+");
    for (way, errors) in &compared.ways {
        let of = |least: u64| median(errors, least);
        println!("{way:<20} {:>10} {:>10} {:>10}", of(2), of(100), of(1000));
    }
    let judged =
        |least: u64| compared.ways[0].1.iter().filter(|flow| is_judged(flow, least)).count();
    println!("{:<20} {:>10} {:>10} {:>10}", "flows", judged(2), judged(100), judged(1000));
}

/// Flows with one metered packet have one delay, and all ways that start from records are the same.
const fn is_judged(flow: &FlowError, least: u64) -> bool {
    flow.size >= least && flow.metered >= 2
}

fn median(errors: &[FlowError], least: u64) -> String {
    let judged = errors.iter().filter(|flow| is_judged(flow, least));
    let mut judged: Vec<f64> = judged.map(|flow| flow.error).collect();
    judged.sort_by(f64::total_cmp);
    judged.get(judged.len() / 2).map_or("–".to_owned(), |error| format!("{:.1} %", error * 100.0))
}
