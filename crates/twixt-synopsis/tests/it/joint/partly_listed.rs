//! Lists of flows that leave out some and name others that sent nothing, where sizes are not known: what
//! users ask with. Intervals hold; flows that sent nothing are not seen.

use twixt_model::Estimate;
use twixt_synopsis::{Colate, KnownFlow, Lds, TwoPoint};
use twixt_testing::{check_coverage, seed};

use super::score::answers;
use super::traffic::{Delays, Sizes, Traffic, Workload};

/// One setting: traffic, memory, and how much of the traffic is listed.
#[derive(Clone, Copy, Debug)]
struct Setting {
    memory_bytes: u64,
    sizes: Sizes,
    loss: f64,
    delays: Delays,
    /// Of a hundred flows, so many are listed.
    percent: usize,
}

/// Some of the flows that a list names sent nothing: one for so many that did.
const ABSENT: usize = 5;
const FLOWS: usize = 1000;

/// What a list brought to light, seed by seed.
#[derive(Default, Debug)]
struct Outcome {
    flows: u64,
    intervals: Vec<(u64, u64)>,
    bare: u64,
    far_off: u64,
    absent: u64,
    believed: u64,
    zero_losses: u64,
    silent: u64,
    errors: Vec<f64>,
    widths: Vec<f64>,
}

impl Outcome {
    fn of<S: TwoPoint>(setting: &Setting, seeds: u64) -> Self {
        let mut outcome = Self::default();
        for seed_ in 0..seeds {
            outcome.add::<S>(setting, seed(100 + seed_));
        }
        outcome
    }

    fn add<S: TwoPoint>(&mut self, setting: &Setting, seed: u64) {
        let Setting { sizes, delays, loss, .. } = *setting;
        let traffic =
            Traffic::new(&Workload { seed, flows: FLOWS, sizes, delays, loss, repeats: 0.0 });
        let ends = traffic.ends::<S>(&S::sized(setting.memory_bytes).expect("enough memory"));
        let listed: Vec<usize> =
            (0..FLOWS).filter(|flow| flow * 37 % 100 < setting.percent).collect();
        let mut flows: Vec<KnownFlow> =
            listed.iter().map(|&flow| traffic.listed(flow, false)).collect();
        flows.extend((0..listed.len() / ABSENT).map(|number| traffic.absent(number)));
        let found = answers(&ends, "joint", &flows);
        self.intervals.push((0, 0));
        for (estimate, &flow) in found.iter().zip(&listed) {
            self.judge(estimate, traffic.truth[flow].mean_ns());
        }
        for estimate in &found[listed.len()..] {
            self.absent += 1;
            self.believed += u64::from(estimate.delay.is_some());
            // Of a flow with an empty cell it is certain that it sent nothing.
            let evidence = estimate.evidence;
            self.zero_losses += u64::from(evidence.lost.is_some() && evidence.packets > 0);
            self.silent += u64::from(estimate.reason.is_none());
        }
    }

    fn judge(&mut self, estimate: &Estimate, mean_ns: Option<f64>) {
        let Some(mean_ns) = mean_ns else { return };
        self.flows += 1;
        let is_whole = estimate.delay.is_some_and(|delay| delay.half_width_ns.is_some());
        self.silent += u64::from(!is_whole && estimate.reason.is_none());
        let Some(delay) = estimate.delay else { return };
        let off_ns = (delay.mean_ns() - mean_ns).abs();
        let varying = mean_ns - super::traffic::CONSTANT_NS;
        let Some(half_width_ns) = delay.half_width_ns else {
            self.bare += 1;
            self.far_off += u64::from(off_ns > 0.5 * varying);
            return;
        };
        let (all, held) = self.intervals.last_mut().expect("a seed has begun");
        *all += 1;
        *held += u64::from(off_ns <= half_width_ns + 1.0);
        self.errors.push(off_ns / varying);
        self.widths.push(half_width_ns / varying);
    }

    fn show(&self, what: &str) {
        let (all, held) = self.total();
        println!(
            "{what}: {} flows, {all} intervals, {:.1} % hold (each {:?}), error {:.3}, width {:.3}; {} bare, {:.1} % far off; absent {} of {} believed, {} lost",
            self.flows,
            100.0 * held as f64 / all as f64,
            self.intervals.iter().map(|(all, held)| 1000 * held / all.max(&1)).collect::<Vec<_>>(),
            super::score::median(&self.errors),
            super::score::median(&self.widths),
            self.bare,
            100.0 * self.far_off as f64 / self.bare.max(1) as f64,
            self.believed,
            self.absent,
            self.zero_losses,
        );
    }

    fn total(&self) -> (u64, u64) {
        self.intervals.iter().fold((0, 0), |sum, seed| (sum.0 + seed.0, sum.1 + seed.1))
    }
}

/// The share that must hold, less than is promised by what approximations may cost, as in the attack.
const HELD_MIN: f64 = 0.93;
/// Of flows that sent nothing, so many are not seen.
const UNSEEN_MIN: f64 = 0.95;

impl Outcome {
    /// Intervals hold, with the number of those that are independent: flows of one seed share cells, so that
    /// the number is divided by how much more shares scatter from seed to seed than by chance
    /// (Kish, "Survey Sampling", 1965, section 5.4). Flows that sent nothing are not seen.
    #[track_caller]
    fn check(&self, what: &str) {
        self.show(what);
        assert_eq!(self.silent, 0, "{what}: missing without a reason");
        check_coverage(what, self.absent - self.believed, self.absent, UNSEEN_MIN);
        check_coverage(what, self.absent - self.zero_losses, self.absent, UNSEEN_MIN);
        let (all, held) = self.total();
        if all >= INTERVALS_MIN {
            let share = held as f64 / all as f64;
            let independent = (all as f64 / self.design_effect()).max(self.intervals.len() as f64);
            let count = (share * independent).round() as u64;
            check_coverage(what, count, independent as u64, HELD_MIN);
        }
    }

    fn design_effect(&self) -> f64 {
        let (all, held) = self.total();
        let seeds = self.intervals.iter().filter(|(all, _)| *all > 0).count() as f64;
        let share = held as f64 / all as f64;
        let square = |&(all, held): &(u64, u64)| (held as f64 - share * all as f64).powi(2);
        let squares: f64 = self.intervals.iter().map(square).sum();
        let variance = squares * seeds / (seeds - 1.0).max(1.0);
        (variance / (share * (1.0 - share) * all as f64).max(f64::MIN_POSITIVE)).max(1.0)
    }
}

/// Fewer intervals than this say nothing.
const INTERVALS_MIN: u64 = 30;

/// All settings, or those whose names contain all parts of ONLY, separated by semicolons.
fn each_setting(mut visit: impl FnMut(Algorithm, Setting, &str)) {
    let only = std::env::var("ONLY").unwrap_or_default();
    for delays in [Delays::ByFlow, Delays::Bimodal] {
        for sizes in [Sizes::Equal(40), Sizes::Pareto(5.0)] {
            for loss in [0.0, 0.02] {
                for percent in [25, 50, 90, 100] {
                    for (algorithm, default_bytes) in
                        [(Algorithm::Lds, 16384), (Algorithm::Colate, 65536)]
                    {
                        for memory_bytes in [default_bytes / 4, default_bytes, default_bytes * 4] {
                            let setting = Setting { memory_bytes, sizes, loss, delays, percent };
                            let name = format!("{algorithm:?} {setting:?}");
                            if only.split(';').all(|part| name.contains(part)) {
                                visit(algorithm, setting, &name);
                            }
                        }
                    }
                }
            }
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum Algorithm {
    Lds,
    Colate,
}

impl Algorithm {
    fn outcome(self, setting: &Setting, seeds: u64) -> Outcome {
        match self {
            Self::Lds => Outcome::of::<Lds>(setting, seeds),
            Self::Colate => Outcome::of::<Colate>(setting, seeds),
        }
    }
}

/// Some of the settings: each level is among them.
#[test]
fn intervals_hold_whatever_part_is_listed() {
    let setting = |memory_bytes, sizes, loss, percent| {
        let delays = Delays::ByFlow;
        Setting { memory_bytes, sizes, loss, delays, percent }
    };
    let (equal, pareto) = (Sizes::Equal(40), Sizes::Pareto(5.0));
    for (algorithm, setting) in [
        (Algorithm::Lds, setting(16_384, pareto, 0.0, 90)),
        (Algorithm::Lds, setting(65_536, pareto, 0.0, 50)),
        (Algorithm::Lds, setting(65_536, equal, 0.02, 100)),
        (Algorithm::Colate, setting(65_536, equal, 0.0, 50)),
        (Algorithm::Colate, setting(262_144, pareto, 0.02, 25)),
    ] {
        algorithm.outcome(&setting, 2).check(&format!("{algorithm:?} {setting:?}"));
    }
}

#[test]
#[ignore = "takes minutes: all settings"]
fn grid() {
    each_setting(|algorithm, setting, name| algorithm.outcome(&setting, 3).show(name));
}
