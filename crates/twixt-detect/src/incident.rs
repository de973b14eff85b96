//! Which changes are one incident, where it is, and of what kind.
//!
//! A full queue delays packets, and then loses some: two changes of one series, one incident. A line
//! that loses packets loses those of every class: one change in each, one incident again.

use std::collections::BTreeMap;

use twixt_model::{Epoch, Segment};

use crate::detector::{Change, ChangeKind, WatchedSeries};

/// What kind of incident it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum IncidentKind {
    /// Packets wait: delay rose, whether or not more packets were lost as well.
    Queue,
    /// More packets are lost, and those that are not take no longer than before.
    Loss,
}

/// Changes that belong together.
#[derive(Clone, Debug, PartialEq)]
pub struct Incident {
    /// What.
    pub kind: IncidentKind,
    /// Between which points.
    pub segment: Segment,
    /// Of which class; `None` if every class that is watched on this segment changed.
    pub class: Option<String>,
    /// The first epoch that differs.
    pub since: Epoch,
    /// The last epoch that differs; `None` while it lasts.
    pub until: Option<Epoch>,
    /// How sure it is, by the surest of its changes.
    pub confidence: f64,
}

/// Changes that begin so many epochs apart may be one incident: an incident that begins just before
/// the end of an epoch is seen in one class there, and in another in the next.
const APART_MAX: u64 = 1;

impl IncidentKind {
    /// Its name in documents.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Queue => "queue",
            Self::Loss => "loss",
        }
    }
}

/// The incidents that changes come to, in order of their start. `watched` are all series, changed or not.
#[must_use]
pub fn incidents<'a>(
    changes: &[Change],
    watched: impl IntoIterator<Item = &'a WatchedSeries>,
) -> Vec<Incident> {
    let mut classes: BTreeMap<&Segment, usize> = BTreeMap::new();
    for series in watched {
        *classes.entry(&series.segment).or_default() += 1;
    }
    let mut by_class = Vec::new();
    for change in changes {
        join_of_series(&mut by_class, change);
    }
    by_class.sort_by_key(|incident| incident.since);
    let mut found: Vec<Incident> = Vec::new();
    while !by_class.is_empty() {
        let first = by_class.remove(0);
        let (alike, rest): (Vec<_>, Vec<_>) =
            by_class.into_iter().partition(|other| is_alike(&first, other));
        let of_segment = classes.get(&first.segment).copied().unwrap_or(1);
        if of_segment > 1 && alike.len() + 1 == of_segment {
            found.push(alike.iter().fold(Incident { class: None, ..first }, joined));
            by_class = rest;
        } else {
            found.push(first);
            by_class = [alike, rest].concat();
            by_class.sort_by_key(|incident| incident.since);
        }
    }
    found
}

/// Joins a change to the incident of its series that it overlaps with, or begins one.
fn join_of_series(incidents: &mut Vec<Incident>, change: &Change) {
    let own = of_change(change);
    let of_series = incidents.iter_mut().find(|incident| {
        incident.segment == own.segment && incident.class == own.class && overlap(incident, &own)
    });
    match of_series {
        Some(incident) => *incident = joined(incident.clone(), &own),
        None => incidents.push(own),
    }
}

fn of_change(change: &Change) -> Incident {
    let Change { series, kind, since, until, confidence } = change.clone();
    let kind = match kind {
        ChangeKind::Delay => IncidentKind::Queue,
        ChangeKind::Loss => IncidentKind::Loss,
    };
    let WatchedSeries { segment, class } = series;
    Incident { kind, segment, class: Some(class), since, until, confidence }
}

fn joined(one: Incident, other: &Incident) -> Incident {
    Incident {
        kind: one.kind.min(other.kind),
        since: one.since.min(other.since),
        until: one.until.zip(other.until).map(|(one, other)| one.max(other)),
        confidence: one.confidence.max(other.confidence),
        ..one
    }
}

/// Whether two incidents of other classes are one of the segment.
fn is_alike(one: &Incident, other: &Incident) -> bool {
    one.segment == other.segment
        && one.kind == other.kind
        && one.since.0.abs_diff(other.since.0) <= APART_MAX
}

fn overlap(one: &Incident, other: &Incident) -> bool {
    let end = |incident: &Incident| incident.until.map_or(i64::MAX, |until| until.0);
    let apart = APART_MAX as i64;
    one.since.0 <= end(other).saturating_add(apart)
        && other.since.0 <= end(one).saturating_add(apart)
}

#[cfg(test)]
mod tests {
    use super::*;
    use twixt_model::PointId;

    fn series(upstream: &str, class: &str) -> WatchedSeries {
        let point = |name: &str| PointId(name.to_owned());
        let segment = Segment { upstream: point(upstream), downstream: point("z") };
        WatchedSeries { segment, class: class.to_owned() }
    }

    fn change(at: (&str, &str), kind: ChangeKind, since: i64, until: i64) -> Change {
        let until = Some(Epoch(until));
        Change { series: series(at.0, at.1), kind, since: Epoch(since), until, confidence: 0.9 }
    }

    /// Incidents of two segments with two classes each: kind, upstream, class, since.
    #[track_caller]
    fn check(changes: &[Change], expected: &[(&str, &str, Option<&str>, i64)]) {
        let watched =
            [series("a", "voice"), series("a", "web"), series("b", "voice"), series("b", "web")];
        let found = incidents(changes, &watched);
        let shown = |incident: &Incident| {
            let upstream = incident.segment.upstream.0.clone();
            (incident.kind.name(), upstream, incident.class.clone(), incident.since.0)
        };
        let expected: Vec<_> = expected
            .iter()
            .map(|&(kind, at, class, since)| (kind, at.to_owned(), class.map(str::to_owned), since))
            .collect();
        assert_eq!(found.iter().map(shown).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_queue_that_loses_packets_is_one_incident() {
        let at = ("a", "voice");
        let delay = change(at, ChangeKind::Delay, 21, 35);
        let loss = change(at, ChangeKind::Loss, 22, 34);
        check(&[delay.clone(), loss.clone()], &[("queue", "a", Some("voice"), 21)]);
        check(&[loss, delay], &[("queue", "a", Some("voice"), 21)]);
    }

    #[test]
    fn loss_in_every_class_is_one_incident_of_the_segment() {
        let voice = change(("a", "voice"), ChangeKind::Loss, 21, 35);
        let web = change(("a", "web"), ChangeKind::Loss, 20, 36);
        check(&[voice.clone(), web.clone()], &[("loss", "a", None, 20)]);
        check(std::slice::from_ref(&voice), &[("loss", "a", Some("voice"), 21)]);
        // Not if they have little to do with each other.
        let later = change(("a", "web"), ChangeKind::Loss, 30, 36);
        let apart = [("loss", "a", Some("voice"), 21), ("loss", "a", Some("web"), 30)];
        check(&[voice.clone(), later], &apart);
        let waiting = change(("a", "web"), ChangeKind::Delay, 21, 36);
        let kinds = [("loss", "a", Some("voice"), 21), ("queue", "a", Some("web"), 21)];
        check(&[voice, waiting], &kinds);
        assert!(incidents(&[web], [&series("a", "web")])[0].class.is_some());
    }

    #[test]
    fn segments_and_repetitions_are_told_apart() {
        let changes = [
            change(("b", "web"), ChangeKind::Delay, 40, 44),
            change(("a", "voice"), ChangeKind::Delay, 10, 14),
            change(("a", "voice"), ChangeKind::Loss, 30, 34),
        ];
        let expected = [
            ("queue", "a", Some("voice"), 10),
            ("loss", "a", Some("voice"), 30),
            ("queue", "b", Some("web"), 40),
        ];
        check(&changes, &expected);
    }
}
