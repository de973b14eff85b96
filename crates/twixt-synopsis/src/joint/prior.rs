//! Flows about which the cells tell little, seen in the light of those about which they tell much.
//!
//! The best linear prediction draws such a flow to the mean of all flows. Where delays come in
//! groups (two paths, two queues), hardly any flow is there. The means of well-known flows show
//! the groups; what the cells tell of a flow is then weighed against each of them, and the middle
//! of what is left is the better answer: as many flows lie above as below. (Empirical Bayes with
//! a prior of many atoms.) All of it is relative: adding an offset to all delays adds it to all
//! answers.

use super::model::Model;
use super::posterior::HALF_WIDTH;
use super::{Size, Solution};

/// Flows of this many well-known ones show what delays there are ...
const KNOWN_MIN: usize = 60;
/// ... if what is unknown of them is at most this part of how flows vary.
const KNOWN_VARIANCE: f64 = 0.05;
/// Flows are reconsidered if more than this part is unknown.
const UNKNOWN_VARIANCE: f64 = 0.2;
/// Beyond this, the cells tell nothing of a flow.
const NOTHING_KNOWN: f64 = 0.95;
/// Groups that well-known flows are summed up in.
const ATOMS: usize = 48;
/// Intervals are made longer by this: atoms are no more than a sample of what means there are.
const CAUTION: f64 = 1.1;
/// What part of cases an interval holds.
const HELD: f64 = 0.95;
/// Half widths are found to this part of them, or to what so many steps bring.
const CLOSE_ENOUGH: f64 = 1e-3;
const STEPS_MAX: usize = 14;

/// Replaces solutions of which little is known.
pub(super) fn sharpen(solutions: &mut [Option<Solution>], sizes: &[Size], model: &Model) {
    let known = solutions.iter().flatten().filter(|solution| solution.unknown <= KNOWN_VARIANCE);
    let known = known.map(|solution| solution.mean_offset_ns);
    let Some(prior) = Prior::new(known.collect()) else { return };
    for (flow, (solution, size)) in solutions.iter_mut().zip(sizes).enumerate() {
        let Some(solution) = solution else { continue };
        if solution.unknown > UNKNOWN_VARIANCE {
            let seen = Seen::of(solution, model.common.mean_ns);
            let (mean_offset_ns, half_width_ns) =
                prior.posterior(&seen, model.within[flow] / size.least());
            *solution = Solution { mean_offset_ns, half_width_ns, sharpened: true, ..*solution };
        }
    }
}

/// What the cells alone tell of a flow: its mean, with a normal error of this variance.
struct Seen {
    mean_ns: f64,
    variance: f64,
}

impl Seen {
    /// Takes the pull towards the common mean out of a solution again.
    fn of(solution: &Solution, common_ns: f64) -> Self {
        let known_share = 1.0 - solution.unknown.min(NOTHING_KNOWN);
        let offset = solution.mean_offset_ns - common_ns;
        let variance = (solution.half_width_ns / HALF_WIDTH).powi(2) / known_share;
        let variance = if solution.unknown > NOTHING_KNOWN { f64::INFINITY } else { variance };
        Self { mean_ns: common_ns + offset / known_share, variance }
    }
}

/// What means there are.
struct Prior {
    atoms: Vec<Atom>,
}

#[derive(Clone, Copy)]
struct Atom {
    mean_ns: f64,
    variance: f64,
}

/// What one atom makes of a flow, and how likely it is.
struct Candidate {
    weight: f64,
    mean_ns: f64,
    deviation_ns: f64,
}

impl Prior {
    fn new(mut means: Vec<f64>) -> Option<Self> {
        if means.len() < KNOWN_MIN {
            return None;
        }
        means.sort_by(f64::total_cmp);
        let at = |share: f64| means[((share * means.len() as f64) as usize).min(means.len() - 1)];
        let step = 1.0 / ATOMS as f64;
        let atoms = (0..ATOMS).map(|index| {
            let middle = (index as f64 + 0.5) * step;
            let mean_ns = at(middle);
            // The nearer neighbour tells how close atoms are: the farther one may be of another
            // group, or a flow that is unlike all others.
            let spacing = (at(middle + step) - mean_ns).min(mean_ns - at((middle - step).max(0.0)));
            Atom { mean_ns, variance: spacing.powi(2).max(1.0) }
        });
        Some(Self { atoms: atoms.collect() })
    }

    /// Mean and half the length of its interval. `jitter` is the variance of the mean of a flow's packets around its own true mean: it makes
    /// intervals longer, and moves no answer.
    fn posterior(&self, seen: &Seen, jitter: f64) -> (f64, f64) {
        let mut candidates: Vec<Candidate> =
            self.atoms.iter().map(|atom| atom.candidate(seen, jitter)).collect();
        let total: f64 = candidates.iter().map(|candidate| candidate.weight).sum();
        if total <= 0.0 {
            return (seen.mean_ns, HALF_WIDTH * seen.variance.sqrt());
        }
        candidates.sort_by(|one, other| one.mean_ns.total_cmp(&other.mean_ns));
        let mut below = 0.0;
        let middle = candidates.iter().find(|candidate| {
            below += candidate.weight;
            below >= total / 2.0
        });
        let mean_offset_ns = middle.expect("all of them are half of it and more").mean_ns;
        (mean_offset_ns, CAUTION * half_width(&candidates, total, mean_offset_ns))
    }
}

impl Atom {
    fn candidate(&self, seen: &Seen, jitter: f64) -> Candidate {
        if seen.variance.is_infinite() {
            let deviation_ns = (self.variance + jitter).sqrt();
            return Candidate { weight: 1.0, mean_ns: self.mean_ns, deviation_ns };
        }
        let sum = self.variance + seen.variance;
        let off = seen.mean_ns - self.mean_ns;
        let mean_ns = self.mean_ns + off * self.variance / sum;
        let left = self.variance * seen.variance / sum;
        let weight = (-0.5 * off * off / sum).exp() / sum.sqrt();
        Candidate { weight, mean_ns, deviation_ns: (left + jitter.min(seen.variance)).sqrt() }
    }
}

/// So far from the answer lies the truth in 95 of 100 cases.
fn half_width(candidates: &[Candidate], total: f64, answer_ns: f64) -> f64 {
    let reach = |candidate: &Candidate| {
        (candidate.mean_ns - answer_ns).abs() + 4.0 * candidate.deviation_ns
    };
    let (mut low, mut high) = (0.0, candidates.iter().map(reach).fold(0.0, f64::max));
    let mut middle = high / 2.0;
    for _ in 0..STEPS_MAX {
        let (held, density) = within(candidates, total, answer_ns, middle);
        if held < HELD {
            low = middle;
        } else {
            high = middle;
        }
        // Newton's step where it stays between the bounds, their middle where not.
        let step = middle + (HELD - held) / density;
        let next = if step > low && step < high { step } else { (low + high) / 2.0 };
        if (next - middle).abs() <= CLOSE_ENOUGH * next {
            return next;
        }
        middle = next;
    }
    high
}

/// What part of all candidates lies that close to the answer, and how fast that grows.
fn within(candidates: &[Candidate], total: f64, answer_ns: f64, half_width: f64) -> (f64, f64) {
    let (mut held, mut density) = (0.0, 0.0);
    for &Candidate { weight, mean_ns, deviation_ns } in candidates {
        let off = mean_ns - answer_ns;
        let below = normal((half_width - off) / deviation_ns);
        let above = normal((half_width + off) / deviation_ns);
        held += weight * (below + above - 1.0);
        density += weight * (slope(below) + slope(above)) / deviation_ns;
    }
    (held / total, density / total)
}

/// Steepness of the logistic function that is closest to the normal distribution.
const STEEPNESS: f64 = 1.702;

/// The normal distribution, to a hundredth: Tocher's logistic approximation.
fn normal(deviations: f64) -> f64 {
    1.0 / (1.0 + (-STEEPNESS * deviations).exp())
}

/// How fast it grows where it has come to `part`.
fn slope(part: f64) -> f64 {
    STEEPNESS * part * (1.0 - part)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two thirds of 90 well-known flows lie near 200, the others near 1500.
    fn prior() -> Prior {
        let means = (0..90).map(|n| f64::from(n % 10) + if n < 60 { 200.0 } else { 1500.0 });
        Prior::new(means.collect()).unwrap()
    }

    #[track_caller]
    fn check(
        mean_ns: f64,
        deviation_ns: f64,
        answer: std::ops::Range<f64>,
        width: std::ops::Range<f64>,
    ) {
        let found = prior().posterior(&Seen { mean_ns, variance: deviation_ns.powi(2) }, 0.0);
        assert!(answer.contains(&found.0), "{found:?}");
        assert!(width.contains(&found.1), "{found:?}");
    }

    #[test]
    fn a_flow_of_which_nothing_is_known_is_where_most_are() {
        check(700.0, f64::INFINITY, 200.0..215.0, 1280.0..1600.0);
    }

    #[test]
    fn a_hint_decides_between_groups() {
        check(500.0, 200.0, 200.0..215.0, 0.0..200.0);
        check(1250.0, 200.0, 1495.0..1515.0, 0.0..200.0);
    }

    #[test]
    fn a_flow_far_from_all_groups_stays_where_it_was_seen() {
        check(9000.0, 10.0, 8990.0..9010.0, 0.0..100.0);
    }

    #[test]
    fn few_flows_show_no_groups() {
        assert!(Prior::new(vec![1.0; KNOWN_MIN - 1]).is_none());
    }
}
