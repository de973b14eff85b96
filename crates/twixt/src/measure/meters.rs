//! One point's meters: one for each algorithm and class.

use twixt_measure::{Cutting, Marker, Meter, MeterConfig, Sealed};
use twixt_model::{
    BatchBuffer, Delay, Detail, DigestIdentity, EpochRule, Observation, PointId, TimeSource,
    Timestamp,
};
use twixt_wire::SkipCounts;

use crate::args::{Chosen, Split};
use crate::exit::usage;

/// What the meters of a point have in common.
pub(crate) struct Setting {
    pub(crate) domain: String,
    pub(crate) point: PointId,
    pub(crate) run: u64,
    pub(crate) rule: EpochRule,
    pub(crate) shift: Delay,
    /// Half the width of the zone around boundaries; `None`: the default.
    pub(crate) guard: Option<Delay>,
    pub(crate) digest: DigestIdentity,
    /// Who takes the times of packets.
    pub(crate) time_source: TimeSource,
    /// What ends an epoch.
    pub(crate) cutting: Cutting,
    /// Names of the classes, if estimates are split by class.
    pub(crate) classes: Vec<String>,
}

/// One point's meters.
#[derive(Default)]
pub(crate) struct Meters {
    classes: Vec<ClassMeters>,
    packets: u64,
}

/// The meters of one class, in the order of the algorithms, and what waits to be handed to them.
struct ClassMeters {
    waiting: BatchBuffer,
    meters: Vec<Meter>,
}

/// An epoch stays open so long after the next began: captures are not strictly in order of time.
const LATENESS: Delay = Delay::from_nanos(100_000_000);
/// Whole observations kept on each side of a boundary: 1 MiB.
const STASH_MAX: usize = 1 << 15;

impl Setting {
    /// The class names that meters are split by.
    pub(crate) fn classes_of(split: Split, names: impl Iterator<Item = String>) -> Vec<String> {
        if split == Split::Class { names.collect() } else { Vec::new() }
    }

    fn meter(&self, class: &str, chosen: &Chosen) -> anyhow::Result<Meter> {
        let defaults = MeterConfig::new(self.point.clone(), self.rule);
        let config = MeterConfig {
            domain: self.domain.clone(),
            class: class.to_owned(),
            run: self.run,
            shift: self.shift,
            guard: self.guard.unwrap_or(defaults.guard),
            stash_max: STASH_MAX,
            lateness: LATENESS,
            time_source: self.time_source,
            cutting: self.cutting.clone(),
            digest: self.digest,
            ..defaults
        };
        Meter::new(config, chosen.prototype.fresh()).map_err(|error| usage(error.to_string()))
    }
}

impl Meters {
    /// Nothing seen yet.
    pub(crate) fn new(setting: &Setting, algorithms: &[Chosen]) -> anyhow::Result<Self> {
        let class = |name: &str| -> anyhow::Result<ClassMeters> {
            let meters = algorithms
                .iter()
                .map(|chosen| setting.meter(name, chosen))
                .collect::<Result<_, _>>()?;
            Ok(ClassMeters { waiting: BatchBuffer::new(), meters })
        };
        let classes = match setting.classes.as_slice() {
            [] => vec![class("")?],
            names => names.iter().map(|name| class(name)).collect::<Result<_, _>>()?,
        };
        Ok(Self { classes, packets: 0 })
    }

    /// Adds a packet.
    #[inline]
    pub(crate) fn push(&mut self, observation: Observation) {
        let class = self.class_of(&observation);
        class.waiting.push(observation);
        class.hand_over_if_full();
    }

    /// Adds a packet with details.
    #[inline]
    pub(crate) fn push_detailed(&mut self, observation: Observation, detail: Detail) {
        let class = self.class_of(&observation);
        class.waiting.push_detailed(observation, detail);
        class.hand_over_if_full();
    }

    /// A marker lies between the packets so far and those to come.
    pub(crate) fn observe_marker(&mut self, marker: &Marker) {
        self.hand_over();
        for meter in self.classes.iter_mut().flat_map(|class| &mut class.meters) {
            meter.observe_marker(marker);
        }
    }

    /// Counts frames that were not measured.
    pub(crate) fn count_skipped(&mut self, skipped: &SkipCounts) {
        for (skip, count) in skipped.iter() {
            for meter in self.classes.iter_mut().take(1).flat_map(|class| &mut class.meters) {
                meter.count_skipped(skip.name(), count);
            }
        }
    }

    /// Counts frames that the kernel lost.
    pub(crate) fn count_dropped(&mut self, dropped: u64) {
        for meter in self.classes.iter_mut().take(1).flat_map(|class| &mut class.meters) {
            meter.count_dropped(dropped);
        }
    }

    /// Hands over what waits.
    fn hand_over(&mut self) {
        self.classes.iter_mut().for_each(ClassMeters::hand_over);
    }

    /// Tells the time, so that classes that fall silent seal their epochs too.
    pub(crate) fn advance(&mut self, now: Timestamp) {
        self.hand_over();
        for meter in self.classes.iter_mut().flat_map(|class| &mut class.meters) {
            meter.advance(now);
        }
    }

    /// Hands over what waits, and seals everything.
    pub(crate) fn finish(&mut self) {
        self.hand_over();
        for meter in self.classes.iter_mut().flat_map(|class| &mut class.meters) {
            meter.finish();
        }
    }

    /// The next sealed epoch, with the index of its algorithm.
    pub(crate) fn poll(&mut self) -> Option<(usize, Sealed)> {
        self.classes.iter_mut().find_map(|class| {
            let meters = class.meters.iter_mut().enumerate();
            meters.filter_map(|(index, meter)| Some((index, meter.poll()?))).next()
        })
    }

    /// Packets added so far.
    pub(crate) const fn packets(&self) -> u64 {
        self.packets
    }

    #[inline]
    fn class_of(&mut self, observation: &Observation) -> &mut ClassMeters {
        self.packets += 1;
        let index = if self.classes.len() == 1 { 0 } else { usize::from(observation.class.0) };
        &mut self.classes[index]
    }
}

impl ClassMeters {
    #[inline]
    fn hand_over_if_full(&mut self) {
        if self.waiting.is_full() {
            self.hand_over();
        }
    }

    fn hand_over(&mut self) {
        for meter in &mut self.meters {
            meter.observe(self.waiting.as_batch());
        }
        self.waiting.clear();
    }
}
