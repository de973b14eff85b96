//! Final tables of independent programs, counter by counter: the authors' HashPipe with its
//! SpaceSaving and HashParallel, a public RAP and PRECISION, and frequent items of DataSketches.
//! The coins and hash functions are theirs, as the first lines of their files say.

use std::collections::BTreeMap;

use twixt_model::{FlowHash, FlowKey};

use super::super::admission::{Admission, PrecisionTable};
use super::super::chance::{Coin, Placement};
use super::super::config::{EntriesConfig, WaysConfig};
use super::super::entry::Entry;
use super::super::exact::ExactTable;
use super::super::hashpipe;
use super::super::rap::RapTable;
use super::super::slots::Slots;
use super::super::space_saving::SpaceSavingTable;
use super::super::table::FlowTable;

const ENTRIES: u32 = 120;
/// What their numbers of flows are called here.
const FLOW: FlowKey = FlowKey {
    source: std::net::IpAddr::V4(std::net::Ipv4Addr::UNSPECIFIED),
    destination: std::net::IpAddr::V4(std::net::Ipv4Addr::UNSPECIFIED),
    source_port: 0,
    destination_port: 0,
    protocol: 0,
};

/// Comment lines, and rows of numbers.
fn read(folder: &std::path::Path, name: &str) -> (Vec<String>, Vec<Vec<u64>>) {
    let text = twixt_testing::text_of(folder.join(name));
    let (comments, rows): (Vec<&str>, Vec<&str>) =
        text.lines().partition(|line| line.starts_with('#'));
    let numbers =
        |row: &str| row.split_whitespace().map(|number| number.parse().unwrap()).collect();
    let rows = rows.into_iter().map(numbers).collect();
    (comments.into_iter().map(str::to_owned).collect(), rows)
}

fn stream(folder: &std::path::Path) -> impl Iterator<Item = FlowHash> {
    let (_, rows) = read(folder, "trace_zipf1.1_100k.txt");
    rows.into_iter().map(|row| FlowHash(row[0]))
}

/// `[flow, packets]` of every counter.
fn counters<'a>(entries: impl IntoIterator<Item = &'a Entry>) -> Vec<[u64; 2]> {
    entries.into_iter().map(|entry| [entry.flow.0, entry.packets]).collect()
}

fn sorted(mut counters: Vec<[u64; 2]>) -> Vec<[u64; 2]> {
    counters.sort_unstable();
    counters
}

/// The linear congruential generator of the public RAP and PRECISION.
#[derive(Clone, Debug, PartialEq)]
struct TheirCoin {
    state: u64,
    /// PRECISION on a switch: one in the next power of two.
    rounds_up: bool,
}

impl TheirCoin {
    const fn new(rounds_up: bool) -> Self {
        Self { state: 88_172_645_463_325_252, rounds_up }
    }
}

impl Coin for TheirCoin {
    fn one_in(&mut self, outcomes: u64, _flow: FlowHash) -> bool {
        let outcomes = if self.rounds_up { outcomes.next_power_of_two() } else { outcomes };
        self.state = self
            .state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        ((self.state >> 11) as f64 / 2_f64.powi(53)) < 1.0 / outcomes as f64
    }
}

/// HashParallel replaces the smallest always.
#[derive(Clone, Debug, PartialEq)]
struct Always;

impl Coin for Always {
    fn one_in(&mut self, _outcomes: u64, _flow: FlowHash) -> bool {
        true
    }
}

/// FNV-1a of the flow's number, the word "stage" and the stage's number.
#[derive(Clone, Debug, PartialEq)]
struct Fnv;

impl Placement for Fnv {
    fn place(&self, flow: FlowHash, way: usize, slots: usize) -> usize {
        let text = format!("{}:stage:{way}", flow.0);
        let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
        });
        way * slots + (hash % slots as u64) as usize
    }
}

/// A linear hash function for each stage.
#[derive(Clone, Debug, PartialEq)]
struct Linear {
    factors: Vec<u64>,
    summands: Vec<u64>,
}

impl Linear {
    /// From a line `# A=[…] B=[…]`.
    fn parse(line: &str) -> Self {
        let numbers = |name: &str| {
            let list = line.split_once(name).unwrap().1.split_once(']').unwrap().0;
            list.split(',').map(|number| number.trim().parse().unwrap()).collect()
        };
        Self { factors: numbers("A=["), summands: numbers("B=[") }
    }
}

impl Placement for Linear {
    fn place(&self, flow: FlowHash, way: usize, slots: usize) -> usize {
        let hash = (flow.0 * self.factors[way] + self.summands[way]) % 39_916_801;
        way * slots + (hash % slots as u64) as usize
    }
}

/// Rows of a table that its program wrote by position.
fn by_position(rows: &[Vec<u64>]) -> Vec<[u64; 2]> {
    rows.iter().map(|row| [row[row.len() - 2], row[row.len() - 1]]).collect()
}

#[test]
fn rap_ends_with_their_counters() {
    let folder = twixt_testing::require!(shared "reference/heavy_hitters");
    let (_, rows) = read(&folder, "rap_py_m120.txt");
    let config = EntriesConfig::new(ENTRIES).unwrap();
    let mut table = RapTable::with_coin(&config, TheirCoin::new(false));
    stream(&folder).for_each(|flow| table.admit(flow, &FLOW, 100));
    assert_eq!(sorted(counters(table.entries())), sorted(by_position(&rows)));
}

#[test]
fn precision_ends_with_their_counters() {
    let folder = twixt_testing::require!(shared "reference/heavy_hitters");
    for (name, rounds_up) in [("approx0", false), ("approx1", true)] {
        let (_, rows) = read(&folder, &format!("precision_py_m120_{name}.txt"));
        let config = <PrecisionTable as FlowTable>::Config::new(ENTRIES, 2).unwrap();
        let mut table = Admission::new(Slots::new(&config, Fnv), TheirCoin::new(rounds_up));
        stream(&folder).for_each(|flow| table.admit(flow, &FLOW, 100));
        assert_eq!(counters(table.slots().iter()), by_position(&rows), "{name}");
    }
}

#[test]
fn hashpipe_ends_with_their_counters() {
    let folder = twixt_testing::require!(shared "reference/heavy_hitters");
    let (comments, rows) = read(&folder, "hashpipe_java_RollingMinSingleLookup_m120.txt");
    let config = WaysConfig::<6>::new(ENTRIES, 6).unwrap();
    let mut slots = Slots::new(&config, Linear::parse(&comments[1]));
    stream(&folder).for_each(|flow| hashpipe::push(&mut slots, flow, &FLOW, 100));
    assert_eq!(counters(slots.iter()), by_position(&rows));
}

/// Not one of our algorithms, but it is what PRECISION does with a coin that always falls so.
#[test]
fn hash_parallel_ends_with_their_counters() {
    let folder = twixt_testing::require!(shared "reference/heavy_hitters");
    let (comments, rows) = read(&folder, "hashpipe_java_MinReplacementHeuristic_m120.txt");
    let config = WaysConfig::<6>::new(ENTRIES, 6).unwrap();
    let mut table = Admission::new(Slots::new(&config, Linear::parse(&comments[1])), Always);
    stream(&folder).for_each(|flow| table.admit(flow, &FLOW, 100));
    assert_eq!(counters(table.slots().iter()), by_position(&rows));
}

#[test]
fn space_saving_ends_with_their_counters() {
    let folder = twixt_testing::require!(shared "reference/heavy_hitters");
    let (_, rows) = read(&folder, "hashpipe_java_OverallMinReplacement_m120.txt");
    let mut table = SpaceSavingTable::start(&EntriesConfig::new(ENTRIES).unwrap());
    stream(&folder).for_each(|flow| table.add(flow, &FLOW, 100));
    assert_eq!(counters(table.entries()), by_position(&rows));
}

/// Every count of the truth, each within the bounds of DataSketches.
#[test]
fn the_referee_agrees_with_the_truth() {
    let folder = twixt_testing::require!(shared "reference/heavy_hitters");
    let mut table = ExactTable::start(&Default::default());
    stream(&folder).for_each(|flow| table.add(flow, &FLOW, 100));
    let flows: BTreeMap<u64, u64> =
        table.flows().iter().map(|flow| (flow.hash.0, flow.packets)).collect();
    let (_, rows) = read(&folder, "truth.txt");
    assert_eq!(flows, rows.iter().map(|row| (row[0], row[1])).collect());
    let (_, bounds) = read(&folder, "datasketches_frequent_lgk8.txt");
    assert!(bounds.iter().all(|row| (row[2]..=row[3]).contains(&flows[&row[0]])));
}
