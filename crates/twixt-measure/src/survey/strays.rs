//! What made the packets that only the downstream point saw, by the samples of both points.
//!
//! Algorithms that keep sums can tell that there are such packets, but not what they are like.

use std::collections::BTreeMap;

use twixt_model::PacketDigest;
use twixt_synopsis::{OneSided, StrayCause, Unmatched};

use super::compare::Comparison;
use super::edges::Edges;
use super::heading::{Heading, Verdicts};
use super::point::{Kept, PointSurvey};

/// What made them, if they are many or may be packets that seem lost.
#[must_use]
pub fn stray_cause(
    comparison: &Comparison,
    edges: &Edges,
    [upstream, downstream]: [&PointSurvey; 2],
) -> Option<StrayCause> {
    let [sent, received] = going_downstream(comparison, [upstream, downstream]);
    compared(edges, &sent, &received).cause()
}

/// What both points sampled of packets that go downstream.
pub(super) fn going_downstream(
    comparison: &Comparison,
    [upstream, downstream]: [&PointSurvey; 2],
) -> [Vec<Kept>; 2] {
    let level = upstream.sample_level().max(downstream.sample_level());
    let sample = |survey: &PointSurvey, verdicts: &Verdicts| -> Vec<Kept> {
        let goes = |kept: &&Kept| {
            let ends = survey.flow(kept.flow).map(|flow| flow.ends);
            let heading = ends.and_then(|ends| verdicts.heading(kept.flow, || ends));
            heading == Some(Heading::Downstream)
        };
        survey.sample(level).filter(goes).copied().collect()
    };
    [sample(upstream, &comparison.upstream), sample(downstream, &comparison.downstream)]
}

/// What the points did not see alike, of what both had a chance to see.
fn compared(edges: &Edges, sent: &[Kept], received: &[Kept]) -> Unmatched {
    let mut groups: BTreeMap<PacketDigest, [Vec<&Kept>; 2]> = BTreeMap::new();
    for (end, packets) in [sent, received].into_iter().enumerate() {
        for kept in packets {
            groups.entry(kept.digest).or_default()[end].push(kept);
        }
    }
    let mut unmatched = Unmatched::default();
    for [sent, mut received] in groups.into_values() {
        received.sort_unstable_by_key(|kept| kept.time);
        let crossed = sent.len().min(received.len());
        for kept in &sent[..crossed] {
            *unmatched.matched.entry(kept.flow).or_default() += 1;
        }
        let missing = sent[crossed..].iter().filter(|kept| edges.certain().contains(kept.time));
        unmatched.missing.extend(missing.map(|kept| one_sided(kept, None)));
        for index in crossed..received.len() {
            let twin = index.checked_sub(1).filter(|_| crossed > 0).map(|before| received[before]);
            if edges.witnessed().contains(received[index].time) {
                unmatched.strays.push(one_sided(received[index], twin));
            }
        }
    }
    let longest = |packets: &[Kept]| packets.iter().map(|kept| kept.length).max().unwrap_or(0);
    unmatched.longest = [longest(sent), longest(received)];
    unmatched
}

fn one_sided(kept: &Kept, twin: Option<&Kept>) -> OneSided {
    OneSided {
        flow: kept.flow,
        length: kept.length,
        is_fragment: kept.is_fragment,
        twin_ns: twin.map(|twin| (kept.time - twin.time).as_nanos()),
    }
}
