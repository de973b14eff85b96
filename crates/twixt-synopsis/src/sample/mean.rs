//! The mean of sampled packets, and how sure it is.
//!
//! What is drawn is a digest, not a packet: identical packets are sampled all or not at all. So a sample
//! consists of clusters, most of them of one packet. A cluster that is large for the sample was drawn
//! by chance, but stands for no packets other than its own; and one that is larger than the budget is
//! never in the sample. The number of all packets shows that, as the sample is then too small for them, and
//! so does the number in each part of all digests.

use twixt_model::{DelayEstimate, PacketDigest, SampleLevel};

use crate::exact::matching::Fate;
use crate::heartbeats::Excluded;
use crate::interval::student95;
use crate::sums::Usable;
use crate::tail::{self, Widening};

/// The mean of fewer sampled packets, or digests, says nothing.
const CLUSTERS_MIN: f64 = 5.0;
/// A cluster of more packets than this share of the sample stands for itself only.
const LARGE_SHARE: f64 = 0.1;
/// And of more than so many.
const LARGE_MIN: u64 = 5;
/// The sample is too small for the number of packets by so many standard errors.
const HIDDEN_ERRORS: f64 = 5.0;
/// With a larger share of packets that cannot be in the sample there is no mean.
const HIDDEN_MOST: f64 = 0.5;

/// What a sample was drawn from.
pub(super) struct Population {
    /// Packets that passed upstream, where that is known.
    pub(super) packets: Option<u64>,
    /// Identical packets of theirs that are not in the sample, as the parts of all digests show.
    pub(super) beyond: f64,
    /// Identical packets that are not in the sample, of these packets or of others.
    pub(super) elsewhere: f64,
    pub(super) level: SampleLevel,
    /// How much wider intervals are for the tails of delays.
    pub(super) tail: Widening,
}

impl Population {
    /// Identical packets that are not in the sample.
    fn hidden(&self, rest: &Rest, large: &[&Cluster]) -> f64 {
        let missing = self.packets.map_or(0.0, |packets| {
            let own: u64 = large.iter().map(|cluster| cluster.sent).sum();
            rest.hidden(packets.saturating_sub(own) as f64, self.level.share())
        });
        missing.max(self.beyond)
    }
}

/// Packets of one digest.
#[derive(Clone, Copy, Debug)]
struct Cluster {
    digest: PacketDigest,
    sent: u64,
    /// Those whose delay is known.
    measured: u64,
    sum_ns: i128,
}

/// Sampled packets of one scope.
#[derive(Clone, Debug, Default)]
pub(super) struct Clusters {
    all: Vec<Cluster>,
    delays_ns: Vec<i64>,
    /// By how much the sum may be wrong, since identical packets can be matched in several ways.
    doubt_ns: f64,
    /// Packets that arrived, nothing tells when.
    unmeasured: Excluded,
}

impl Clusters {
    /// Adds a packet; those of one digest follow each other.
    pub(super) fn add(&mut self, digest: PacketDigest, fate: Fate) {
        if self.all.last().is_none_or(|last| last.digest != digest) {
            self.all.push(Cluster { digest, sent: 0, measured: 0, sum_ns: 0 });
        }
        let cluster = self.all.last_mut().expect("one was added");
        cluster.sent += 1;
        match fate {
            Fate::Measured(matched) => {
                let delay_ns = matched.delay.as_nanos();
                cluster.measured += 1;
                cluster.sum_ns += i128::from(delay_ns);
                self.delays_ns.push(delay_ns);
                let doubt = (matched.delay - matched.least).max(matched.most - matched.delay);
                self.doubt_ns += doubt.as_nanos() as f64;
            }
            Fate::Arrived(apart) => self.unmeasured.add(1, apart),
            Fate::Lost => {}
        }
    }

    /// How far delays are from their mean; of too few packets nothing.
    pub(super) fn distances(&self) -> impl Iterator<Item = f64> {
        let enough = self.delays_ns.len() as f64 >= CLUSTERS_MIN;
        let delays: &[i64] = if enough { &self.delays_ns } else { &[] };
        let first_ns = delays.first().copied().unwrap_or(0);
        let relative = move |delay_ns: &i64| delay_ns.wrapping_sub(first_ns) as f64;
        let mean = delays.iter().map(relative).sum::<f64>() / delays.len().max(1) as f64;
        delays.iter().map(move |delay_ns| relative(delay_ns) - mean)
    }

    /// The mean of all packets with its interval, and what is not known.
    pub(super) fn mean(&self, population: &Population) -> (Option<DelayEstimate>, Option<String>) {
        if population.level == SampleLevel::ALL {
            return self.mean_of_all();
        }
        let (large, others) = self.split(population.packets);
        let rest = Rest::of(&others, self.reference_ns());
        if rest.clusters < CLUSTERS_MIN {
            return (None, Some(self.why_too_few(&rest)));
        }
        let hidden = population.hidden(&rest, &large);
        let mut delay = self.weighted(&rest, &large, population);
        let doubt_ns = self.doubt_ns / delay.count as f64;
        let width = delay.half_width_ns.map(|width| width * population.tail.factor + doubt_ns);
        let elsewhere = population.elsewhere;
        delay.half_width_ns =
            width.filter(|_| hidden == 0.0 && elsewhere == 0.0 && self.unmeasured.packets == 0);
        let all = population.packets.unwrap_or_default() as f64;
        let who =
            || format!("some {hidden:.0} packets are identical to others, and not in the sample");
        match hidden {
            0.0 if self.unmeasured.packets > 0 => self.without_unmeasured(delay),
            0.0 if elsewhere > 0.0 => {
                let reason = format!(
                    "no interval: some {elsewhere:.0} packets, of these or of others, are identical to \
                     others, and not in the sample"
                );
                (Some(delay), Some(reason))
            }
            0.0 => (Some(delay), population.tail.is_heavy.then(|| tail::HEAVY.to_owned())),
            _ if hidden > HIDDEN_MOST * all => (None, Some(format!("no mean: {}", who()))),
            _ => {
                let reason =
                    format!("no interval: {}; mean and percentiles are those of the others", who());
                (Some(delay), Some(reason))
            }
        }
    }

    /// The mean of all packets, the sum of whose delays is known relative to the reference. So many identical ones that
    /// are not in the sample may have any part in it.
    pub(super) fn of_sums(
        &self,
        all: Usable,
        hidden: f64,
    ) -> (Option<DelayEstimate>, Option<String>) {
        let reference = i128::from(self.reference_ns()) * i128::from(all.packets);
        let delay = DelayEstimate {
            count: all.packets,
            sum_ns: reference.saturating_add(all.delay_sum_ns.into()),
            deviation_ns: self
                .deviation_ns(self.delays_ns.len() as f64 - 1.0)
                .filter(|_| hidden == 0.0),
            half_width_ns: Some(0.0),
            order: None,
            order_range: None,
        };
        let reason = (hidden > 0.0).then(|| {
            format!(
                "no deviation: some {hidden:.0} packets are identical to others, and not in the sample; \
                 percentiles are those of the others"
            )
        });
        (Some(delay), reason)
    }

    /// Every packet is in the sample: nothing is uncertain but which of identical packets is which.
    fn mean_of_all(&self) -> (Option<DelayEstimate>, Option<String>) {
        let clusters: Vec<&Cluster> = self.all.iter().collect();
        let rest = Rest::of(&clusters, self.reference_ns());
        let deviation_ns = self.deviation_ns(self.delays_ns.len() as f64);
        let half_width_ns = Some(self.doubt_ns / rest.measured);
        let delay = DelayEstimate { deviation_ns, half_width_ns, ..rest.delay() };
        match self.unmeasured.packets {
            0 => (Some(delay), None),
            _ => self.without_unmeasured(delay),
        }
    }

    /// What is known if some packets arrived, nothing tells when.
    fn without_unmeasured(&self, delay: DelayEstimate) -> (Option<DelayEstimate>, Option<String>) {
        let unmeasured = self.unmeasured.packets;
        let is_hidden = self.unmeasured.hides(delay.mean_ns(), delay.count + unmeasured);
        let missing = if is_hidden { "mean" } else { "interval" };
        let reason =
            format!("no {missing}: {unmeasured} identical packets arrived, nothing tells which");
        let delay = DelayEstimate { half_width_ns: None, ..delay };
        ((!is_hidden).then_some(delay), Some(reason))
    }

    /// Clusters that stand for themselves only, and all others. Without the number of all packets there
    /// is no telling what themselves are.
    fn split(&self, packets: Option<u64>) -> (Vec<&Cluster>, Vec<&Cluster>) {
        let sent: u64 = self.all.iter().map(|cluster| cluster.sent).sum();
        let is_large = |cluster: &&Cluster| {
            let share = cluster.sent as f64 / sent as f64;
            packets.is_some() && cluster.sent > LARGE_MIN && share > LARGE_SHARE
        };
        self.all.iter().partition(is_large)
    }

    /// Large clusters by their own packets, the others for all the rest.
    fn weighted(&self, rest: &Rest, large: &[&Cluster], population: &Population) -> DelayEstimate {
        let unmeasured = 1.0 - population.level.share();
        let quantile = student95(rest.clusters - 1.0) * tail::few(rest.clusters);
        let mut half_width_ns = quantile * (rest.variance * unmeasured).sqrt();
        let mut delay = rest.delay();
        if let (Some(packets), false) = (population.packets, large.is_empty()) {
            let reference_ns = self.reference_ns();
            let own = Rest::of(large, reference_ns);
            let sent: u64 = large.iter().map(|cluster| cluster.sent).sum();
            let arriving = rest.measured / rest.sent.max(1.0);
            let others = packets.saturating_sub(sent) as f64 * arriving;
            let share = others / (others + own.measured).max(1.0);
            let mean_ns = rest.mean_ns * share + own.mean_ns * (1.0 - share);
            delay.count += own.measured as u64;
            let sum_ns = (mean_ns * delay.count as f64).round() as i128;
            delay.sum_ns = sum_ns + i128::from(reference_ns) * i128::from(delay.count);
            half_width_ns *= share;
        }
        let deviation_ns = self.deviation_ns(self.delays_ns.len() as f64 - 1.0);
        DelayEstimate { deviation_ns, half_width_ns: Some(half_width_ns), ..delay }
    }

    fn why_too_few(&self, rest: &Rest) -> String {
        let used = self.delays_ns.len();
        match (used as f64) < CLUSTERS_MIN {
            true => format!(
                "only {used} of the sampled packets were seen downstream, a mean needs {CLUSTERS_MIN}"
            ),
            false => format!(
                "no mean: the {used} sampled packets repeat so few different ones that they tell no \
                 more than {:.0} would, a mean needs {CLUSTERS_MIN}",
                rest.clusters
            ),
        }
    }

    /// Sums are relative to it, so that a clock offset of years costs no precision.
    pub(super) fn reference_ns(&self) -> i64 {
        self.delays_ns.iter().copied().min().unwrap_or(0)
    }

    fn deviation_ns(&self, freedom: f64) -> Option<f64> {
        let reference_ns = self.reference_ns();
        let relative = |delay_ns: &i64| delay_ns.wrapping_sub(reference_ns) as f64;
        let mean = self.delays_ns.iter().map(relative).sum::<f64>() / self.delays_ns.len() as f64;
        let squares: f64 = self.delays_ns.iter().map(|one| (relative(one) - mean).powi(2)).sum();
        (freedom > 0.0).then(|| (squares / freedom).sqrt())
    }
}

/// What clusters tell together.
struct Rest {
    sent: f64,
    sent_squares: f64,
    measured: f64,
    sum_ns: i128,
    /// Relative to the reference.
    mean_ns: f64,
    /// As many clusters of equal size would tell as much.
    clusters: f64,
    /// Of the mean.
    variance: f64,
}

impl Rest {
    fn of(clusters: &[&Cluster], reference_ns: i64) -> Self {
        let total = |of: fn(&Cluster) -> f64| clusters.iter().map(|&one| of(one)).sum::<f64>();
        let measured = total(|one| one.measured as f64);
        let squares = total(|one| (one.measured as f64).powi(2));
        let relative = |one: &Cluster| {
            (one.sum_ns - i128::from(reference_ns) * i128::from(one.measured)) as f64
        };
        let mean_ns = clusters.iter().map(|&one| relative(one)).sum::<f64>() / measured.max(1.0);
        let distance = |one: &Cluster| relative(one) - mean_ns * one.measured as f64;
        let distances: f64 = clusters.iter().map(|&one| distance(one).powi(2)).sum();
        let effective = if squares > 0.0 { measured * measured / squares } else { 0.0 };
        Self {
            sent: total(|one| one.sent as f64),
            sent_squares: total(|one| (one.sent as f64).powi(2)),
            measured,
            sum_ns: clusters.iter().map(|one| one.sum_ns).sum(),
            mean_ns,
            clusters: effective,
            variance: distances / (measured * measured) * effective / (effective - 1.0).max(1e-9),
        }
    }

    fn delay(&self) -> DelayEstimate {
        DelayEstimate {
            count: self.measured as u64,
            sum_ns: self.sum_ns,
            deviation_ns: None,
            half_width_ns: None,
            order: None,
            order_range: None,
        }
    }

    /// Of so many packets, those that had no chance to be sampled at this rate: more are missing than
    /// chance explains.
    fn hidden(&self, packets: f64, share: f64) -> f64 {
        let size = self.sent_squares / self.sent.max(1.0);
        let expected = packets * share;
        let error = (expected * size).sqrt();
        let missing = expected - self.sent;
        if missing > HIDDEN_ERRORS * error { missing / share } else { 0.0 }
    }
}
