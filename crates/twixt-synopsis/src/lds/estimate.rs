//! What two sketches tell together: about all traffic, about flows, about pairs of prefixes.

use twixt_model::Estimate;

use super::Lds;
use super::flows::{all_at_once, one_by_one};
use crate::question::Question;
use crate::sketch;
use crate::synopsis::Pair;

pub(super) fn estimate(pair: Pair<'_, Lds>, question: &Question<'_>) -> Vec<Estimate> {
    sketch::estimate(pair, question, |table, flows| match question.estimator {
        Some("paper") => one_by_one(table, flows),
        _ => all_at_once(table, flows),
    })
}

#[cfg(test)]
mod tests;
