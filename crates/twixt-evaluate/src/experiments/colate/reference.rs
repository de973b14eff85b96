//! COLATE beside reference packets (RLI), behind a queue that drops early.

use twixt_sim::{Config, FlowSize, Simulation};
use twixt_synopsis::cnf::rivals::{
    ReferenceRate, Spacing, mean_of_all, packets_per_reference, reference_interpolation,
};

use super::super::segment::{Answers, Packets, TestSegment, crossed};
use super::{ALL, LARGE, PER_FLOW, ask, packets, traffic, vector};
use crate::claim::{Holds, claim};
use crate::experiment::{Experiment, Seeds, Setting, Trial};
use crate::figure::{Axis, Curve, Figure};
use crate::summary::Summary;

const BOTH_LIMITS: &str = "the slowest rate of this pair of limits, although the same line is near the fastest \
     of the other: no rate that follows the load gives both";
const CHOSEN: &str = "load and bursts are chosen by us, as the paper gives no drain rates: at 81 % load it is a \
     third, at 98 % it is 86 %";
const ALIKE: &str = "packets that pass together have alike delays behind a queue, which is all that RLI needs; a \
     counter of COLATE adds up packets of different times and flows, and small flows have a small part of \
     theirs. The paper's COLATE as printed cannot have given its curve (colate-printed)";

pub(in crate::experiments) static EXPERIMENT: Experiment = Experiment {
    name: "colate-reference",
    algorithm: "COLATE",
    paper: "COLATE, section 6.4, Fig. 11 and Table 3",
    about: "A RED queue of half a second (thresholds 47.5 and 95 %, weight 0.002, 1/50). Table 3: RLI with one \
            reference packet after 10 to 300 packets by load, and after 2 to 10, at loads of 4.1 % (CHIC: 411 \
            Mbit/s of 10 Gbit/s), 2.5 and 81 % (at which the first column comes out for ICSI and DC). Fig. 11: \
            the queue at 93 % load, packets to a flow and to a counter as in each trace with 10 MB; RLI with \
            reference packets as far apart as Table 3 has them on average, COLATE (joint, sizes known).",
    seeds: Seeds { quick: 2, full: 4 },
    trial,
    claims: &[
        claim(
            "CHIC, 1:300 to 1:10: packets per reference packet",
            "18.66",
            "by load, CHIC",
            Holds::Between(15.0, 23.0),
        ),
        claim(
            "ICSI, 1:300 to 1:10: packets per reference packet",
            "17.19",
            "by load, ICSI",
            Holds::Between(15.0, 20.0),
        ),
        claim(
            "DC, 1:300 to 1:10: packets per reference packet",
            "245.7",
            "by load, DC",
            Holds::Between(220.0, 270.0),
        ),
        claim(
            "CHIC, 1:10 to 1:2: packets per reference packet",
            "10.0",
            "dense by load, CHIC",
            Holds::Between(8.0, 12.0),
        )
        .noting(BOTH_LIMITS),
        claim(
            "ICSI, 1:10 to 1:2: packets per reference packet",
            "2.97",
            "dense by load, ICSI",
            Holds::Between(1.5, 4.0),
        ),
        claim(
            "DC, 1:10 to 1:2: packets per reference packet",
            "9.06",
            "dense by load, DC",
            Holds::Between(7.5, 10.0),
        ),
        claim(
            "RLI, 1:300 to 1:10: flows within 5 %, average of three",
            "77 %",
            "RLI, within",
            Holds::Between(0.6, 0.9),
        )
        .noting(CHOSEN),
        claim(
            "RLI, 1:10 to 1:2: flows within 5 %, average of three",
            "81 %",
            "dense RLI, within",
            Holds::Between(0.6, 0.95),
        )
        .noting(CHOSEN),
        claim(
            "RLI: within 5 %, 1:10 to 1:2 over 1:300 to 1:10",
            "1.05",
            "dense RLI, within / RLI, within",
            Holds::Between(1.0, 1.2),
        ),
        claim(
            "COLATE over RLI, CHIC: flows within 5 %",
            "above 1",
            "COLATE, CHIC, within / RLI, CHIC, within",
            Holds::AtLeast(1.0),
        )
        .noting(ALIKE),
        claim(
            "COLATE over RLI, ICSI: flows within 5 %",
            "above 1",
            "COLATE, ICSI, within / RLI, ICSI, within",
            Holds::AtLeast(1.0),
        )
        .noting(ALIKE),
        claim(
            "COLATE over RLI, DC: flows within 5 %",
            "above 1",
            "COLATE, DC, within / RLI, DC, within",
            Holds::AtLeast(1.0),
        )
        .noting(ALIKE),
        claim(
            "COLATE over RLI, CHIC: median error, flows of 1000+",
            "far below 1",
            "COLATE, CHIC, large / RLI, CHIC, large",
            Holds::AtMost(0.5),
        )
        .noting(ALIKE),
        claim(
            "COLATE over RLI, ICSI: median error, flows of 1000+",
            "far below 1",
            "COLATE, ICSI, large / RLI, ICSI, large",
            Holds::AtMost(0.5),
        )
        .noting(ALIKE),
        claim(
            "COLATE over RLI, DC: median error, flows of 1000+",
            "far below 1",
            "COLATE, DC, large / RLI, DC, large",
            Holds::AtMost(0.5),
        )
        .noting(ALIKE),
    ],
    figures,
};

/// A trace of the paper.
struct Line {
    name: &'static str,
    load: f64,
    /// Table 2.
    packets_per_flow: f64,
    /// The smallest of the sizes that give so many on average.
    least: f64,
    /// Table 2, over counters of 19 bits in 10 MB.
    packets_per_counter: f64,
    /// Table 3: packets to a reference packet with both pairs of limits.
    spacings: [usize; 2],
}

const LINES: [Line; 3] = [
    Line {
        name: "CHIC",
        load: 0.041,
        packets_per_flow: 12.4,
        least: 1.2,
        packets_per_counter: 8.2,
        spacings: [19, 10],
    },
    Line {
        name: "ICSI",
        load: 0.025,
        packets_per_flow: 121.0,
        least: 14.0,
        packets_per_counter: 10.3,
        spacings: [17, 3],
    },
    Line {
        name: "DC",
        load: 0.81,
        packets_per_flow: 45.3,
        least: 5.0,
        packets_per_counter: 4.4,
        spacings: [246, 9],
    },
];
/// Of the queue whose delays flows are asked about.
const BUSY: f64 = 0.93;
const LIMITS: [(&str, &str, Spacing); 2] = [
    ("RLI", "by load", Spacing::PUBLISHED),
    ("dense RLI", "dense by load", Spacing { idle: 2.0, busy: 10.0 }),
];
const NEAR: f64 = 0.05;
/// Bits of a packet of 340 bytes: the mean of imix.
const PACKET_BITS: f64 = 340.0 * 8.0;
/// Large flows send for two seconds and pause, so that the queue rises and falls. The paper gives neither
/// drain rates nor the delays that came out. Load and bursts are chosen so that RLI is about as near as
/// it was published to be; at 81 % the queue is short, delays are those of single large packets, and RLI
/// has a third of flows within 5 %; at 98 % it has 86 %.
const BURST: &str = "length=2000,gap=1ms";

fn trial(setting: Setting) -> Trial {
    let mut trial = Trial::default();
    let mut sums = [0.0; LIMITS.len()];
    for line in &LINES {
        note_spacings(&mut trial, setting, line);
        let segment = TestSegment::new(&behind_queue(setting, line, BUSY));
        let counters = packets(setting) as f64 / line.packets_per_counter;
        let ends = segment.ends(&vector(counters as u32, PER_FLOW));
        note(&mut trial, "COLATE", line, &ask(&segment, &ends, "joint"));
        let crossed = crossed(&segment.simulation);
        let of_all_ns = mean_of_all(&crossed).expect("packets crossed");
        for (((way, ..), spacing), sum) in LIMITS.into_iter().zip(line.spacings).zip(&mut sums) {
            let rate = ReferenceRate::Static(spacing);
            let means = segment.named(&reference_interpolation(&crossed, rate));
            let answers = segment.judge(&means, of_all_ns);
            *sum += answers.share_within(ALL, NEAR).unwrap_or(f64::NAN) / LINES.len() as f64;
            note(&mut trial, way, line, &answers);
        }
    }
    for ((way, ..), sum) in LIMITS.into_iter().zip(sums) {
        trial.value(format!("{way}, within"), sum);
    }
    trial
}

/// How far reference packets are apart at the line's own load.
fn note_spacings(trial: &mut Trial, setting: Setting, line: &Line) {
    let config = behind_queue(setting, line, line.load);
    let simulation = Simulation::run(&config).expect("the configuration is in range");
    let crossed = crossed(&simulation);
    let line_bits_per_second = line_bits(&config, line.load);
    for (_, column, spacing) in LIMITS {
        let rate = ReferenceRate::Adaptive { line_bits_per_second, spacing };
        trial.value(format!("{column}, {}", line.name), packets_per_reference(&crossed, rate));
    }
}

/// The queue holds what the line sends in half a second.
fn behind_queue(setting: Setting, line: &Line, load: f64) -> Config {
    let packets = packets(setting);
    let config = Config {
        flows: (packets as f64 / line.packets_per_flow) as u32,
        flow_size: FlowSize::Pareto { shape: 1.05, min: line.least, max: 200_000.0 },
        burst: BURST.parse().expect("a burst is well-formed"),
        ..traffic(setting.seed, packets)
    };
    let drain = line_bits(&config, load);
    let queue = 0.5 * drain / PACKET_BITS;
    let (least, most) = (0.475 * queue, 0.95 * queue);
    let delay = format!(
        "red:drain={drain:.0}bit,queue={queue:.0},min={least:.0},max={most:.0},weight=0.002,max-p=0.02"
    );
    Config { delay: delay.parse().expect("a queue is well-formed"), ..config }
}

fn line_bits(config: &Config, load: f64) -> f64 {
    config.rate.0 as f64 * PACKET_BITS / load
}

fn note(trial: &mut Trial, way: &str, line: &Line, answers: &Answers) {
    const LARGE_OR_ALL: [(&str, Packets); 2] = [("large", LARGE), ("all", ALL)];
    let line = line.name;
    for (what, packets) in LARGE_OR_ALL {
        trial.value(format!("{way}, {line}, {what}"), answers.median_error(packets));
    }
    trial.value(format!("{way}, {line}, within"), answers.share_within(ALL, NEAR));
    for tenths in -35..=5 {
        let most = 10_f64.powf(f64::from(tenths) / 10.0);
        trial.point(&format!("{way}, {line}"), most, answers.share_within(ALL, most));
    }
}

fn figures(summary: &Summary) -> Vec<Figure> {
    let ways = [
        ("COLATE", "COLATE, 10 MB"),
        ("RLI", "RLI, 1:300 to 1:10"),
        ("dense RLI", "RLI, 1:10 to 1:2"),
    ];
    let figure = |&Line { name: line, .. }: &Line| Figure {
        name: format!("colate-reference-{}", line.to_lowercase()),
        title: format!("COLATE and RLI, flows and counters as {line}"),
        x: Axis::logarithmic("relative error of the mean"),
        y: Axis::linear("share of flows"),
        series: ways
            .map(|(way, label)| Curve::of_trials(summary, &format!("{way}, {line}"), label))
            .into(),
    };
    LINES.iter().map(figure).collect()
}
