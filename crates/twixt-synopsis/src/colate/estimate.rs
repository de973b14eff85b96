//! The combined result of two vectors, about all traffic and about flows.

use twixt_model::{DelayEstimate, Estimate};

use super::Colate;
use super::alone::Unlisted;
use super::deviation::{Deviation, deviation};
use super::left_out::LeftOut;
use super::single::{Means, by_equation, by_median};
use crate::joint::{Options, Solution};
use crate::question::{KnownFlow, Listing, Question};
use crate::sketch::{
    self, Answer, Caution, Estimated, Layout, NO_INTERVAL, Place, Size, Sketch, Sum, Table, lost,
    strays_of,
};
use crate::synopsis::Pair;

pub(super) fn estimate(pair: Pair<'_, Colate>, question: &Question<'_>) -> Vec<Estimate> {
    sketch::estimate(pair, question, question.flows, |table, flows| {
        let (sizes, by_default) = by_default(table, flows, question.listing);
        let found = match question.estimator {
            Some("median") => one_by_one(table, flows, &sizes, &by_default, by_median),
            Some("paper") => one_by_one(table, flows, &sizes, &by_default, by_equation),
            _ => by_default,
        };
        // Packets of flows that are not listed are no identical ones.
        let is_whole = question.listing != Listing::Named;
        let left_out = is_whole.then(|| LeftOut::of(table, flows, &sizes));
        let answers = flows.iter().zip(&sizes).zip(found).map(|((flow, size), found)| {
            let answer = answer(table, flow, size, found);
            let left_out = left_out.as_ref().map_or(0.0, |left_out| left_out.of_flow(flow, size));
            answer.allow_for(left_out)
        });
        answers.collect()
    })
}

/// The mean delay of a flow, relative to the reference.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct FlowMean {
    pub(super) mean_ns: f64,
    /// Half of the 95 % interval, where that is known.
    pub(super) half_width_ns: Option<f64>,
}

impl FlowMean {
    /// The same mean, with an interval that contains that of another estimator, and its own. The counters of one
    /// flow do not show what other flows do to them: if they are equally wrong, they do not scatter.
    fn around(self, other: Self) -> Self {
        let apart_ns = (self.mean_ns - other.mean_ns).abs();
        let own_ns = self.half_width_ns.unwrap_or(0.0);
        let half_width_ns = other.half_width_ns.map(|half_ns| own_ns.max(half_ns + apart_ns));
        Self { half_width_ns, ..self }
    }
}

/// A flow that has at least this share of the packets in its counters has their losses. Others
/// may be packets that never were to pass the other point: with much fewer than this there is no
/// telling.
const DOMINANCE: f64 = 0.9;

/// Sizes and means of flows: all at once, or one by one if most packets are of unlisted flows.
fn by_default(
    table: &Table<'_, Colate>,
    flows: &[KnownFlow],
    listing: Listing,
) -> (Vec<Size>, Vec<Option<FlowMean>>) {
    let unlisted = Unlisted::of(table, flows);
    if unlisted.prevail() {
        let mut sizes: Vec<Size> = flows.iter().map(|flow| unlisted.size(flow)).collect();
        if listing == Listing::Named {
            unlisted.tell_seen(flows, &mut sizes);
        }
        let found = flows.iter().zip(&sizes).map(|(flow, size)| unlisted.solve(flow, size));
        let found = found.collect();
        return (sizes, found);
    }
    let estimated = sketch::sizes_of(table.config(), &table.upstream.counts(), flows, listing);
    let found = all_at_once(table, flows, &estimated);
    (estimated.sizes, found)
}

/// Every usable counter is one equation in the means of all flows.
fn all_at_once(
    table: &Table<'_, Colate>,
    flows: &[KnownFlow],
    Estimated { sizes, implants, clumping }: &Estimated,
) -> Vec<Option<FlowMean>> {
    let options = Options::default();
    let solved = sketch::solve(table, flows, sizes, *clumping, &options);
    let caution = Caution::of(table, flows, &solved, implants, &options);
    let found = |(size, solution): (&Size, &Option<Solution>)| {
        let solution = (*solution)?;
        let stated_ns = solution.half_width_ns;
        let half_width_ns = match caution.as_ref().filter(|_| !size.known) {
            Some(caution) => caution.half_width_ns(size.load, stated_ns)?,
            None => stated_ns,
        };
        let mean_ns = solved.common_ns + solution.mean_offset_ns;
        Some(FlowMean { mean_ns, half_width_ns: Some(half_width_ns) })
    };
    sizes.iter().zip(&solved.solutions).map(found).collect()
}

/// Every flow by its own counters.
fn one_by_one(
    table: &Table<'_, Colate>,
    flows: &[KnownFlow],
    sizes: &[Size],
    by_default: &[Option<FlowMean>],
    estimator: fn(&Means<'_>, Place, f64) -> Option<FlowMean>,
) -> Vec<Option<FlowMean>> {
    let means = Means::of(table, flows);
    let flows = flows.iter().zip(sizes).zip(by_default);
    let found = flows.map(|((flow, size), by_default)| {
        Some(estimator(&means, Place::of(flow), size.load)?.around((*by_default)?))
    });
    found.collect()
}

fn answer(
    table: &Table<'_, Colate>,
    flow: &KnownFlow,
    size: &Size,
    found: Option<FlowMean>,
) -> Answer {
    if !size.seen {
        return Answer::not_seen();
    }
    let (packets, place) = (size.load.round() as u64, Place::of(flow));
    let mut answer = Answer { packets, strays: strays_of(table, flow), ..Answer::default() };
    match lost(table, flow, size.known.then_some(packets), DOMINANCE) {
        Ok(lost) => answer.lost = Some(lost),
        Err(reason) => answer.reasons.push(reason),
    }
    let intact = intact_counters(table, place);
    let whole = table.config().per_flow();
    if intact.most < whole {
        let reason = format!("{} of {whole} counters usable", intact.most);
        answer.reasons.push(reason.into());
    }
    let Some(found) = found.filter(|_| packets > 0 && intact.share > 0.0) else {
        answer.reasons.push(match packets {
            0 => "no packets".into(),
            _ if intact.share > 0.0 => {
                "no delay: its packets cannot be distinguished from those of other flows".into()
            }
            _ => "no usable counter: packets were lost or added in all of them".into(),
        });
        return answer;
    };
    answer.used = ((intact.share * size.load).round() as u64).max(1);
    answer.delay = Some(delay(table, &answer, found));
    explain(&mut answer, table, (flow, size), found);
    answer
}

impl Answer {
    /// Some packets that may be its own are identical to each other, and in a counter that is not usable. They may have
    /// taken any time.
    fn allow_for(mut self, left_out: f64) -> Self {
        let stated = self.delay.as_mut().filter(|_| left_out > 0.0);
        if stated.and_then(|delay| delay.half_width_ns.take()).is_some() {
            let reason = format!(
                "no interval: some {left_out:.0} packets in counters with loss are identical to others, and \
                 left out; the mean is that of the others"
            );
            self.reasons.push(reason.into());
        }
        self
    }
}

fn delay(table: &Table<'_, Colate>, answer: &Answer, found: FlowMean) -> DelayEstimate {
    let delay_sum_ns = (found.mean_ns * answer.used as f64).round() as i128;
    let sum = Sum { packets: answer.used, delay_sum_ns };
    let delay = sum.delay(answer.used, table.reference_ns);
    DelayEstimate { half_width_ns: found.half_width_ns, ..delay }
}

/// Adds the deviation, and says why what is not known is not.
fn explain(
    answer: &mut Answer,
    table: &Table<'_, Colate>,
    (flow, size): (&KnownFlow, &Size),
    found: FlowMean,
) {
    let Some(delay) = &mut answer.delay else { return };
    match deviation(table, flow, size, found.mean_ns) {
        Deviation::Known(deviation_ns) => delay.deviation_ns = Some(deviation_ns),
        Deviation::Unknown(reason) => answer.reasons.push(reason.into()),
    }
    if delay.half_width_ns.is_none() {
        answer.reasons.push(NO_INTERVAL.into());
    }
}

/// Counters of a flow that saw the same packets at both ends.
struct Intact {
    /// In the vector that has most of them.
    most: u32,
    /// Of the flow's packets, in the vector that has most of those.
    share: f64,
}

fn intact_counters(table: &Table<'_, Colate>, place: Place) -> Intact {
    let config = table.config();
    let mut intact = Intact { most: 0, share: 0.0 };
    for (vector, rate) in config.sampling().iter().enumerate() {
        let cells = config.cells_of(place, vector);
        let agree = |cell: &usize| Colate::agree(table.upstream, table.downstream, *cell);
        let count = cells.filter(agree).count() as u32;
        intact.most = intact.most.max(count);
        let share = f64::from(count) / f64::from(config.per_flow()) * rate;
        intact.share = intact.share.max(share);
    }
    intact
}

#[cfg(test)]
mod tests;
