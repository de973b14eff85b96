//! Count-Min sketches of sums of times, in the place of COLATE's counters.

use std::collections::BTreeMap;

use twixt_model::{FlowHash, Timestamp, mix};
use twixt_sim::{Config, FlowSize, Side};
use twixt_synopsis::{KnownFlow, encode};

use super::super::segment::{TestSegment, median};
use super::reliability::counters_of;
use super::{ALL, LARGE, PER_FLOW, ask, packets, traffic, vector};
use crate::claim::{Holds, claim};
use crate::experiment::{Experiment, Seeds, Setting, Trial};
use crate::figure::{Axis, Curve, Figure};
use crate::summary::Summary;

pub(in crate::experiments) static EXPERIMENT: Experiment = Experiment {
    name: "colate-count-min",
    algorithm: "COLATE",
    paper: "COLATE, section 6.5",
    about: "Count-Min sketches of the sums of times of flows: sized for 95 % within 5 %, one for each flow; and one \
            for all flows, with as many counters as COLATE (12.4 packets to a flow and 8.2 to a counter, as the \
            CHIC trace has with 10 MB), asked for the difference of two sums of times, and for sums of delays \
            (both points' counters compared first, as COLATE does here). Share of flows whose mean is within 5 %, \
            median error of flows of 1000 packets and more, and what each takes.",
    seeds: Seeds { quick: 2, full: 4 },
    trial,
    claims: &[
        claim("counters for 95 % within 5 %", "165", "counters", Holds::Between(165.0, 165.0)),
        claim("hash functions", "3", "hashes", Holds::Between(3.0, 3.0)),
        claim("bits for each flow, 19 to a counter", "3135", "bits per flow", Holds::Between(3135.0, 3135.0)),
        claim("one sketch for each flow: largest error of the mean", "–", "alone, largest", Holds::AtMost(1e-9)),
        claim(
            "one sketch for all flows, times: flows within 5 %",
            "not possible",
            "times, within",
            Holds::AtMost(0.95),
        ),
        claim(
            "one sketch for all flows, delays: flows within 5 %",
            "not possible",
            "delays, within",
            Holds::AtMost(0.95),
        ),
        claim(
            "one sketch for all flows, delays: error over that of COLATE, flows of 1000+",
            "–",
            "delays, large / COLATE, large",
            Holds::AtLeast(1.0),
        )
        .noting(
            "without loss and with sizes known, the emptiest of three counters is the better answer; twenty are \
             there for loss",
        ),
        claim(
            "packets of a flow from which its own sketch is smaller than its part of COLATE",
            "31 350",
            "packets for as much",
            Holds::AtLeast(31_350.0),
        )
        .noting(
            "the paper divides by 0.1 bit per packet; with so many counters COLATE takes more (colate-storage), \
             here as written at one point",
        ),
    ],
    figures,
};

/// What is required, and what that takes: e / 0.05 counters in a row, and ln 20 rows, as
/// Cormode and Muthukrishnan have it.
const INTERVAL: f64 = 0.05;
const RELIABILITY: f64 = 0.95;
/// The paper's counters.
const COUNTER_BITS: f64 = 19.0;
const MEGABYTES: u32 = 10;

/// Sums by flow, each at least as large as it was.
struct CountMin {
    columns: u64,
    rows: Vec<Vec<i64>>,
}

impl CountMin {
    fn new(columns: usize, rows: usize) -> Self {
        Self { columns: columns as u64, rows: vec![vec![0; columns]; rows] }
    }

    fn cell(&self, row: usize, flow: FlowHash) -> usize {
        (mix(flow.0 ^ mix(row as u64)) % self.columns) as usize
    }

    fn add(&mut self, flow: FlowHash, value: i64) {
        for row in 0..self.rows.len() {
            let cell = self.cell(row, flow);
            self.rows[row][cell] += value;
        }
    }

    fn sum(&self, flow: FlowHash) -> i64 {
        let sums = (0..self.rows.len()).map(|row| self.rows[row][self.cell(row, flow)]);
        sums.min().expect("there is a row")
    }
}

/// Counters in a row, and rows.
fn sized() -> (usize, usize) {
    let columns = (std::f64::consts::E / INTERVAL).ceil() as usize;
    (columns, (1.0 / (1.0 - RELIABILITY)).ln().ceil() as usize)
}

fn trial(setting: Setting) -> Trial {
    let mut trial = Trial::default();
    let (columns, rows) = sized();
    let bits_per_flow = (columns * rows) as f64 * COUNTER_BITS;
    trial.value("counters", (columns * rows) as f64);
    trial.value("hashes", rows as f64);
    trial.value("bits per flow", bits_per_flow);

    let segment = TestSegment::new(&many_flows(setting));
    let counters = counters_of(MEGABYTES, packets(setting));
    let ends = segment.ends(&vector(counters, PER_FLOW));
    let bits = encode(&ends.0).len() as f64 * 8.0 / packets(setting) as f64;
    trial.value("packets for as much", bits_per_flow / bits);
    let answers = ask(&segment, &ends, "joint");
    trial.value("COLATE, large", answers.median_error(LARGE));
    note_distribution(&mut trial, "COLATE", |most| answers.share_within(ALL, most));

    let shared = shared(&segment, counters as usize / rows, rows);
    for (name, errors) in ["times", "delays"].into_iter().zip(shared) {
        trial.value(format!("{name}, within"), share_within(&errors, INTERVAL));
        let large = errors.iter().filter(|(packets, _)| LARGE.contains(packets));
        let large = median(large.map(|(_, error)| *error).collect());
        trial.value(format!("{name}, large"), large);
        note_distribution(&mut trial, name, |most| share_within(&errors, most));
    }
    trial.value("alone, largest", alone(&segment, columns, rows));
    trial
}

/// As many packets to a flow as the CHIC trace has.
fn many_flows(setting: Setting) -> Config {
    let packets = packets(setting);
    Config {
        flows: (packets as f64 / 12.4) as u32,
        flow_size: FlowSize::Pareto { shape: 1.05, min: 1.2, max: 200_000.0 },
        ..traffic(setting.seed, packets)
    }
}

fn note_distribution(trial: &mut Trial, name: &str, share: impl Fn(f64) -> Option<f64>) {
    for tenths in -35..=30 {
        let most = 10_f64.powf(f64::from(tenths) / 10.0);
        trial.point(name, most, share(most));
    }
}

/// Of errors of flows with their packets.
fn share_within(errors: &[(u64, f64)], most: f64) -> Option<f64> {
    let within = errors.iter().filter(|(_, error)| *error <= most).count();
    (!errors.is_empty()).then(|| within as f64 / errors.len() as f64)
}

/// Errors of all flows with one sketch at each point: by the difference of both sums of times, and by
/// the smallest difference of two counters, a sum of delays.
fn shared(segment: &TestSegment, columns: usize, rows: usize) -> [Vec<(u64, f64)>; 2] {
    let start = start_of(segment);
    let [upstream, downstream] = [Side::Upstream, Side::Downstream].map(|point| {
        let mut sketch = CountMin::new(columns, rows);
        for packet in segment.simulation.observations(point) {
            sketch.add(packet.flow, (packet.time - start).as_nanos());
        }
        sketch
    });
    let compared = upstream.rows.iter().zip(&downstream.rows);
    let compared = compared.map(|(up, down)| down.iter().zip(up).map(|(down, up)| down - up));
    let delays =
        CountMin { columns: upstream.columns, rows: compared.map(Iterator::collect).collect() };
    let errors = |sum: &dyn Fn(FlowHash) -> i64| {
        let flows = segment.flows.iter().filter_map(|flow| {
            let packets = flow.packets?;
            let truth_ns = segment.true_mean_ns(&flow.key)?;
            Some((packets, (sum(flow.hash) as f64 / packets as f64 / truth_ns - 1.0).abs()))
        });
        flows.collect()
    };
    [errors(&|flow| downstream.sum(flow) - upstream.sum(flow)), errors(&|flow| delays.sum(flow))]
}

/// The largest error of all flows, each with a sketch of its own at each point.
fn alone(segment: &TestSegment, columns: usize, rows: usize) -> f64 {
    let sketches = |flow: &KnownFlow| (flow.hash, [0, 1].map(|_| CountMin::new(columns, rows)));
    let mut sketches: BTreeMap<FlowHash, [CountMin; 2]> =
        segment.flows.iter().map(sketches).collect();
    let start = start_of(segment);
    for (place, point) in [Side::Upstream, Side::Downstream].into_iter().enumerate() {
        for packet in segment.simulation.observations(point) {
            let of_flow = sketches.get_mut(&packet.flow).expect("every flow is known");
            of_flow[place].add(packet.flow, (packet.time - start).as_nanos());
        }
    }
    let error = |flow: &KnownFlow| {
        let [upstream, downstream] = &sketches[&flow.hash];
        let sum_ns = (downstream.sum(flow.hash) - upstream.sum(flow.hash)) as f64;
        Some((sum_ns / flow.packets? as f64 / segment.true_mean_ns(&flow.key)? - 1.0).abs())
    };
    segment.flows.iter().filter_map(error).fold(0.0, f64::max)
}

/// When the first packet passed.
fn start_of(segment: &TestSegment) -> Timestamp {
    segment.simulation.observations(Side::Upstream).next().expect("there are packets").time
}

fn figures(summary: &Summary) -> Vec<Figure> {
    let ways = [
        ("COLATE", "COLATE"),
        ("delays", "Count-Min, sums of delays"),
        ("times", "Count-Min, sums of times"),
    ];
    vec![Figure {
        name: "colate-count-min".to_owned(),
        title: "COLATE and Count-Min with as many counters".to_owned(),
        x: Axis::logarithmic("relative error of the mean"),
        y: Axis::linear("share of flows"),
        series: ways.map(|(way, label)| Curve::of_trials(summary, way, label)).into(),
    }]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_never_too_small_and_exact_for_a_flow_alone() {
        let flow = |number: u64| FlowHash(mix(number));
        let mut sketch = CountMin::new(8, 3);
        for number in 0..40 {
            sketch.add(flow(number), number as i64);
        }
        let sums: Vec<i64> = (0..40).map(|number| sketch.sum(flow(number))).collect();
        assert!(sums.iter().zip(0..).all(|(sum, own)| *sum >= own), "{sums:?}");
        // 40 flows in 8 columns: hardly one is alone anywhere.
        assert!(sums.iter().zip(0..).any(|(sum, own)| *sum > own), "{sums:?}");
        let mut alone = CountMin::new(8, 3);
        alone.add(flow(7), 5);
        alone.add(flow(7), 6);
        assert_eq!(alone.sum(flow(7)), 11);
    }

    #[test]
    fn a_sketch_for_one_in_twenty_has_three_rows_of_fifty_five() {
        assert_eq!(sized(), (55, 3));
    }
}
