//! What was found: counts and times by kind, and by group where that is asked for.

use std::collections::BTreeMap;

use twixt_model::{
    FirstByteWait, RoundTripEstimate, RoundTripKind, RoundTripPart, RoundTripSample, Scope,
};

use super::kinds::KindSet;
use super::scopes;
use super::times::Times;
use crate::codec::{DecodeError, Reader, Writer};

/// Groups of all kinds that are kept at most; the smaller half of them then becomes `other`.
pub const GROUPS_MAX: usize = 1024;
/// Buckets for the times of a group: within 2.2 % over 8 doublings, 4.4 % over 16.
const GROUP_BUCKETS: u32 = 128;
/// Samples that wait to be taken at most; a batch gives far fewer.
const WAITING_MAX: usize = 1 << 16;

/// Counts and times.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Tally {
    /// `None` to keep every time.
    buckets: Option<u32>,
    kinds: [Option<Box<KindTally>>; RoundTripKind::ALL.len()],
    groups: BTreeMap<(RoundTripKind, Scope), Times>,
    /// How often groups became `other`.
    folded: u64,
    first_byte: FirstByteWait,
    waiting: Waiting,
}

#[derive(Clone, Debug, PartialEq)]
struct KindTally {
    requests: u64,
    responses: u64,
    ambiguous: u64,
    parts: Parts,
}

/// Times by part of the kind. What belongs to none comes first.
#[derive(Clone, Debug, Default, PartialEq)]
struct Parts([Option<Box<Times>>; 1 + RoundTripPart::ALL.len()]);

impl Parts {
    #[inline]
    fn of(&mut self, part: Option<RoundTripPart>, buckets: Option<u32>) -> &mut Times {
        let at = part.map_or(0, |part| 1 + part as usize);
        self.0[at].get_or_insert_with(|| Box::new(Times::new(buckets)))
    }

    fn known(&self) -> impl Iterator<Item = (Option<RoundTripPart>, &Times)> {
        let parts = [None].into_iter().chain(RoundTripPart::ALL.map(Some));
        parts.zip(&self.0).filter_map(|(part, times)| Some((part, times.as_deref()?)))
    }

    fn count(&self) -> u64 {
        self.known().map(|(_, times)| times.count()).sum()
    }

    fn encode(&self, out: &mut Writer) {
        for times in &self.0 {
            out.u8(times.is_some().into());
            times.iter().for_each(|times| times.encode(out));
        }
    }

    fn decode(
        input: &mut Reader<'_>,
        buckets: Option<u32>,
        version: u8,
    ) -> Result<Self, DecodeError> {
        let mut parts = Self::default();
        if version < 3 {
            parts.0[0] = Some(Box::new(Times::decode(input, buckets)?));
            return Ok(parts);
        }
        for times in &mut parts.0 {
            if input.u8("part present")? != 0 {
                *times = Some(Box::new(Times::decode(input, buckets)?));
            }
        }
        Ok(parts)
    }

    /// All of them together.
    fn whole(&self, buckets: Option<u32>) -> Times {
        let mut all = self.known().map(|(_, times)| times);
        let mut whole = all.next().cloned().unwrap_or_else(|| Times::new(buckets));
        all.for_each(|times| whole.merge(times));
        whole
    }
}

/// Samples that were not taken yet; `None` if they are not requested.
#[derive(Clone, Debug, Default)]
struct Waiting(Option<Vec<RoundTripSample>>);

/// What waits is no part of what was found.
impl PartialEq for Waiting {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Tally {
    /// With so many buckets a kind; with every time if `None`.
    pub(super) fn new(buckets: Option<u32>) -> Self {
        Self {
            buckets,
            kinds: Default::default(),
            groups: BTreeMap::new(),
            folded: 0,
            first_byte: FirstByteWait::default(),
            waiting: Waiting::default(),
        }
    }

    /// Packets of a kind came, whatever they give.
    #[inline]
    pub(super) fn occur(&mut self, kind: RoundTripKind) {
        self.kind_mut(kind);
    }

    #[inline]
    pub(super) fn count_request(&mut self, kind: RoundTripKind) {
        let count = &mut self.kind_mut(kind).requests;
        *count = count.saturating_add(1);
    }

    #[inline]
    pub(super) fn count_response(&mut self, kind: RoundTripKind) {
        let count = &mut self.kind_mut(kind).responses;
        *count = count.saturating_add(1);
    }

    pub(super) fn count_ambiguous(&mut self, kind: RoundTripKind) {
        let count = &mut self.kind_mut(kind).ambiguous;
        *count = count.saturating_add(1);
    }

    /// Counts what a client waited for until a response began.
    pub(super) fn count_wait(
        &mut self,
        response_ns: i64,
        acknowledged_ns: Option<i64>,
        legs_ns: (i64, i64),
    ) {
        self.first_byte.add(response_ns, acknowledged_ns, legs_ns);
    }

    /// Adds a round trip, to its group as well if there is one.
    pub(super) fn add(&mut self, sample: RoundTripSample, group: Option<Scope>) {
        let RoundTripSample { kind, part, rtt_ns, weight, .. } = sample;
        let buckets = self.buckets;
        self.kind_mut(kind).parts.of(part, buckets).add(rtt_ns, weight);
        if let Some(scope) = group {
            let buckets = self.buckets.map(|_| GROUP_BUCKETS);
            let times = self.groups.entry((kind, scope)).or_insert_with(|| Times::new(buckets));
            times.add(rtt_ns, weight);
            self.bound_groups();
        }
        if let Some(waiting) = &mut self.waiting.0
            && waiting.len() < WAITING_MAX
        {
            waiting.push(sample);
        }
    }

    /// Samples since they were last taken. The first time there are none: from then on they are
    /// kept.
    pub(super) fn take_samples(&mut self) -> Vec<RoundTripSample> {
        self.waiting.0.replace(Vec::new()).unwrap_or_default()
    }

    /// Round trips of a kind that were measured.
    pub(super) fn matched(&self, kind: RoundTripKind) -> u64 {
        self.kinds[kind as usize].as_ref().map_or(0, |tally| tally.parts.count())
    }

    /// Hands over what was found so far, and restarts.
    pub(super) fn cut(&mut self) -> Self {
        let fresh = Self { waiting: std::mem::take(&mut self.waiting), ..Self::new(self.buckets) };
        std::mem::replace(self, fresh)
    }

    pub(super) fn merge(&mut self, other: &Self) {
        let buckets = self.buckets;
        for (kind, theirs) in RoundTripKind::ALL.into_iter().zip(&other.kinds) {
            let Some(theirs) = theirs else { continue };
            let ours = self.kind_mut(kind);
            ours.requests = ours.requests.saturating_add(theirs.requests);
            ours.responses = ours.responses.saturating_add(theirs.responses);
            ours.ambiguous = ours.ambiguous.saturating_add(theirs.ambiguous);
            for (part, times) in theirs.parts.known() {
                ours.parts.of(part, buckets).merge(times);
            }
        }
        self.first_byte.merge(&other.first_byte);
        for (key, theirs) in &other.groups {
            let ours = self.groups.entry(key.clone());
            ours.and_modify(|times| times.merge(theirs)).or_insert_with(|| theirs.clone());
        }
        self.folded = self.folded.saturating_add(other.folded);
        self.bound_groups();
    }

    /// Estimates of kinds that occurred, each followed by those of its parts, and then of its groups,
    /// largest first.
    pub(super) fn conclude(
        &self,
        distributions: bool,
        horizon_ns: impl Fn(RoundTripKind) -> Option<i64>,
    ) -> Vec<RoundTripEstimate> {
        let estimate = |scope: Scope, kind: RoundTripKind, times: &Times, horizon_ns| {
            let distribution = distributions.then(|| Box::new(times.histogram()));
            RoundTripEstimate { distribution, ..estimate(scope, kind, times, horizon_ns) }
        };
        let mut estimates = Vec::new();
        for kind in RoundTripKind::REPORTED {
            let Some(tally) = &self.kinds[kind as usize] else { continue };
            let horizon_ns = horizon_ns(kind);
            estimates.push(RoundTripEstimate {
                requests: Some(tally.requests),
                responses: Some(tally.responses),
                ambiguous: Some(tally.ambiguous),
                first_byte: self.first_byte_of(kind),
                ..estimate(Scope::All, kind, &tally.parts.whole(self.buckets), horizon_ns)
            });
            estimates.extend(tally.parts.known().filter_map(|(part, times)| {
                let part = Some(part?);
                Some(RoundTripEstimate { part, ..estimate(Scope::All, kind, times, horizon_ns) })
            }));
            let ours = self.groups.iter().filter(|((of, _), _)| *of == kind);
            let mut groups: Vec<RoundTripEstimate> = ours
                .map(|((_, scope), times)| estimate(scope.clone(), kind, times, horizon_ns))
                .collect();
            groups.sort_by(|one, other| other.weighted.total_cmp(&one.weighted));
            estimates.extend(groups);
        }
        estimates
    }

    fn first_byte_of(&self, kind: RoundTripKind) -> Option<FirstByteWait> {
        let known = self.first_byte.responses > 0;
        (kind == RoundTripKind::ServerResponse && known).then_some(self.first_byte)
    }

    pub(super) fn state_bytes(&self) -> u64 {
        let kinds = self.kinds.iter().flatten();
        let bytes = |kind: &KindTally| {
            let part = |times: &Times| size_of::<Times>() as u64 + times.state_bytes();
            let parts: u64 = kind.parts.known().map(|(_, times)| part(times)).sum();
            size_of::<KindTally>() as u64 + parts
        };
        let kinds: u64 = kinds.map(|kind| bytes(kind)).sum();
        let group = size_of::<(RoundTripKind, Scope)>() as u64;
        let groups: u64 = self.groups.values().map(|times| group + times.state_bytes()).sum();
        kinds + groups
    }

    pub(super) fn encode(&self, out: &mut Writer) {
        for kind in &self.kinds {
            out.u8(kind.is_some().into());
            if let Some(kind) = kind {
                out.u64(kind.requests);
                out.u64(kind.responses);
                out.u64(kind.ambiguous);
                kind.parts.encode(out);
            }
        }
        let FirstByteWait {
            responses,
            response_ns,
            toward_servers_ns,
            toward_clients_ns,
            server_ns_min,
        } = self.first_byte;
        [responses, response_ns, toward_servers_ns, toward_clients_ns, server_ns_min]
            .into_iter()
            .for_each(|number| out.u64(number));
        out.u64(self.folded);
        out.u64(self.groups.len() as u64);
        for ((kind, scope), times) in &self.groups {
            out.u8(*kind as u8);
            scopes::write(out, scope);
            times.encode(out);
        }
    }

    pub(super) fn decode(
        input: &mut Reader<'_>,
        buckets: Option<u32>,
        version: u8,
    ) -> Result<Self, DecodeError> {
        let mut tally = Self::new(buckets);
        for kind in &mut tally.kinds[..KindSet::count_in(version)] {
            if input.u8("kind present")? != 0 {
                *kind = Some(Box::new(KindTally {
                    requests: input.u64("requests")?,
                    responses: input.u64("responses")?,
                    ambiguous: input.u64("ambiguous")?,
                    parts: Parts::decode(input, buckets, version)?,
                }));
            }
        }
        if version >= 3 {
            tally.first_byte = FirstByteWait {
                responses: input.u64("responses with legs")?,
                response_ns: input.u64("time to responses")?,
                toward_servers_ns: input.u64("time toward servers")?,
                toward_clients_ns: input.u64("time toward clients")?,
                server_ns_min: input.u64("time of servers")?,
            };
        }
        tally.folded = input.u64("folded groups")?;
        for _ in 0..input.count("groups", 1)? {
            let kind = input.u8("kind of a group")?;
            let kind = RoundTripKind::ALL.get(usize::from(kind)).copied();
            let kind = kind.ok_or_else(|| DecodeError::invalid("kind of a group", "unknown"))?;
            let scope = scopes::read(input)?;
            let times = Times::decode(input, buckets.map(|_| GROUP_BUCKETS))?;
            tally.groups.insert((kind, scope), times);
        }
        Ok(tally)
    }

    #[inline]
    fn kind_mut(&mut self, kind: RoundTripKind) -> &mut KindTally {
        self.kinds[kind as usize].get_or_insert_with(|| {
            let parts = Parts::default();
            Box::new(KindTally { requests: 0, responses: 0, ambiguous: 0, parts })
        })
    }

    /// When groups are too many, the smaller half of them becomes `other`. One that returns later
    /// restarts, so the largest are those that stay.
    fn bound_groups(&mut self) {
        if self.buckets.is_none() || self.groups.len() <= GROUPS_MAX {
            return;
        }
        let mut weights: Vec<f64> = self.groups.values().map(Times::weight).collect();
        weights.sort_by(f64::total_cmp);
        let median = weights[weights.len() / 2];
        let (mut kept, mut others) = (BTreeMap::new(), BTreeMap::<_, Times>::new());
        for ((kind, scope), times) in std::mem::take(&mut self.groups) {
            match scope != Scope::Other && times.weight() > median {
                true => {
                    kept.insert((kind, scope), times);
                }
                false => {
                    let other = others.entry((kind, Scope::Other));
                    other.and_modify(|all| all.merge(&times)).or_insert(times);
                }
            }
        }
        self.folded = self.folded.saturating_add(1);
        self.groups = kept;
        self.groups.extend(others);
    }
}

fn estimate(
    scope: Scope,
    kind: RoundTripKind,
    times: &Times,
    horizon_ns: Option<i64>,
) -> RoundTripEstimate {
    RoundTripEstimate {
        scope,
        kind,
        part: None,
        first_byte: None,
        spin_use: None,
        requests: None,
        responses: None,
        ambiguous: None,
        matched: times.count(),
        weighted: times.weight(),
        times: times.summary(),
        horizon_ns,
        forgotten_flows: None,
        distribution: None,
    }
}

#[cfg(test)]
mod tests {
    use twixt_model::{FlowKey, Timestamp};

    use super::*;

    fn sample(port: u16, weight: f64) -> RoundTripSample {
        RoundTripSample {
            time: Timestamp::from_nanos(0),
            key: FlowKey { source_port: port, ..FlowKey::default() },
            kind: RoundTripKind::Dns,
            part: None,
            rtt_ns: 1000,
            weight,
        }
    }

    /// Ten large groups among ten thousand small ones: the large stay, nothing is forgotten.
    #[test]
    fn the_largest_groups_stay_and_the_rest_is_other() {
        let mut tally = Tally::new(Some(100));
        for n in 0..10_000_u16 {
            for (port, weight) in [(n, 1.0), (n % 10, 3.0)] {
                let group = Scope::Port { protocol: 17, port };
                tally.add(sample(port, weight), Some(group));
            }
        }
        let estimates = tally.conclude(false, |_| None);
        assert!(estimates.len() <= GROUPS_MAX + 2);
        assert_eq!((estimates[0].weighted, estimates[0].matched), (40_000.0, 20_000));
        assert!(estimates.iter().any(|estimate| estimate.scope == Scope::Other));
        let large = |estimate: &&RoundTripEstimate| estimate.weighted >= 3000.0;
        let ports = estimates[1..].iter().filter(large).filter(|e| e.scope != Scope::Other);
        assert_eq!(ports.count(), 10);
        let groups: f64 = estimates[1..].iter().map(|estimate| estimate.weighted).sum();
        assert_eq!(groups, 40_000.0);
        let mut out = Writer::new();
        tally.encode(&mut out);
        let read = Tally::decode(&mut Reader::new(out.as_slice()), Some(100), 3).unwrap();
        assert_eq!(read, tally);
    }

    #[test]
    fn samples_are_kept_once_they_are_asked_for() {
        let mut tally = Tally::new(None);
        tally.add(sample(1, 1.0), None);
        assert_eq!(tally.take_samples(), []);
        tally.add(sample(2, 1.0), None);
        assert_eq!(tally.cut().take_samples(), []);
        assert_eq!(tally.take_samples(), [sample(2, 1.0)]);
    }
}
