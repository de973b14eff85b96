//! Every experiment, and the only list of them.

mod cnf;
mod colate;
mod fridge;
mod heavy;
mod lda;
mod lds;
mod mplane;
mod reorder;
mod sample;
mod segment;

use crate::experiment::Experiment;

pub use cnf::ways::{FlowError, RecordWays, record_ways};

/// Every experiment, in the order of the accuracy page. The command line, the page and the tests
/// walk it.
pub static EXPERIMENTS: &[&Experiment] = &[
    &lda::loss::EXPERIMENT,
    &lda::banks::EXPERIMENT,
    &lda::test_packets::EXPERIMENT,
    &lda::constant::EXPERIMENT,
    &lda::sampling::EXPERIMENT,
    &lda::plan::EXPERIMENT,
    &lds::sizing::EXPERIMENT,
    &lds::plan::EXPERIMENT,
    &lds::flow_size::EXPERIMENT,
    &lds::few_cells::EXPERIMENT,
    &lds::more_cells::EXPERIMENT,
    &lds::distribution::EXPERIMENT,
    &lds::loss::EXPERIMENT,
    &lds::flow_loss::EXPERIMENT,
    &lds::queue::EXPERIMENT,
    &lds::weights::EXPERIMENT,
    &colate::printed::EXPERIMENT,
    &colate::accuracy::EXPERIMENT,
    &colate::per_flow::EXPERIMENT,
    &colate::reliability::EXPERIMENT,
    &colate::plan::EXPERIMENT,
    &colate::storage::EXPERIMENT,
    &colate::deviation::EXPERIMENT,
    &colate::triangle::EXPERIMENT,
    &colate::reference::EXPERIMENT,
    &colate::count_min::EXPERIMENT,
    &cnf::weibull::EXPERIMENT,
    &cnf::sizes::EXPERIMENT,
    &cnf::durations::EXPERIMENT,
    &cnf::queue::EXPERIMENT,
    &cnf::red::EXPERIMENT,
    &cnf::association::EXPERIMENT,
    &cnf::sampling::EXPERIMENT,
    &cnf::loss::EXPERIMENT,
    &cnf::deviation::EXPERIMENT,
    &fridge::percentiles::EXPERIMENT,
    &fridge::probability::EXPERIMENT,
    &fridge::several::EXPERIMENT,
    &fridge::bias::EXPERIMENT,
    &fridge::stages::EXPERIMENT,
    &fridge::plan::EXPERIMENT,
    &reorder::EXPERIMENT,
    &heavy::memory::EXPERIMENT,
    &heavy::guarantee::EXPERIMENT,
    &sample::EXPERIMENT,
    &mplane::EXPERIMENT,
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claim::Holds;

    #[test]
    fn names_are_unique_and_reasons_are_given() {
        for (index, one) in EXPERIMENTS.iter().enumerate() {
            assert!(EXPERIMENTS[index + 1..].iter().all(|other| other.name != one.name));
            assert!(one.seeds.quick >= 1 && one.seeds.full >= one.seeds.quick, "{}", one.name);
            for claim in one.claims {
                let explained = !matches!(claim.holds, Holds::Differs | Holds::Cannot)
                    || !claim.note.is_empty();
                assert!(explained, "{}: {}", one.name, claim.claim);
            }
        }
    }
}
