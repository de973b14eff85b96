//! The combined result of two sketches: about all traffic, about flows, about pairs of prefixes.

use twixt_model::Estimate;

use super::Lds;
use super::flows::{all_at_once, as_printed, one_by_one};
use crate::question::{Listing, Question};
use crate::sketch;
use crate::synopsis::Pair;

pub(super) fn estimate(pair: Pair<'_, Lds>, question: &Question<'_>) -> Vec<Estimate> {
    let named = pair.upstream.large_flows();
    let (flows, listing) = match question.flows.is_empty() {
        true => (named.as_slice(), Listing::Seen),
        false => (question.flows, question.listing),
    };
    sketch::estimate(pair, question, flows, |table, flows| match question.estimator {
        Some("paper") => one_by_one(table, flows, listing),
        Some("printed") => as_printed(table, flows),
        _ => all_at_once(table, flows, listing),
    })
}

#[cfg(test)]
mod tests;
