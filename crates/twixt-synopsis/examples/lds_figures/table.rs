//! Errors by flow size, over all seeds together.

use twixt_model::Estimate;

/// Least and most packets of flows that are judged together, as `verify` does.
pub(crate) const SIZES: [(u64, u64); 5] =
    [(1, 9), (10, 99), (100, 499), (500, 999), (1000, u64::MAX)];

/// What was answered about flows of one size.
#[derive(Clone, Debug, Default)]
pub(crate) struct Class {
    flows: u64,
    packets: u64,
    packets_unanswered: u64,
    errors: Vec<f64>,
    deviations: Vec<f64>,
    intervals: u64,
    held: u64,
}

impl Class {
    fn add(&mut self, estimate: &Estimate, truth: &Estimate) {
        let Some(true_delay) = truth.delay else { return };
        self.flows += 1;
        self.packets += truth.evidence.packets;
        let Some(delay) = estimate.delay else {
            self.packets_unanswered += truth.evidence.packets;
            return;
        };
        let off_ns = (delay.mean_ns() - true_delay.mean_ns()).abs();
        self.errors.push(off_ns / true_delay.mean_ns());
        if let (Some(found), Some(truth)) = (delay.deviation_ns, true_delay.deviation_ns) {
            self.deviations.push((found / truth - 1.0).abs());
        }
        if let Some(half_width_ns) = delay.half_width_ns {
            self.intervals += 1;
            self.held += u64::from(off_ns <= half_width_ns + 1.0);
        }
    }
}

/// One estimator in one setting.
#[derive(Clone, Debug, Default)]
pub(crate) struct Errors {
    classes: [Class; SIZES.len()],
}

impl Errors {
    /// Adds flows with their truth.
    pub(crate) fn add(&mut self, answers: &[(Estimate, &Estimate)]) {
        for (estimate, truth) in answers {
            let fits =
                |&(least, most): &(u64, u64)| (least..=most).contains(&truth.evidence.packets);
            if let Some(class) = SIZES.iter().position(fits) {
                self.classes[class].add(estimate, truth);
            }
        }
    }

    /// Median error of all flows, and of those of more than 100 packets.
    pub(crate) fn print_large(&self, name: &str) {
        let median = |from: usize| {
            let errors = self.classes[from..].iter().flat_map(|class| &class.errors);
            100.0 * quantile(&errors.copied().collect::<Vec<_>>(), 0.5)
        };
        println!("{name:<44} median of all {:>8.3} %, of 100+ {:>8.3} %", median(0), median(2));
    }

    /// One line per class.
    pub(crate) fn print(&self, name: &str) {
        for (class, (least, most)) in self.classes.iter().zip(SIZES) {
            let most = if most == u64::MAX { "+".to_owned() } else { format!("-{most}") };
            let percent = |share: f64| format!("{:.3} %", 100.0 * share);
            println!(
                "{name:<44} {:>9} {:>7} flows, unanswered {:>9} ({:>9} of packets), median {:>10}, p95 {:>10}, covered {:>9}, deviation off {:>9} of {}",
                format!("{least}{most}"),
                class.flows,
                percent(1.0 - class.errors.len() as f64 / class.flows as f64),
                percent(class.packets_unanswered as f64 / class.packets as f64),
                percent(quantile(&class.errors, 0.5)),
                percent(quantile(&class.errors, 0.95)),
                percent(class.held as f64 / class.intervals as f64),
                percent(quantile(&class.deviations, 0.5)),
                class.deviations.len(),
            );
        }
    }
}

fn quantile(values: &[f64], share: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let index = (share * sorted.len() as f64) as usize;
    sorted.get(index.min(sorted.len().saturating_sub(1))).copied().unwrap_or(f64::NAN)
}
