//! One link: queues, propagation, loss and reordering.

use twixt_model::mix;

use super::{LinkConfig, LinkCrossing, LinkStep, LossSpell};
use crate::delay::{DelayProcess, Entry, FORWARD};
use crate::loss::LossProcess;
use crate::random::{Purpose, Stream};
use crate::reorder::prolongation_ns;
use twixt_model::quantity::Nanoseconds;

/// A link at work.
pub(super) struct Link {
    /// By class.
    queues: Vec<DelayProcess>,
    propagation_ns: i64,
    loss: LossProcess,
    loss_stream: Stream,
    spells: Vec<LossSpell>,
    reorder_rate: f64,
    reorder_extent: Nanoseconds,
    reorder_stream: Stream,
    /// What has not yet reached the other end, in no order: as much as is in the queues and on the way.
    under_way: Vec<LinkCrossing>,
}

impl std::fmt::Debug for Link {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Link").field("under_way", &self.under_way.len()).finish()
    }
}

impl Link {
    pub(super) fn new(config: &LinkConfig, network_seed: u64, index: u64) -> Self {
        let seed = mix(network_seed ^ mix(index));
        let queue = |(queue, class): (&super::QueueConfig, u64)| {
            DelayProcess::new(&queue.model(), mix(seed ^ class), FORWARD, 0)
        };
        let mut loss_stream = Stream::new(seed, Purpose::Loss);
        Self {
            queues: config.queues.iter().zip(0..).map(queue).collect(),
            propagation_ns: config.propagation.0,
            loss: LossProcess::new(&config.loss, &mut loss_stream),
            loss_stream,
            spells: config.spells.clone(),
            reorder_rate: config.reorder_rate,
            reorder_extent: config.reorder_extent,
            reorder_stream: Stream::new(seed, Purpose::Reorder),
            under_way: Vec::new(),
        }
    }

    /// Takes what enters until a time, in any order.
    pub(super) fn advance(&mut self, mut entered: Vec<LinkCrossing>, until_ns: i64) -> LinkStep {
        entered.sort_unstable_by_key(LinkCrossing::order);
        for crossing in &mut entered {
            crossing.left_ns = self.cross(crossing);
        }
        self.under_way.extend(entered.iter().filter(|crossing| crossing.left_ns.is_some()));
        let has_left =
            |crossing: &LinkCrossing| crossing.left_ns.is_some_and(|left_ns| left_ns < until_ns);
        let mut left: Vec<LinkCrossing> =
            self.under_way.extract_if(.., |crossing| has_left(crossing)).collect();
        left.sort_unstable_by_key(|crossing| (crossing.left_ns, crossing.order()));
        LinkStep { entered, left }
    }

    /// When the packet reaches the other end; `None` if it is lost.
    fn cross(&mut self, crossing: &LinkCrossing) -> Option<i64> {
        let LinkCrossing { packet, entered_ns, .. } = *crossing;
        // Drawn for every packet, so that a spell or a full queue does not shift what happens later.
        let is_struck = self.loss.strikes(&mut self.loss_stream);
        let spell_draw = self.loss_stream.unit();
        let extra_ns =
            prolongation_ns(self.reorder_rate, self.reorder_extent, &mut self.reorder_stream);
        let entry = Entry { time_ns: entered_ns, flow: 0, bytes: packet.length() };
        let waiting_ns = self.queues[packet.class].cross(entry)?;
        let is_lost = is_struck || spell_draw < self.spell_rate(entered_ns, packet.class);
        (!is_lost).then_some(entered_ns + waiting_ns + self.propagation_ns + extra_ns)
    }

    /// What more than usual is lost.
    fn spell_rate(&self, time_ns: i64, class: usize) -> f64 {
        let concerns = |spell: &&LossSpell| {
            spell.during_ns.contains(&time_ns) && spell.class.is_none_or(|of| of == class)
        };
        self.spells.iter().filter(concerns).map(|spell| spell.rate).fold(0.0, f64::max)
    }
}
