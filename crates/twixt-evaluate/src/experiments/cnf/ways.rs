//! Every way to the delay of flows that is compared: out of records, and those that look at
//! packets, which no deployment of records can.

use twixt_model::{ClassId, Observation};
use twixt_sim::Simulation;
use twixt_synopsis::CnfConfig;
use twixt_synopsis::cnf::Endpoints;
use twixt_synopsis::cnf::rivals::{
    Crossed, Means, ReferenceRate, Spacing, active_packets, all_between, interpolation,
    mean_of_all, reference_interpolation, trajectory_sampling,
};

use super::{Counted, Run, config};

/// Traffic that crossed a segment, and how far each way is off for each flow.
#[derive(Clone, Debug)]
pub struct RecordWays {
    /// The share of the line's time in which it was sending.
    pub load: Option<f64>,
    /// The share of packets that the segment lost.
    pub lost_share: f64,
    /// Each way, by name, with its flows.
    pub ways: Vec<(&'static str, Vec<FlowError>)>,
}

/// How far the mean delay of one flow is off.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FlowError {
    /// Packets of the flow upstream.
    pub size: u64,
    /// Those of them that were metered.
    pub metered: u64,
    /// Relative error.
    pub error: f64,
}

/// The way of each name for all flows that crossed a line of that rate, of which that share of
/// packets was metered.
#[must_use]
pub fn record_ways(
    simulation: &Simulation,
    sampling: f64,
    line_bits_per_second: f64,
) -> RecordWays {
    let config = config(&format!("sampling = {sampling:?}"));
    let run = Run::new(simulation, &config);
    let of_flow = |means: &Means| -> Vec<FlowError> {
        let error = |(flow, mean): (&_, &f64)| {
            let Counted { size, metered } = run.counted[flow];
            Some(FlowError { size, metered, error: (mean / run.truth.get(flow)? - 1.0).abs() })
        };
        means.iter().filter_map(error).collect()
    };
    let mut ways = ways(&run, &config, line_bits_per_second).to_vec();
    ways.push(("all between", all_between(&run.packets)));
    RecordWays {
        load: load(&run, line_bits_per_second),
        lost_share: run.lost_share,
        ways: ways.iter().map(|(name, means)| (*name, of_flow(means))).collect(),
    }
}

/// The mean delay of flows, by every way there is.
pub(super) fn ways(run: &Run, config: &CnfConfig, line_bits: f64) -> [(&'static str, Means); 9] {
    let packets = &run.packets;
    let pairs = run.upstream.associated_with(&run.downstream);
    let endpoints = Endpoints::new(&pairs, 0.0);
    // As many test packets as Multiflow has delays, as in the paper.
    let spacing = packets.len() / (2 * pairs.len()).max(1);
    let for_all = |mean: Option<f64>| -> Means {
        run.counted.keys().filter_map(|flow| Some((*flow, mean?))).collect()
    };
    let selects = |packet: &Crossed| {
        config.selects(&Observation { digest: packet.digest, ..Observation::default() })
    };
    let adaptive =
        ReferenceRate::Adaptive { line_bits_per_second: line_bits, spacing: Spacing::PUBLISHED };
    [
        ("multiflow", run.means("multiflow")),
        ("endpoint", run.means("endpoint")),
        ("hybrid", run.means("hybrid")),
        ("active", for_all(active_packets(packets, spacing))),
        ("mean of all", for_all(mean_of_all(packets))),
        ("interpolation", interpolation(packets, ClassId::default(), &endpoints)),
        ("trajectory", trajectory_sampling(packets, selects)),
        ("reference, static", reference_interpolation(packets, ReferenceRate::Static(100))),
        ("reference, adaptive", reference_interpolation(packets, adaptive)),
    ]
}

/// Share of the line's time in which it was sending.
pub(super) fn load(run: &Run, line_bits: f64) -> Option<f64> {
    let bits: f64 = run.packets.iter().map(|packet| f64::from(packet.length) * 8.0).sum();
    let (first, last) = (run.packets.first()?, run.packets.last()?);
    let seconds = (last.sent - first.sent).as_nanos() as f64 / 1e9;
    Some(bits / seconds / line_bits)
}
