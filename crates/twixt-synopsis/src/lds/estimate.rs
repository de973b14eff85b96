//! The combined result of two sketches: about all traffic, about flows, about pairs of prefixes.

use twixt_model::Estimate;

use super::Lds;
use super::flows::{all_at_once, as_printed, one_by_one};
use crate::question::Question;
use crate::sketch;
use crate::synopsis::Pair;

pub(super) fn estimate(pair: Pair<'_, Lds>, question: &Question<'_>) -> Vec<Estimate> {
    let named = pair.upstream.large_flows();
    let flows = if question.flows.is_empty() { &named } else { question.flows };
    let answer = match question.estimator {
        Some("paper") => one_by_one,
        Some("printed") => as_printed,
        _ => all_at_once,
    };
    sketch::estimate(pair, question, flows, answer)
}

#[cfg(test)]
mod tests;
