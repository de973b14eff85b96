//! Three points, everyone sends to everyone: six segments, one recording per point.

use twixt_model::GroupId;
use twixt_sim::Side;
use twixt_synopsis::{Colate, ColateConfig, Synopsis};

use super::{FEW, FULL_PACKETS, LARGE, MEDIUM, PER_FLOW, ask, scaled, traffic, vector};
use crate::claim::{Holds, claim};
use crate::experiment::{Experiment, Seeds, Setting, Trial};
use crate::experiments::segment::{Answers, TestSegment};
use crate::summary::Summary;

pub(in crate::experiments) static EXPERIMENT: Experiment = Experiment {
    name: "colate-triangle",
    algorithm: "COLATE",
    paper: "COLATE, section 6.2.1, Fig. 8",
    about: "Six segments among three points, 300 000 packets each: every segment recorded alone; \
            one recording per point with a bank of counters for each pair of prefixes; and one \
            without, with as many counters per segment. Median error of the mean (joint, sizes \
            known), all segments together.",
    seeds: Seeds { quick: 2, full: 4 },
    trial,
    claims: &[
        claim("alone, flows of 1000+: mean off by", "–", "alone", Holds::AtMost(0.012)),
        claim(
            "in banks over alone, flows of 1000+",
            "the number of points does not matter",
            "in banks / alone",
            Holds::AtMost(2.0),
        ),
        claim(
            "without banks over alone, flows of 1000+",
            "the number of points does not matter",
            "without banks / alone",
            Holds::Differs,
        )
        .noting(
            "a counter that also holds packets which never pass the other point is of no use to \
             this pair, and most do: four of the six segments meet in every point",
        ),
        claim(
            "without banks over alone, flows of 100 to 999",
            "the number of points does not matter",
            "without banks, medium / alone, medium",
            Holds::Differs,
        )
        .noting("see above"),
        claim(
            "in banks: flows of 1000+ without an answer",
            "–",
            "in banks, unanswered",
            Holds::AtMost(0.0),
        ),
    ],
    figures: |_: &Summary| Vec::new(),
};

const SEGMENTS: [(usize, usize); 6] = [(0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1)];
/// So many that six groups fall into banks of their own.
const BANKS: u32 = 64;

fn trial(setting: Setting) -> Trial {
    let packets = setting.size.pick(FULL_PACKETS / 20, FULL_PACKETS * 3 / 10);
    let segments: Vec<TestSegment> = (0..SEGMENTS.len() as u16)
        .map(|number| {
            let mut segment =
                TestSegment::new(&traffic(setting.seed * 100 + u64::from(number), packets));
            segment.flows.iter_mut().for_each(|flow| flow.group = GroupId(number));
            segment
        })
        .collect();
    let counters = scaled(FEW, packets);
    let banks = vector(BANKS * counters, PER_FLOW).with_banks(BANKS).expect("banks are equal");
    let mut alone = Answers::none();
    for segment in &segments {
        let ends = segment.ends(&vector(counters, PER_FLOW));
        alone.extend(ask(segment, &ends, "joint"));
    }
    let mut trial = Trial::default();
    for (name, answers) in [
        ("alone", alone),
        ("in banks", recorded(&segments, &banks)),
        // A point sees four of the six segments.
        ("without banks", recorded(&segments, &vector(4 * counters, PER_FLOW))),
    ] {
        trial.value(name, answers.median_error(LARGE));
        trial.value(format!("{name}, medium"), answers.median_error(MEDIUM));
        trial.value(format!("{name}, unanswered"), answers.unanswered(LARGE));
    }
    trial
}

/// Every segment, from the recordings of its two ends.
fn recorded(segments: &[TestSegment], config: &ColateConfig) -> Answers {
    let mut points: [Colate; 3] = std::array::from_fn(|_| Colate::new(config));
    for (number, (segment, ends)) in segments.iter().zip(SEGMENTS).enumerate() {
        for (point, end) in [(Side::Upstream, ends.0), (Side::Downstream, ends.1)] {
            for mut packet in segment.simulation.observations(point) {
                packet.group = GroupId(number as u16);
                points[end].update(&packet);
            }
        }
    }
    let mut answers = Answers::none();
    for (segment, (from, to)) in segments.iter().zip(SEGMENTS) {
        let ends = (&points[from], &points[to]);
        answers.extend(segment.ask(ends, "joint", crate::experiments::segment::Sizes::Known));
    }
    answers
}
