//! Three points, everyone sends to everyone: six segments, one recording per point.

use twixt_model::GroupId;
use twixt_sim::Side;
use twixt_synopsis::{Colate, ColateConfig, KnownFlow, Synopsis};

use crate::colate::traffic::{Class, Traffic, config, show, traffic};

const SEGMENTS: [(usize, usize); 6] = [(0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1)];
/// So many that six groups fall into banks of their own.
const BANKS: u32 = 64;

struct Triangle {
    segments: Vec<Traffic>,
}

impl Triangle {
    fn new(packets: u64) -> Self {
        let segments = (0..6_u64).map(|segment| {
            let mut traffic = traffic(&config(100 + segment, packets));
            let group = GroupId(segment as u16);
            traffic.flows.iter_mut().for_each(|flow: &mut KnownFlow| flow.group = group);
            traffic
        });
        Self { segments: segments.collect() }
    }

    /// What the three points recorded, all that they sent and received.
    fn points(&self, config: &ColateConfig) -> [Colate; 3] {
        let mut points: [Colate; 3] = std::array::from_fn(|_| Colate::new(config));
        for (segment, (traffic, ends)) in self.segments.iter().zip(SEGMENTS).enumerate() {
            for (point, end) in [(Side::Upstream, ends.0), (Side::Downstream, ends.1)] {
                for mut packet in traffic.simulation.observations(point) {
                    packet.group = GroupId(segment as u16);
                    points[end].update(&packet);
                }
            }
        }
        points
    }

    /// Every segment, from the recordings of its two ends.
    fn scores(&self, config: &ColateConfig) -> Vec<[Class; 3]> {
        let points = self.points(config);
        let segments = self.segments.iter().zip(SEGMENTS).map(|(traffic, (from, to))| {
            let ends = (points[from].clone(), points[to].clone());
            traffic.scores(&traffic.ask(&ends, "joint", true))
        });
        segments.collect()
    }
}

/// The same counters per segment: alone, in banks, and all in one vector. A point sees four of
/// the six segments.
fn run(packets: u64, counters: u32) {
    let triangle = Triangle::new(packets);
    let single = ColateConfig::new(counters, 20, &[1.0]).unwrap();
    let banks = ColateConfig::new(BANKS * counters, 20, &[1.0]).unwrap().with_banks(BANKS).unwrap();
    let mixed = ColateConfig::new(4 * counters, 20, &[1.0]).unwrap();
    let alone: Vec<[Class; 3]> = triangle
        .segments
        .iter()
        .map(|traffic| traffic.scores(&traffic.ask(&traffic.ends(&single), "joint", true)))
        .collect();
    let alone = together("alone", &alone);
    let banked = together("in banks", &triangle.scores(&banks));
    let mixed = together("without banks", &triangle.scores(&mixed));
    assert_eq!(banked[2].answered(), 1.0);
    assert!(banked[2].median_error() <= 2.0 * alone[2].median_error());
    assert!(mixed[2].median_error() > 2.0 * alone[2].median_error());
}

/// All six segments, having shown each.
fn together(name: &str, segments: &[[Class; 3]]) -> [Class; 3] {
    let mut sums: [Class; 3] = Default::default();
    for (number, scores) in segments.iter().enumerate() {
        show(&format!("segment {number} {name}"), scores);
        sums.iter_mut().zip(scores).for_each(|(sum, score)| sum.add(score));
    }
    show(name, &sums);
    sums
}

#[test]
fn every_segment_of_a_triangle_is_answered_from_one_recording_per_point() {
    run(50_000, 2_277);
}

#[test]
#[ignore = "takes minutes"]
fn a_larger_triangle() {
    run(300_000, 13_660);
}
