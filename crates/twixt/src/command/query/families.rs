//! Which recordings of the two points belong together.

use std::collections::BTreeSet;

use twixt_measure::Stream;
use twixt_model::Span;
use twixt_store::{Depth, Log, Query};

use super::{Args, Touched};
use crate::exit::{no_answer, usage};

/// A family of streams for each point.
pub(super) struct Families {
    pub(super) upstream: String,
    pub(super) downstream: String,
    /// What was read to find them.
    pub(super) touched: Touched,
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
    let mut touched = Touched::default();
    let upstream = fitting(log, args, &args.from, span, &mut touched)?;
    let downstream = fitting(log, args, &args.to, span, &mut touched)?;
    let both: Vec<&String> = upstream.intersection(&downstream).collect();
    let one = |families: &BTreeSet<String>| families.first().cloned().unwrap_or_default();
    match both.as_slice() {
        [family] => {
            Ok(Families { upstream: (*family).clone(), downstream: (*family).clone(), touched })
        }
        // Whether they can be compared all the same is for the pairing to say.
        [] if upstream.len() == 1 && downstream.len() == 1 => {
            Ok(Families { upstream: one(&upstream), downstream: one(&downstream), touched })
        }
        [] => Err(nothing_common(args, &upstream, &downstream)),
        several => {
            let several: Vec<&str> = several.iter().map(|family| family.as_str()).collect();
            Err(usage(format!(
                "several recordings fit, choose one with --algorithm or --stream: {}",
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
fn fitting(
    log: &Log,
    args: &Args,
    point: &str,
    span: Span,
    touched: &mut Touched,
) -> anyhow::Result<BTreeSet<String>> {
    let query = Query::between(span).at_point(point).to_depth(Depth::Heads);
    let mut names = BTreeSet::new();
    let mut families = BTreeSet::new();
    let mut scan = log.scan(query)?;
    for found in scan.by_ref() {
        if names.contains(&found.stream) {
            continue;
        }
        if let Ok(stream) = found.stream.parse::<Stream>()
            && args.algorithm.as_ref().is_none_or(|name| *name == stream.algorithm)
            && args.stream.as_ref().is_none_or(|start| stream.family().starts_with(start.as_str()))
        {
            families.insert(stream.family());
        }
        names.insert(found.stream);
    }
    touched.add_heads(scan.report());
    Ok(families)
}
