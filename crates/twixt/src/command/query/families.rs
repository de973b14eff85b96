//! Which recordings of the two points belong together.

use std::collections::BTreeSet;

use twixt_measure::Stream;
use twixt_model::Span;
use twixt_store::{Found, Log};

use super::Args;
use super::heads::Heads;
use crate::exit::{no_answer, usage};

/// A family of streams for each point.
pub(super) struct Families {
    pub(super) upstream: String,
    pub(super) downstream: String,
    /// What there is of both points, of any family.
    pub(super) heads: [Heads; 2],
}

impl Families {
    /// Whether both points were set up alike.
    pub(super) fn are_alike(&self) -> bool {
        self.upstream == self.downstream
    }
}

/// Whether a record belongs to a family.
pub(super) fn is_of(found: &Found, family: &str) -> bool {
    found.stream.parse().is_ok_and(|stream: Stream| stream.family() == family)
}

/// Finds the one pair of families that fits what was asked for.
pub(super) fn choose(log: &Log, args: &Args, span: Span) -> anyhow::Result<Families> {
    let known = log.points()?;
    for point in [&args.from, &args.to] {
        if !known.contains(point) {
            let (store, known) = (log.folder().display(), known.join(", "));
            return Err(no_answer(format!("{store}: no point {point:?}; there are: {known}")));
        }
    }
    let heads = [Heads::find(log, &args.from, span)?, Heads::find(log, &args.to, span)?];
    let [upstream, downstream] = heads.each_ref().map(|heads| fitting(args, &heads.records));
    let both: Vec<&String> = upstream.intersection(&downstream).collect();
    let one = |families: &BTreeSet<String>| families.first().cloned().unwrap_or_default();
    match both.as_slice() {
        [family] => {
            Ok(Families { upstream: (*family).clone(), downstream: (*family).clone(), heads })
        }
        // Whether they can be compared all the same is for the pairing to say.
        [] if upstream.len() == 1 && downstream.len() == 1 => {
            Ok(Families { upstream: one(&upstream), downstream: one(&downstream), heads })
        }
        [] => Err(nothing_common(args, &upstream, &downstream)),
        several => {
            let several: Vec<&str> = several.iter().map(|family| family.as_str()).collect();
            Err(usage(format!(
                "several recordings match, choose one with --algorithm or --stream: {}",
                several.join(", ")
            )))
        }
    }
}

fn nothing_common(
    args: &Args,
    upstream: &BTreeSet<String>,
    downstream: &BTreeSet<String>,
) -> anyhow::Error {
    let has = |families: &BTreeSet<String>| match families.len() {
        0 => "nothing".to_owned(),
        _ => families.iter().map(String::as_str).collect::<Vec<_>>().join(", "),
    };
    no_answer(format!(
        "the two points have no recording in common at that time: {} has {}, {} has {}",
        args.from,
        has(upstream),
        args.to,
        has(downstream)
    ))
}

/// The families of a point that the user may have meant.
fn fitting(args: &Args, records: &[Found]) -> BTreeSet<String> {
    let names: BTreeSet<&str> = records.iter().map(|found| found.stream.as_str()).collect();
    let streams = names.into_iter().filter_map(|name| name.parse::<Stream>().ok());
    let meant = |stream: &Stream| {
        args.algorithm.as_ref().is_none_or(|name| *name == stream.algorithm)
            && args.stream.as_ref().is_none_or(|start| stream.family().starts_with(start.as_str()))
    };
    streams.filter(meant).map(|stream| stream.family()).collect()
}
