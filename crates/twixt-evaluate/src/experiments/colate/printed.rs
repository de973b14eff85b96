//! COLATE to the letter, and why that cannot work.

use twixt_sim::Side;
use twixt_synopsis::PrintedColate;

use super::{FEW, PER_FLOW, ask, packets, scaled, segment, vector};
use crate::claim::{Holds, claim};
use crate::experiment::{Experiment, Seeds, Setting, Trial};
use crate::experiments::segment::{TestSegment, median};
use crate::summary::Summary;

pub(in crate::experiments) static EXPERIMENT: Experiment = Experiment {
    name: "colate-printed",
    algorithm: "COLATE",
    paper: "COLATE, sections 3 and 4, equation (4)",
    about: "The published system as printed (each point draws a packet's counter at random and \
         subtracts other flows from its own sums of times) compared with the corrected one, 45 \
         533 counters for a million packets in a minute: median error of the mean delay of flows \
         of 1000 packets and more.",
    seeds: Seeds { quick: 2, full: 6 },
    trial,
    claims: &[
        claim(
            "as printed, times since the epoch began: mean off by",
            "within 5 % for 95 % of flows",
            "printed",
            Holds::Differs,
        )
        .noting(
            "not percent: times the delay. What remains of other flows in each sum is whole time \
             stamps, tens of seconds each, and a delay is a difference of two such sums",
        ),
        claim("as printed: share of flows within 5 %", "95 %", "printed, within", Holds::Differs)
            .noting("see above"),
        claim(
            "its root mean square error, over sqrt(2 P m / n) times that of stamps",
            "–",
            "over formula",
            Holds::Between(0.7, 1.4),
        )
        .noting("the failure is what arithmetic predicts, not an accident of this traffic"),
        claim(
            "corrected (joint): mean off by",
            "within 5 % for 95 % of flows",
            "corrected",
            Holds::AtMost(0.01),
        )
        .noting(
            "the packet selects its counter, the same at both points, and counters are compared \
             first",
        ),
    ],
    figures: |_: &Summary| Vec::new(),
};

fn trial(setting: Setting) -> Trial {
    let segment = segment(setting);
    let packets = packets(setting);
    let counters = scaled(FEW, packets);
    let span = segment.simulation.truth().all.span;
    let (start_ns, end_ns) = (span.start.as_nanos(), span.end.as_nanos());
    let vectors = [(Side::Upstream, 1), (Side::Downstream, 2)].map(|(point, number)| {
        let mut vector = PrintedColate::new(counters, PER_FLOW, setting.seed << 8 | number);
        let packets = segment.simulation.observations(point);
        packets.for_each(|packet| vector.update(&packet, start_ns));
        vector
    });
    // Stamps are spread evenly from 0 to the length of the epoch.
    let stamp_ns = (end_ns - start_ns) as f64 / 3_f64.sqrt();
    let load = packets as f64 / f64::from(counters);
    let noise_ns = (2.0 * load * f64::from(PER_FLOW)).sqrt() * stamp_ns;
    let found = Printed::of(&segment, &vectors);
    let mut trial = Trial::default();
    let within = found.errors.iter().filter(|error| **error <= 0.05).count();
    trial.value("printed, within", within as f64 / found.errors.len() as f64);
    trial.value("over formula", found.root_mean_square_ns / noise_ns);
    trial.value("printed", median(found.errors));
    let ends = segment.ends(&vector(counters, PER_FLOW));
    trial.value("corrected", ask(&segment, &ends, "joint").median_error(super::LARGE));
    trial
}

/// How far the printed estimator is off for large flows.
struct Printed {
    /// Of means, relative.
    errors: Vec<f64>,
    /// Of sums.
    root_mean_square_ns: f64,
}

impl Printed {
    fn of(segment: &TestSegment, [upstream, downstream]: &[PrintedColate; 2]) -> Self {
        let (mut errors, mut squares) = (Vec::new(), 0.0);
        for flow in &segment.flows {
            let Some(packets) = flow.packets.filter(|packets| super::LARGE.contains(packets))
            else {
                continue;
            };
            let Some(mean_ns) = segment.true_mean_ns(&flow.key) else { continue };
            let sum_ns = downstream.time_sum_ns(flow.hash) - upstream.time_sum_ns(flow.hash);
            let off_ns = sum_ns - mean_ns * packets as f64;
            errors.push((off_ns / packets as f64 / mean_ns).abs());
            squares += off_ns * off_ns;
        }
        let root_mean_square_ns = (squares / errors.len() as f64).sqrt();
        Self { errors, root_mean_square_ns }
    }
}
