//! What it costs to decode a sketch for all flows at once, by flows and cells.

use std::process::Command;

use twixt_model::{ClassId, GroupId, Scope, Span, Timestamp};
use twixt_sim::{Config, Side, Simulation};
use twixt_synopsis::{By, KnownFlow, Lds, LdsConfig, Pair, Question, Synopsis, TwoPoint};

use super::clock::Start;
use super::table::{Row, Table};

const ROWS: u64 = 4;
/// Flows, and columns of a row. The third is that of the published experiments.
const SIZES: [(u32, u64); 5] =
    [(36_500, 4_375), (73_000, 8_750), (146_000, 17_500), (146_000, 35_000), (292_000, 35_000)];
/// Packets for each flow, as in the published experiments.
const PACKETS_PER_FLOW: u64 = 24;

/// One line for each size: seconds of one core and memory of a process that does no more.
pub(crate) fn table(repeats: usize, is_asked_for: impl Fn(&str) -> bool) -> Option<Table> {
    let name = |(flows, columns): (u32, u64)| {
        format!("joint decode of {flows} flows, {} cells", ROWS * columns)
    };
    let asked: Vec<_> = SIZES.into_iter().filter(|&size| is_asked_for(&name(size))).collect();
    let lines: Vec<Row> = asked
        .into_iter()
        .map(|size| {
            let mut runs: Vec<[f64; 2]> = (0..repeats).map(|_| apart(size)).collect();
            runs.sort_by(|one, other| one[0].total_cmp(&other[0]));
            let [seconds, added] = runs[repeats / 2];
            let bytes_each = added / (f64::from(size.0) * ROWS as f64);
            let values = [seconds, added / 1048576.0, bytes_each].map(Some).to_vec();
            Row { name: name(size), values }
        })
        .collect();
    let columns = ["seconds", "memory, MiB", "bytes per flow and row"];
    let columns = columns.map(str::to_owned).to_vec();
    (!lines.is_empty()).then_some(Table { title: "joint decode", columns, lines })
}

/// In a process of its own, whose greatest memory tells.
fn apart((flows, columns): (u32, u64)) -> [f64; 2] {
    let own = std::env::current_exe().unwrap();
    let numbers = [u64::from(flows), columns].map(|number| number.to_string());
    let output = Command::new(own).arg("--joint").args(numbers).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let mut numbers = text.split_whitespace().map(|number| number.parse().unwrap());
    [numbers.next().unwrap(), numbers.next().unwrap()]
}

/// What such a process does: prints the seconds, and the bytes that were needed beyond those that
/// sketches and flows take.
pub(crate) fn run(flows: u32, columns: u64) {
    let (ends, known) = sketches(flows, columns);
    let question = Question {
        by: By::Flow,
        estimator: Some("joint"),
        flows: &known,
        ..Question::about(Span::at(Timestamp::from_nanos(0)))
    };
    let before = memory("VmRSS:");
    reset_peak();
    let start = Start::now();
    let estimates = Lds::estimate(Pair { upstream: &ends[0], downstream: &ends[1] }, &question);
    let taken = start.elapsed();
    let answered = estimates.iter().filter(|estimate| matches!(estimate.scope, Scope::Flow(_)));
    assert!(answered.count() > 0, "no flow was answered for");
    println!("{} {}", taken.as_secs_f64(), memory("VmHWM:") - before);
}

fn sketches(flows: u32, columns: u64) -> ([Lds; 2], Vec<KnownFlow>) {
    let packets = Some(u64::from(flows) * PACKETS_PER_FLOW);
    let delay = "per-flow:median=1ms,spread=0.35,jitter=0.5".parse().unwrap();
    let simulation =
        Simulation::run(&Config { flows, packets, delay, ..Config::default() }).unwrap();
    let settings = format!("rows = {ROWS}\ncolumns = {columns}");
    let config: LdsConfig = toml::from_str(&settings).unwrap();
    let ends = [Side::Upstream, Side::Downstream].map(|point| {
        let mut sketch = Lds::new(&config);
        simulation.observations(point).for_each(|packet| sketch.update(&packet));
        sketch
    });
    let known = (0..simulation.flows() as u32).map(|flow| KnownFlow {
        hash: simulation.flow_hash(flow),
        key: simulation.flow_key(flow),
        group: GroupId::default(),
        packets: None,
        class: ClassId(0),
    });
    (ends, known.collect())
}

/// Forgets the greatest memory so far: that of the simulation.
fn reset_peak() {
    // Where the kernel does not let us, the figure is too large, not wrong in kind.
    let _ = std::fs::write("/proc/self/clear_refs", "5");
}

fn memory(what: &str) -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(what)).unwrap();
    line.trim().trim_end_matches("kB").trim().parse::<f64>().unwrap() * 1024.0
}
