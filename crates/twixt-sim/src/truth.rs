//! What really happened, flow by flow, in the words of an estimate.
//!
//! Delays are those that matching every packet of the two captures gives: differences
//! of the two points' clocks, error included. For what took place in true time see
//! [`SimulatedPacket::true_delay`](crate::SimulatedPacket::true_delay).

use std::fmt;

use twixt_model::{
    Delay, DelayEstimate, Estimate, Evidence, OrderStatistics, Scope, Span, Timestamp,
};

use crate::{Direction, Simulation};

/// What really happened. Estimates rest on every packet that was delivered.
#[derive(Clone, Debug, PartialEq)]
pub struct Truth {
    /// All forward traffic.
    pub all: Estimate,
    /// All return traffic, if there was any.
    pub returning: Option<Estimate>,
    /// Every flow that has packets: forward flows, then return flows, in order of index.
    pub flows: Vec<Estimate>,
}

impl Truth {
    /// The first line of the CSV.
    pub const CSV_HEADER: &str =
        "scope,packets,lost,mean_ns,stddev_ns,min_ns,p50_ns,p95_ns,p99_ns,max_ns";

    pub(crate) fn of(simulation: &Simulation) -> Self {
        let summary = |direction| {
            let (mut tally, mut delays) = (Tally::default(), Vec::new());
            let packets = simulation.packets().iter();
            for packet in packets.filter(|packet| simulation.direction(packet) == direction) {
                tally.add(simulation.seen_at(packet, direction.entry()));
                delays.extend(simulation.observed_delay(packet));
            }
            tally.conclude(Scope::All, &mut delays)
        };
        Self {
            all: summary(Direction::Forward).expect("a simulation has at least one packet"),
            returning: summary(Direction::Return),
            flows: by_flow(simulation),
        }
    }

    /// Writes one row per flow, header included. What is not known is left empty.
    ///
    /// # Errors
    ///
    /// If `out` has one.
    pub fn write_csv(&self, out: &mut impl fmt::Write) -> fmt::Result {
        writeln!(out, "{}", Self::CSV_HEADER)?;
        self.flows.iter().try_for_each(|flow| write_row(flow, out))
    }
}

/// Scopes of flows hold neither commas nor quotes, so that nothing needs escaping.
fn write_row(flow: &Estimate, out: &mut impl fmt::Write) -> fmt::Result {
    let nanos = |delay: Delay| delay.as_nanos();
    let order = flow.delay.and_then(|delay| delay.order);
    let deviation_ns = flow.delay.and_then(|delay| delay.deviation_ns);
    let columns = [
        flow.evidence.lost.map(|lost| lost as i64),
        flow.delay.map(|delay| nanos(delay.mean())),
        deviation_ns.map(|deviation| deviation.round() as i64),
        order.map(|order| nanos(order.min)),
        order.map(|order| nanos(order.p50)),
        order.map(|order| nanos(order.p95)),
        order.map(|order| nanos(order.p99)),
        order.map(|order| nanos(order.max)),
    ];
    write!(out, "{},{}", flow.scope, flow.evidence.packets)?;
    for column in columns {
        out.write_char(',')?;
        column.map_or(Ok(()), |value| write!(out, "{value}"))?;
    }
    writeln!(out)
}

/// Packets of a flow, or of all traffic, at the point that they pass first.
#[derive(Clone, Default)]
struct Tally {
    packets: u64,
    span: Option<Span>,
}

impl Tally {
    fn add(&mut self, time: Option<Timestamp>) {
        let Some(time) = time else { return };
        self.packets += 1;
        self.span = Some(self.span.map_or(Span::at(time), |span| span.including(time)));
    }

    /// `None` without packets.
    fn conclude(self, scope: Scope, delays: &mut [Delay]) -> Option<Estimate> {
        let used = delays.len() as u64;
        let lost = Some(self.packets - used);
        Some(Estimate {
            scope,
            span: self.span?,
            evidence: Evidence { packets: self.packets, used, lost, ..Evidence::default() },
            delay: summarise(delays),
            reason: (used == 0).then(|| "every packet was lost".to_owned()),
            sample: None,
            crossings: None,
        })
    }
}

fn by_flow(simulation: &Simulation) -> Vec<Estimate> {
    let mut tallies = vec![Tally::default(); 2 * simulation.flows()];
    let mut delivered = vec![0_usize; 2 * simulation.flows()];
    for packet in simulation.packets() {
        let point = simulation.direction(packet).entry();
        tallies[packet.flow as usize].add(simulation.seen_at(packet, point));
        delivered[packet.flow as usize] += usize::from(packet.true_delay().is_some());
    }
    let mut delays = delays_by_flow(simulation, &delivered);
    let mut rest = delays.as_mut_slice();
    let mut estimates = Vec::new();
    for ((flow, tally), count) in (0_u32..).zip(tallies).zip(delivered) {
        let (own, others) = rest.split_at_mut(count);
        rest = others;
        estimates.extend(tally.conclude(Scope::Flow(simulation.flow_key(flow)), own));
    }
    estimates
}

/// The delays of all flows, flow after flow: a counting sort.
fn delays_by_flow(simulation: &Simulation, delivered: &[usize]) -> Vec<Delay> {
    let mut next: Vec<usize> = Vec::with_capacity(delivered.len());
    let mut total = 0;
    for &count in delivered {
        next.push(total);
        total += count;
    }
    let mut delays = vec![Delay::ZERO; total];
    for packet in simulation.packets() {
        if let Some(delay) = simulation.observed_delay(packet) {
            let place = &mut next[packet.flow as usize];
            delays[*place] = delay;
            *place += 1;
        }
    }
    delays
}

/// Sorts the delays. The deviation has the population form, in two passes: the first finds the
/// mean, the second the squares around it, so that a clock offset of years costs no precision.
fn summarise(delays: &mut [Delay]) -> Option<DelayEstimate> {
    delays.sort_unstable();
    let order = OrderStatistics::of_sorted(delays)?;
    let count = delays.len() as u64;
    let sum_ns = delays.iter().map(|delay| i128::from(delay.as_nanos())).sum();
    let mut estimate = DelayEstimate {
        count,
        sum_ns,
        deviation_ns: None,
        half_width_ns: Some(0.0),
        order: Some(order),
        order_range: None,
    };
    let centre = estimate.mean();
    let (mut first, mut second) = (0.0, 0.0);
    for &delay in delays.iter() {
        let distance = (delay - centre).as_nanos() as f64;
        first += distance;
        second += distance * distance;
    }
    // The centre is rounded to whole nanoseconds; `first` makes up for that.
    let (mean_off, mean_square) = (first / count as f64, second / count as f64);
    estimate.deviation_ns = Some((mean_square - mean_off * mean_off).max(0.0).sqrt());
    Some(estimate)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Mean and deviation of delays with and without a clock offset of years.
    #[track_caller]
    fn check(delays_ns: &[i64], mean_ns: i64, deviation_ns: f64) {
        for offset_ns in [0, 100_000_000_000_000_000, -100_000_000_000_000_000] {
            let mut delays: Vec<Delay> =
                delays_ns.iter().map(|delay| Delay::from_nanos(delay + offset_ns)).collect();
            let summary = summarise(&mut delays).unwrap();
            assert_eq!(summary.mean().as_nanos(), mean_ns + offset_ns);
            assert!((summary.deviation_ns.unwrap() - deviation_ns).abs() < 1e-9);
        }
    }

    #[test]
    fn deviations_are_of_the_population_and_exact() {
        check(&[5], 5, 0.0);
        check(&[0, 1], 1, 0.5);
        check(&[2, 4, 4, 4, 5, 5, 7, 9], 5, 2.0);
        check(&[-3, 3], 0, 3.0);
        assert!(summarise(&mut []).is_none());
    }
}
