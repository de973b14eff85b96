//! One point's meters: one for each algorithm and class.

use twixt_measure::{Cutting, Marker, Meter, MeterConfig, MeterError, Sealed};
use twixt_model::{
    BatchBuffer, ClassId, Delay, Detail, DigestIdentity, EpochRule, Needs, Observation, PointId,
    Span, TimeSource, Timestamp,
};
use twixt_synopsis::{Algorithm, AnySynopsis, DetailsOf};
use twixt_wire::{Observer, Skip, SkipCounts};

use crate::packet_path::{PacketSink, SeenPacket};

/// What the meters of a point have in common.
#[derive(Clone, Debug)]
pub struct MetersConfig {
    /// Within which point names are unique.
    pub domain: String,
    /// Who sees the packets.
    pub point: PointId,
    /// Number of the run.
    pub run: u64,
    /// How time is cut into epochs.
    pub rule: EpochRule,
    /// Algorithms that match packets see one epoch: they cut by when packets left, once that is known.
    pub cut_when_matched: bool,
    /// How far the point's clock is known to be ahead.
    pub shift: Delay,
    /// Half the width of the zone around boundaries; `None`: the default.
    pub guard: Option<Delay>,
    /// How long an epoch stays open for late packets after the next began.
    pub lateness: Delay,
    /// What makes digests comparable.
    pub digest: DigestIdentity,
    /// Who takes the times of packets.
    pub time_source: TimeSource,
    /// What ends an epoch.
    pub cutting: Cutting,
    /// Names of the classes, if estimates are split by class.
    pub classes: Vec<String>,
}

/// One point's meters.
#[derive(Debug, Default)]
pub struct Meters {
    classes: Vec<ClassMeters>,
    packets: u64,
    /// Details are read, if not of all packets.
    detailed: bool,
    details_of: DetailsOf,
    /// Flow hashes are computed of those packets only whose details are read.
    flow_of_few: bool,
    /// Of all packets added so far; kept where there are several classes.
    newest: Option<Timestamp>,
}

/// The meters of one class, in the order of the algorithms, and what waits to be handed to them.
#[derive(Debug)]
struct ClassMeters {
    waiting: BatchBuffer,
    meters: Vec<Meter>,
}

/// An epoch stays open so long after the next began: captures are not strictly in order of time.
pub const LATENESS: Delay = Delay::from_nanos(100_000_000);
/// Whole observations kept on each side of a boundary: 1 MiB.
const STASH_MAX: usize = 1 << 15;

impl MetersConfig {
    /// Of a capture, without classes, cut by time.
    #[must_use]
    pub const fn new(point: PointId, rule: EpochRule, digest: DigestIdentity) -> Self {
        Self {
            domain: String::new(),
            point,
            run: 0,
            rule,
            cut_when_matched: false,
            shift: Delay::ZERO,
            guard: None,
            lateness: LATENESS,
            digest,
            time_source: TimeSource::File,
            cutting: Cutting::Timed,
            classes: Vec::new(),
        }
    }

    fn meter(&self, class: &str, prototype: &dyn AnySynopsis) -> Result<Meter, MeterError> {
        let matches = prototype.algorithm().is_some_and(Algorithm::matches_packets);
        let rule = if self.cut_when_matched && matches { EpochRule::WHOLE } else { self.rule };
        let defaults = MeterConfig::new(self.point.clone(), rule);
        let config = MeterConfig {
            domain: self.domain.clone(),
            class: class.to_owned(),
            run: self.run,
            shift: self.shift,
            guard: self.guard.unwrap_or(defaults.guard),
            stash_max: STASH_MAX,
            lateness: self.lateness,
            time_source: self.time_source,
            cutting: self.cutting.clone(),
            digest: self.digest,
            ..defaults
        };
        Meter::new(config, prototype.fresh())
    }
}

impl Meters {
    /// Nothing seen yet; for each class, a meter for each of the synopses.
    ///
    /// # Errors
    /// When the setting is not one that sealed epochs can carry.
    pub fn new(config: &MetersConfig, prototypes: &[&dyn AnySynopsis]) -> Result<Self, MeterError> {
        let class = |name: &str| -> Result<ClassMeters, MeterError> {
            let meters = prototypes
                .iter()
                .map(|prototype| config.meter(name, *prototype))
                .collect::<Result<_, _>>()?;
            Ok(ClassMeters { waiting: BatchBuffer::new(), meters })
        };
        let classes = match config.classes.as_slice() {
            [] => vec![class("")?],
            names => names.iter().map(|name| class(name)).collect::<Result<_, _>>()?,
        };
        let details_of = match prototypes {
            [only] => only.details_of(),
            _ => DetailsOf::Every,
        };
        let needs = prototypes.iter().map(|prototype| prototype.needs());
        let needs = needs.fold(Needs::default(), Needs::or);
        // Near boundaries whole observations travel with sealed epochs, with their flow hashes.
        let keeps_observations =
            config.rule != EpochRule::WHOLE || config.cutting != Cutting::Timed;
        let flow_of_few =
            needs.flow && needs.detail && details_of.is_by_digest() && !keeps_observations;
        let detailed = needs.detail;
        Ok(Self { classes, packets: 0, detailed, details_of, flow_of_few, newest: None })
    }

    /// Adds a packet.
    #[inline(always)]
    pub fn push(&mut self, observation: Observation) {
        let class = self.class_of(observation.class, observation.time);
        class.waiting.push(observation);
        class.hand_over_if_full();
    }

    /// Adds a packet with details.
    #[inline]
    pub fn push_detailed(&mut self, observation: Observation, detail: Detail) {
        self.push_with(observation, |place| *place = detail);
    }

    /// The same, with details that are written where they stay, as [`BatchBuffer::push_with`].
    #[inline(always)]
    pub fn push_with(&mut self, observation: Observation, write: impl FnOnce(&mut Detail)) {
        let class = self.class_of(observation.class, observation.time);
        class.waiting.push_with(observation, write);
        class.hand_over_if_full();
    }

    /// A marker lies between the packets so far and those to come.
    pub fn observe_marker(&mut self, marker: &Marker) {
        self.hand_over();
        for meter in self.classes.iter_mut().flat_map(|class| &mut class.meters) {
            meter.observe_marker(marker);
        }
    }

    /// Counts frames that were not measured.
    pub fn count_skipped(&mut self, skipped: &SkipCounts) {
        for (skip, count) in skipped.iter() {
            for meter in self.classes.iter_mut().take(1).flat_map(|class| &mut class.meters) {
                meter.count_skipped(skip.name(), count);
            }
        }
    }

    /// Counts frames that the kernel dropped: of the interface, so in every class.
    pub fn count_dropped(&mut self, dropped: u64) {
        for meter in self.classes.iter_mut().flat_map(|class| &mut class.meters) {
            meter.count_dropped(dropped);
        }
    }

    /// Up to so many packets that passed within this time were not observed, of whatever class.
    pub fn note_missing(&mut self, packets: u64, within: Span) {
        for meter in self.classes.iter_mut().flat_map(|class| &mut class.meters) {
            meter.note_missing(packets, within);
        }
    }

    /// Every epoch may lack up to so many packets, of whatever class.
    pub fn expect_missing(&mut self, packets: u64) {
        for meter in self.classes.iter_mut().flat_map(|class| &mut class.meters) {
            meter.expect_missing(packets);
        }
    }

    /// Hands over what waits.
    fn hand_over(&mut self) {
        self.classes.iter_mut().for_each(ClassMeters::hand_over);
    }

    /// Advances the time, so that classes that fall silent seal their epochs too.
    pub fn advance(&mut self, now: Timestamp) {
        self.hand_over();
        for meter in self.classes.iter_mut().flat_map(|class| &mut class.meters) {
            meter.advance(now);
        }
    }

    /// Lets classes of few packets seal their epochs when the others do: an epoch without packets
    /// is one that the other point can be compared with.
    pub fn keep_in_step(&mut self) {
        if let Some(newest) = self.newest {
            self.advance(newest);
        }
    }

    /// Hands over what waits, and seals everything.
    pub fn finish(&mut self) {
        self.hand_over();
        for meter in self.classes.iter_mut().flat_map(|class| &mut class.meters) {
            meter.finish();
        }
    }

    /// The next sealed epoch, with the index of its algorithm.
    pub fn poll(&mut self) -> Option<(usize, Sealed)> {
        let (index, mut sealed) = self.poll_unsettled()?;
        sealed.settle();
        Some((index, sealed))
    }

    /// As [`poll`](Self::poll), for threads that packets wait for; see [`Meter::poll_unsettled`].
    pub fn poll_unsettled(&mut self) -> Option<(usize, Sealed)> {
        self.classes.iter_mut().find_map(|class| {
            let mut meters = class.meters.iter_mut().enumerate();
            meters.find_map(|(index, meter)| Some((index, meter.poll_unsettled()?)))
        })
    }

    /// Packets added so far.
    #[must_use]
    pub const fn packets(&self) -> u64 {
        self.packets
    }

    /// Packets that came after their epoch was sealed.
    #[must_use]
    pub fn late_packets(&self) -> u64 {
        let all = self.classes.iter().filter_map(|class| class.meters.first());
        all.map(|meter| meter.counts().late_packets).sum()
    }

    #[inline(always)]
    fn class_of(&mut self, class: ClassId, time: Timestamp) -> &mut ClassMeters {
        self.packets += 1;
        if self.classes.len() == 1 {
            return &mut self.classes[0];
        }
        if self.newest.is_none() {
            // All classes begin with the first packet of any.
            self.advance(time);
        }
        self.newest = self.newest.max(Some(time));
        &mut self.classes[usize::from(class.0)]
    }
}

impl PacketSink for Meters {
    const MAY_TAKE_BARE: bool = true;

    fn takes_bare(&self) -> bool {
        !self.detailed || self.flow_of_few
    }

    fn adapt(&self, observer: Observer) -> Observer {
        if self.flow_of_few { observer.without_flow() } else { observer }
    }

    #[inline(always)]
    fn take_bare(&mut self, observation: Observation) -> bool {
        if !self.flow_of_few {
            self.push(observation);
        } else if self.details_of.includes(&observation) {
            // One of few: it pays to treat the others as if details were not needed.
            return false;
        } else {
            self.push_with(observation, |_| {});
        }
        true
    }

    #[inline(always)]
    fn take(&mut self, observer: &Observer, seen: SeenPacket<'_>) -> Result<(), Skip> {
        let SeenPacket { observation, packet, frame } = seen;
        match self.detailed {
            true if self.details_of.includes(&observation) => {
                let flow = match self.flow_of_few {
                    true => observer.digester().packet_flow_hash(packet),
                    false => observation.flow,
                };
                let observation = Observation { flow, ..observation };
                let write = |detail: &mut Detail| {
                    packet.write_detail(frame.bytes.bytes(), observer.needs(), detail);
                };
                self.push_with(observation, write);
            }
            // Not read.
            true => self.push_with(observation, |_| {}),
            false => self.push(observation),
        }
        Ok(())
    }

    fn take_marker(&mut self, marker: &Marker) {
        self.observe_marker(marker);
    }
}

impl ClassMeters {
    #[inline]
    fn hand_over_if_full(&mut self) {
        if self.waiting.is_full() {
            self.hand_over();
        }
    }

    #[inline(never)]
    fn hand_over(&mut self) {
        for meter in &mut self.meters {
            meter.observe(self.waiting.as_batch());
        }
        self.waiting.clear();
    }
}
