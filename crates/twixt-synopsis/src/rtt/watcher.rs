//! What all algorithms for round trips do alike: hear packets, keep requests in a store of their
//! own, and tally the answers.

use std::fmt::Debug;

use serde::Serialize;
use serde::de::DeserializeOwned;
use twixt_model::{
    Detail, FlowKey, Observation, RoundTripEstimate, RoundTripKind, RoundTripPart, RoundTripSample,
    SpinUse, Timestamp,
};

use super::config::Watch;
use super::entry::{Answer, Asked, Entry, Request};
use super::event::{Event, Variant};
use super::listener::{FlowCounts, Listener};
use super::tally::Tally;
use super::turn::Answered;
use crate::codec::{DecodeError, Reader, Writer};
use crate::question::Question;
use crate::synopsis::{ConfigOption, Needs, OnePoint, Reading, SplitMerge, Synopsis};
use crate::totals::Totals;

/// Where requests wait for their responses: what distinguishes one algorithm from another.
pub trait Store: Clone + PartialEq + Debug + Send + 'static {
    /// Name of the algorithm.
    const NAME: &'static str;
    /// Its tag.
    const TAG: u16;
    /// What it is, in one line.
    const SUMMARY: &'static str;
    /// Its settings.
    const OPTIONS: &'static [ConfigOption];
    /// Whether it is of bounded size. If not, every time is kept as well.
    const BOUNDED: bool;
    /// Whether it loses long round trips without knowing how many, so that its error is unknown.
    const BIASED: bool = false;
    /// Its configuration.
    type Config: Clone + PartialEq + Debug + Default + Send + Serialize + DeserializeOwned;

    /// An empty store.
    fn new(config: &Self::Config) -> Self;
    /// The best configuration within `memory_bytes`.
    fn sized(memory_bytes: u64) -> Option<Self::Config>;
    /// The part of the configuration that all share.
    fn watch(config: &Self::Config) -> &Watch;
    /// Appends the configuration.
    fn encode_config(config: &Self::Config, out: &mut Writer);
    /// Reads the configuration, of any version of the synopsis.
    ///
    /// # Errors
    /// When the bytes are none.
    fn decode_config(input: &mut Reader<'_>, version: u8) -> Result<Self::Config, DecodeError>;

    /// Takes a request.
    fn ask(&mut self, request: &Request) -> Asked;
    /// A request that may still wait.
    fn find(&mut self, id: u64) -> Option<&mut Entry>;
    /// The request that a response answers.
    fn answer(&mut self, id: u64, now: Timestamp) -> Option<Answer>;
    /// An epoch ends: the time for a store to tune itself.
    fn end_epoch(&mut self) {}
    /// How many requests or insertions a round trip may last, of `matched` that were measured,
    /// for its length to be trusted; `None` if there is no such limit.
    fn horizon(config: &Self::Config, pace: &Pace, matched: u64) -> Option<i64>;
    /// Bytes of state.
    fn state_bytes(&self) -> u64;
}

/// How fast requests came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pace {
    /// Requests that were new.
    pub requests: u64,
    /// Those that came into the store.
    pub kept: u64,
    /// When the first and the last came.
    pub span: Option<(Timestamp, Timestamp)>,
}

impl Pace {
    fn count(&mut self, time: Timestamp, kept: bool) {
        self.requests = self.requests.saturating_add(1);
        self.kept = self.kept.saturating_add(u64::from(kept));
        let (first, last) = self.span.unwrap_or((time, time));
        self.span = Some((first.min(time), last.max(time)));
    }

    fn merge(&mut self, other: &Self) {
        self.requests = self.requests.saturating_add(other.requests);
        self.kept = self.kept.saturating_add(other.kept);
        self.span = match (self.span, other.span) {
            (Some(ours), Some(theirs)) => Some((ours.0.min(theirs.0), ours.1.max(theirs.1))),
            (ours, theirs) => ours.or(theirs),
        };
    }

    /// How long it takes until `count` of every `among` that came in this time have come again;
    /// `None` if nothing is known of the pace.
    #[must_use]
    pub fn time_of(&self, count: f64, among: u64) -> Option<i64> {
        let (first, last) = self.span?;
        let length_ns = (last - first).as_nanos();
        // A single burst has no pace.
        (among > 1 && length_ns > 0)
            .then(|| (count * length_ns as f64 / (among - 1) as f64).min(i64::MAX as f64) as i64)
    }
}

/// A synopsis of round trips.
#[derive(Clone, Debug, PartialEq)]
pub struct Watcher<S: Store> {
    config: S::Config,
    totals: Totals,
    pace: Pace,
    listener: Listener,
    store: S,
    tally: Tally,
    /// What was counted of flows, in what was merged or read.
    flows: FlowCounts,
    /// What the listener had counted when the epoch began.
    flows_before: FlowCounts,
}

impl<S: Store> Watcher<S> {
    /// What was counted of flows in this epoch.
    fn flows(&self) -> FlowCounts {
        self.flows.plus(self.listener.counts().minus(self.flows_before))
    }

    fn buckets(config: &S::Config) -> Option<u32> {
        S::BOUNDED.then(|| S::watch(config).buckets)
    }
}

impl<S: Store> Synopsis for Watcher<S> {
    const NAME: &'static str = S::NAME;
    const TAG: u16 = S::TAG;
    const SUMMARY: &'static str = S::SUMMARY;
    const NEEDS: Needs =
        Needs { digest: false, flow: false, detail: true, group: false, exchange: true };
    const OPTIONS: &'static [ConfigOption] = S::OPTIONS;
    const PAGE: &'static str = "round-trip";
    /// 2 has the legs of handshakes apart; 3 has parts of kinds, responses of servers, and what is
    /// known of spin bits.
    const VERSION: u8 = 3;
    /// A response never meets its request if they are in different shards.
    const SPLIT_MERGE: SplitMerge = SplitMerge::Expected;
    type Config = S::Config;

    fn sized(memory_bytes: u64) -> Option<S::Config> {
        S::sized(memory_bytes)
    }

    fn new(config: &S::Config) -> Self {
        let watch = S::watch(config);
        let flows = S::BOUNDED.then_some(watch.flows);
        Self {
            config: config.clone(),
            totals: Totals::default(),
            pace: Pace::default(),
            listener: Listener::new(watch.kinds, u64::from(watch.seed), flows),
            store: S::new(config),
            tally: Tally::new(Self::buckets(config)),
            flows: FlowCounts::default(),
            flows_before: FlowCounts::default(),
        }
    }

    fn config(&self) -> &S::Config {
        &self.config
    }

    fn update(&mut self, observation: &Observation) {
        self.totals.add(observation.length);
    }

    #[inline]
    fn update_detailed(&mut self, observation: &Observation, detail: &Detail) {
        self.totals.add(observation.length);
        let Self { listener, store, tally, pace, config, .. } = self;
        let mut floor = Floor { store, tally, pace, watch: S::watch(config), observation, detail };
        listener.hear(observation, detail, |event, canonical| floor.take(event, canonical));
    }

    /// Requests that wait in `other` are left there.
    fn merge(&mut self, other: &Self) {
        self.totals.merge(other.totals);
        self.pace.merge(&other.pace);
        self.tally.merge(&other.tally);
        self.flows = self.flows.plus(other.flows());
    }

    fn totals(&self) -> Totals {
        self.totals
    }

    fn state_bytes(&self) -> u64 {
        let fixed = (size_of::<Totals>() + size_of::<Pace>()) as u64;
        fixed + self.listener.state_bytes() + self.store.state_bytes() + self.tally.state_bytes()
    }

    /// What waits is not written: it belongs to the point, and a sealed epoch has none.
    fn encode(&self, out: &mut Writer) {
        S::encode_config(&self.config, out);
        self.totals.encode(out);
        let (first, last) = self.pace.span.unwrap_or_default();
        out.u64(self.pace.requests);
        out.u64(self.pace.kept);
        out.u8(self.pace.span.is_some().into());
        out.i64(first.as_nanos());
        out.i64(last.as_nanos());
        self.flows().numbers().into_iter().for_each(|number| out.u64(number));
        self.tally.encode(out);
    }

    /// A group without round trips takes a dozen of the bytes, and a place for a histogram. Tables
    /// are made when they are used.
    fn decoded_bytes(input: &mut Reader<'_>) -> Result<u64, DecodeError> {
        const DECODED_PER_BYTE: u64 = 64;
        Ok(DECODED_PER_BYTE * input.left() as u64)
    }

    fn decode(input: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Self::decode_for(input, Reading { version: Self::VERSION, flows: None })
    }

    fn decode_for(input: &mut Reader<'_>, reading: Reading<'_>) -> Result<Self, DecodeError> {
        let version = reading.version;
        let config = S::decode_config(input, version)?;
        let totals = Totals::decode(input)?;
        let (requests, kept) = (input.u64("new requests")?, input.u64("kept requests")?);
        let any = input.u8("any request")? != 0;
        let first = Timestamp::from_nanos(input.i64("first request")?);
        let last = Timestamp::from_nanos(input.i64("last request")?);
        let pace = Pace { requests, kept, span: any.then_some((first, last)) };
        let mut flows = [0; 7];
        // The first two versions count only flows whose sequence numbers and spin bits were forgotten.
        for number in flows.iter_mut().take(if version < 3 { 2 } else { 7 }) {
            *number = input.u64("counts of flows")?;
        }
        let flows = FlowCounts::of_numbers(flows);
        let tally = Tally::decode(input, Self::buckets(&config), version)?;
        // Only now that all is read are tables made: their size comes from outside.
        Ok(Self { totals, pace, tally, flows, ..Self::new(&config) })
    }
}

impl<S: Store> OnePoint for Watcher<S> {
    type Conclusion = RoundTripEstimate;

    fn conclude(&self, question: &Question<'_>) -> Vec<RoundTripEstimate> {
        let mut estimates = self.tally.conclude(question.distributions, |kind| match kind {
            kind if !waits_in_store(kind) => None,
            kind => S::horizon(&self.config, &self.pace, self.tally.matched(kind)),
        });
        if S::BIASED {
            let waited = estimates.iter_mut().filter(|estimate| waits_in_store(estimate.kind));
            for times in waited.filter_map(|estimate| estimate.times.as_mut()) {
                times.half_width_ns = None;
            }
        }
        let flows = self.flows();
        for estimate in estimates.iter_mut().filter(|estimate| estimate.is_whole()) {
            if S::BOUNDED {
                estimate.forgotten_flows = flows.forgotten(estimate.kind);
            }
            if estimate.kind == RoundTripKind::QuicSpin {
                estimate.spin_use = Some(flows.spin_use).filter(is_count);
            }
        }
        estimates
    }

    fn cut(&mut self) -> Self {
        let (tally, flows) = (self.tally.cut(), self.flows());
        let totals = std::mem::take(&mut self.totals);
        let pace = std::mem::take(&mut self.pace);
        self.store.end_epoch();
        self.flows_before = self.listener.counts();
        self.flows = FlowCounts::default();
        Self { totals, pace, tally, flows, ..Self::new(&self.config) }
    }
}

/// Whether connections were counted, and not only judged otherwise than in an earlier epoch.
fn is_count(uses: &SpinUse) -> bool {
    let SpinUse { usable, constant, random, undecided } = *uses;
    let is_negative = |number: u64| number > u64::MAX / 2;
    uses.connections() > 0 && ![usable, constant, random, undecided].into_iter().any(is_negative)
}

/// Whether requests of a kind wait in the store: spin bits are followed by flow.
const fn waits_in_store(kind: RoundTripKind) -> bool {
    !matches!(kind, RoundTripKind::QuicSpin)
}

/// A synopsis that can hand over single round trips as it finds them.
pub trait RoundTrips: OnePoint<Conclusion = RoundTripEstimate> {
    /// Those found since the last call. The first call finds none: from then on they are kept.
    fn take_samples(&mut self) -> Vec<RoundTripSample>;
}

impl<S: Store> RoundTrips for Watcher<S> {
    fn take_samples(&mut self) -> Vec<RoundTripSample> {
        self.tally.take_samples()
    }
}

/// Where the events of one packet go.
struct Floor<'a, S: Store> {
    store: &'a mut S,
    tally: &'a mut Tally,
    pace: &'a mut Pace,
    watch: &'a Watch,
    observation: &'a Observation,
    detail: &'a Detail,
}

/// What may be the answer to a request that waits.
#[derive(Clone, Copy)]
struct Response {
    kind: RoundTripKind,
    id: u64,
    part: Option<RoundTripPart>,
    expected: bool,
}

impl<S: Store> Floor<'_, S> {
    #[inline]
    fn take(&mut self, event: Event, canonical: bool) {
        match event {
            Event::Request { kind, id, variant } => {
                self.tally.count_request(kind);
                self.ask(kind, id, variant, canonical);
            }
            Event::Alternative { kind, id } => {
                self.ask(kind, id, Variant::default(), canonical);
            }
            Event::Relayed { id, .. } => {
                if let Some(entry) = self.store.find(id) {
                    entry.relay();
                }
            }
            Event::Spoiled { id, .. } => {
                if let Some(entry) = self.store.find(id) {
                    entry.spoil();
                }
            }
            Event::Response { kind, id, part, expected } => {
                self.response(Response { kind, id, part, expected }, canonical);
            }
            Event::Opened { kind } => self.tally.count_request(kind),
            Event::Followed { kind } => self.tally.occur(kind),
            Event::Served { answered, legs_ns } => self.served(answered, legs_ns, canonical),
            Event::Ambiguous { kind } => self.tally.count_ambiguous(kind),
            Event::Turned { kind, rtt_ns } => {
                let answer = Answer {
                    asked: self.observation.time,
                    weight: 1.0,
                    class: self.observation.class,
                    canonical,
                };
                self.tally.count_response(kind);
                self.found((kind, None), rtt_ns, self.detail.key, &answer);
            }
        }
    }

    #[inline]
    fn ask(&mut self, kind: RoundTripKind, id: u64, variant: Variant, canonical: bool) {
        let Observation { time, class, .. } = *self.observation;
        match self.store.ask(&Request { id, kind, time, class, canonical, variant }) {
            Asked::Kept => self.pace.count(time, true),
            Asked::Refused => self.pace.count(time, false),
            Asked::Repeated => {}
            Asked::Poisoned => self.tally.count_ambiguous(kind),
        }
    }

    fn served(&mut self, answered: Answered, legs_ns: Option<(i64, i64)>, canonical: bool) {
        let Answered { after_ns, acknowledged_ns, part, class } = answered;
        let kind = RoundTripKind::ServerResponse;
        self.tally.count_response(kind);
        if let Some(legs_ns) = legs_ns {
            self.tally.count_wait(after_ns, acknowledged_ns, legs_ns);
        }
        let asked = self.observation.time;
        let answer = Answer { asked, weight: 1.0, class, canonical: !canonical };
        self.found((kind, Some(part)), after_ns, self.detail.key.reversed(), &answer);
    }

    #[inline]
    fn response(&mut self, response: Response, canonical: bool) {
        let Response { kind, id, part, expected } = response;
        if expected {
            self.tally.count_response(kind);
        }
        let time = self.observation.time;
        let Some(answer) = self.store.answer(id, time) else { return };
        if !expected {
            self.tally.count_response(kind);
        }
        let key = &self.detail.key;
        let key = if answer.canonical == canonical { *key } else { key.reversed() };
        self.found((kind, part), (time - answer.asked).as_nanos(), key, &answer);
    }

    fn found(
        &mut self,
        (kind, part): (RoundTripKind, Option<RoundTripPart>),
        rtt_ns: i64,
        key: FlowKey,
        answer: &Answer,
    ) {
        let group = self.watch.by.scope(&key, answer.class);
        let (time, weight) = (self.observation.time, answer.weight);
        self.tally.add(RoundTripSample { time, key, kind, part, rtt_ns, weight }, group);
    }
}
