//! How long packets take to cross the segment.
//!
//! A model is text and numbers; a [`DelayProcess`] is a model at work on one direction of one
//! segment. Neither knows of propagation, random loss, reordering or clocks, which come on top.

mod independent;
mod per_flow;
mod queue;
mod red;
mod spec;
#[cfg(test)]
mod tests;

use crate::packet::LENGTH_MAX;
use crate::random::{Purpose, Stream};
use crate::spec::{RangeError, require, require_positive, require_share};
use twixt_model::quantity::{BitRate, Nanoseconds};

use per_flow::PerFlow;
use queue::Queue;
use red::EarlyDetection;

/// The longest queue there can be, in packets.
pub const QUEUE_MAX: u32 = 10_000_000;

/// How long packets take to cross the segment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum DelayModel {
    /// All equally long.
    Constant {
        /// How long.
        delay: Nanoseconds,
    },
    /// Independent from packet to packet, with distribution function
    /// 1 - exp(-(x / scale)^shape).
    Weibull {
        /// Below 1: a longer tail than the exponential's.
        shape: f64,
        /// Exceeded by 1 / e of the packets.
        scale: Nanoseconds,
    },
    /// Independent from packet to packet, with distribution function 1 - (scale / x)^shape.
    Pareto {
        /// The smaller, the longer the tail.
        shape: f64,
        /// The smallest delay.
        scale: Nanoseconds,
    },
    /// Each flow has its own mean delay, around which its packets vary.
    PerFlow {
        /// Median of the flows' means, which are log-normal.
        median: Nanoseconds,
        /// Deviation of the logarithm of the flows' means.
        spread: f64,
        /// Deviation of a flow's packets relative to their mean; they are log-normal too.
        jitter: f64,
    },
    /// As per-flow, but the flows have one of two medians.
    Bimodal {
        /// Share of the flows that have the first median.
        fraction: f64,
        /// The first median.
        first: Nanoseconds,
        /// The second median.
        second: Nanoseconds,
        /// Deviation of the logarithm of the flows' means.
        spread: f64,
        /// Deviation of a flow's packets relative to their mean.
        jitter: f64,
    },
    /// A queue that loses what finds it full. Delay is waiting plus transmission.
    DropTail {
        /// How fast it is emptied.
        drain: BitRate,
        /// Packets that it holds, the one in transmission included.
        queue: u32,
    },
    /// A queue with random early detection.
    Red(Red),
}

/// Random early detection as Floyd and Jacobson describe it ("Random early detection gateways
/// for congestion avoidance", IEEE/ACM ToN 1(4), 1993): spread evenly by counting, with decay of
/// the average in idle times, everything lost once the average exceeds `max`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Red {
    /// How fast the queue is emptied.
    pub drain: BitRate,
    /// Packets that it holds, the one in transmission included.
    pub queue: u32,
    /// Average length in packets from which on packets are lost early.
    pub min: f64,
    /// Average length in packets from which on every packet is lost.
    pub max: f64,
    /// Weight of the present length in the average.
    pub weight: f64,
    /// Probability of loss just below `max`, before spreading.
    pub max_p: f64,
}

impl DelayModel {
    pub(crate) fn validate(&self) -> Result<(), RangeError> {
        match *self {
            Self::Constant { delay } => {
                require(delay.0 >= 0, "delay", delay, "0 or more")?;
                require_length("delay", delay)
            }
            Self::Weibull { shape, scale } | Self::Pareto { shape, scale } => {
                require_positive("shape of the delay", shape)?;
                require_time("scale of the delay", scale)
            }
            Self::PerFlow { median, spread, jitter } => {
                require_time("median of the delay", median)?;
                require_variation(spread, jitter)
            }
            Self::Bimodal { fraction, first, second, spread, jitter } => {
                require_share("fraction of the flows", fraction)?;
                require_time("first median of the delay", first)?;
                require_time("second median of the delay", second)?;
                require_variation(spread, jitter)
            }
            Self::DropTail { drain, queue } => require_queue(drain, queue),
            Self::Red(red) => red.validate(),
        }
    }
}

impl Red {
    fn validate(&self) -> Result<(), RangeError> {
        require_queue(self.drain, self.queue)?;
        require_positive("min of the queue", self.min)?;
        let above = self.max > self.min && self.max <= f64::from(QUEUE_MAX);
        require(above, "max of the queue", self.max, "above min and at most 10000000")?;
        let good = self.weight > 0.0 && self.weight <= 1.0;
        require(good, "weight of the queue", self.weight, "above 0 and at most 1")?;
        require_share("max-p of the queue", self.max_p)
    }
}

/// Delays of at most a day: their sums then fit wherever they are added.
pub(crate) const DELAY_MAX_NS: i64 = 86_400 * 1_000_000_000;

const LARGEST_PACKET_BITS: u64 = LENGTH_MAX as u64 * 8;
const QUEUE_MAX_SECONDS: u64 = 366 * 86_400;

pub(crate) fn require_length(field: &'static str, time: Nanoseconds) -> Result<(), RangeError> {
    require(time.0 <= DELAY_MAX_NS, field, time, "at most a day")
}

fn require_time(field: &'static str, time: Nanoseconds) -> Result<(), RangeError> {
    require(time.0 > 0, field, time, "positive")?;
    require_length(field, time)
}

fn require_variation(spread: f64, jitter: f64) -> Result<(), RangeError> {
    require((0.0..=10.0).contains(&spread), "spread of the delay", spread, "between 0 and 10")?;
    require((0.0..=100.0).contains(&jitter), "jitter of the delay", jitter, "between 0 and 100")
}

fn require_queue(drain: BitRate, queue: u32) -> Result<(), RangeError> {
    require(drain.0 >= 1000, "drain of the queue", drain, "1kbit or more")?;
    require((1..=QUEUE_MAX).contains(&queue), "length of the queue", queue, "1 to 10000000")?;
    let longest_seconds = u64::from(queue) * LARGEST_PACKET_BITS / drain.0;
    let range = "short enough to be emptied within a year";
    require(longest_seconds <= QUEUE_MAX_SECONDS, "length of the queue", queue, range)
}

/// A packet that wants to cross.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    /// When it comes; never earlier than the one before.
    pub(crate) time_ns: i64,
    pub(crate) flow: u32,
    pub(crate) bytes: u32,
}

/// The streams that the two directions of a segment draw from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DelayPurposes {
    flow: Purpose,
    packet: Purpose,
}

pub(crate) const FORWARD: DelayPurposes =
    DelayPurposes { flow: Purpose::ForwardFlowDelay, packet: Purpose::ForwardDelay };
pub(crate) const RETURN: DelayPurposes =
    DelayPurposes { flow: Purpose::ReturnFlowDelay, packet: Purpose::ReturnDelay };

/// A delay model at work.
pub(crate) struct DelayProcess {
    stream: Stream,
    kind: Kind,
}

enum Kind {
    Constant(i64),
    Weibull { shape: f64, scale_ns: f64 },
    Pareto { shape: f64, scale_ns: f64 },
    PerFlow(PerFlow),
    DropTail(Queue),
    Red(EarlyDetection),
}

impl DelayProcess {
    /// For `flows` flows.
    pub(crate) fn new(model: &DelayModel, seed: u64, purposes: DelayPurposes, flows: u32) -> Self {
        let mut flow_stream = Stream::new(seed, purposes.flow);
        let kind = match *model {
            DelayModel::Constant { delay } => Kind::Constant(delay.0),
            DelayModel::Weibull { shape, scale } => {
                Kind::Weibull { shape, scale_ns: scale.as_f64() }
            }
            DelayModel::Pareto { shape, scale } => Kind::Pareto { shape, scale_ns: scale.as_f64() },
            DelayModel::PerFlow { median, spread, jitter } => {
                let medians = per_flow::Medians::one(median);
                Kind::PerFlow(PerFlow::new(medians, spread, jitter, flows, &mut flow_stream))
            }
            DelayModel::Bimodal { fraction, first, second, spread, jitter } => {
                let medians = per_flow::Medians { fraction, first, second };
                Kind::PerFlow(PerFlow::new(medians, spread, jitter, flows, &mut flow_stream))
            }
            DelayModel::DropTail { drain, queue } => Kind::DropTail(Queue::new(drain, queue)),
            DelayModel::Red(red) => Kind::Red(EarlyDetection::new(red)),
        };
        Self { stream: Stream::new(seed, purposes.packet), kind }
    }

    /// How long the packet takes, in nanoseconds; `None` when it is lost.
    pub(crate) fn cross(&mut self, entry: Entry) -> Option<i64> {
        let stream = &mut self.stream;
        match &mut self.kind {
            Kind::Constant(delay_ns) => Some(*delay_ns),
            Kind::Weibull { shape, scale_ns } => {
                Some(whole(independent::weibull(*shape, *scale_ns, stream)))
            }
            Kind::Pareto { shape, scale_ns } => {
                Some(whole(independent::pareto(*shape, *scale_ns, stream)))
            }
            Kind::PerFlow(flows) => Some(whole(flows.draw(entry.flow, stream))),
            Kind::DropTail(queue) => queue.cross(entry.time_ns, entry.bytes),
            Kind::Red(queue) => queue.cross(entry, stream),
        }
    }
}

/// To whole nanoseconds. A tail without end is cut at a day.
fn whole(delay_ns: f64) -> i64 {
    (delay_ns.round() as i64).min(DELAY_MAX_NS)
}
