//! The cache of a meter: packets in, flow records out.
//!
//! A record ends when its flow has been idle, when it has been open for too long, when the
//! connection is finished, or when its place is needed. Packets are selected elsewhere; what is
//! counted here is what was given. Nothing here knows formats or the other point.

mod order;
#[cfg(test)]
mod tests;

use std::collections::{HashMap, VecDeque};

use twixt_model::{
    ClassId, Detail, FlowEnd, FlowKey, FlowRecord, Observation, Timestamp, tcp_flag,
};

use self::order::{Links, Order};

/// How a [`FlowCache`] closes records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowCacheConfig {
    /// A record is closed when it has been open for so long.
    pub active_timeout_ns: u64,
    /// A record is closed when no packet came for so long.
    pub inactive_timeout_ns: u64,
    /// Flows that are open at once. The one that has been idle longest makes place for a new one.
    pub entries_max: u32,
}

impl FlowCacheConfig {
    /// Timeouts that exporters have by default: 30 minutes and 15 seconds.
    pub const DEFAULT: Self = Self {
        active_timeout_ns: 30 * 60 * 1_000_000_000,
        inactive_timeout_ns: 15 * 1_000_000_000,
        entries_max: 1 << 18,
    };
}

impl Default for FlowCacheConfig {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// What a [`FlowCache`] did so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowCacheCounts {
    /// Packets it was given.
    pub packets: u64,
    /// Records closed for idleness.
    pub idle: u64,
    /// Records closed for their age.
    pub active: u64,
    /// Records closed by FIN or RST.
    pub finished: u64,
    /// Records closed because their place was needed: raise `entries_max`.
    pub evicted: u64,
    /// Records closed because the meter stopped.
    pub forced: u64,
    /// Packets whose time lay before that of their flow's last packet. They count; the record's
    /// times stay in order.
    pub backwards: u64,
}

/// Open flows, and records that wait to be taken.
///
/// Every call of [`observe`](Self::observe) closes two records at most; take them with
/// [`poll`](Self::poll) before the next, and no more than the open flows are ever held.
#[derive(Clone, Debug)]
pub struct FlowCache {
    config: FlowCacheConfig,
    places: HashMap<(FlowKey, ClassId), u32>,
    entries: Vec<Entry>,
    /// Entries that no flow uses.
    free: Vec<u32>,
    /// Longest idle first.
    by_use: Order,
    /// Oldest first.
    by_age: Order,
    closed: VecDeque<FlowRecord>,
    counts: FlowCacheCounts,
}

#[derive(Clone, Debug)]
pub(super) struct Entry {
    record: FlowRecord,
    use_links: Links,
    age_links: Links,
}

impl FlowCache {
    /// An empty cache. Room is taken as flows come.
    #[must_use]
    pub fn new(config: FlowCacheConfig) -> Self {
        let config = FlowCacheConfig { entries_max: config.entries_max.max(1), ..config };
        Self {
            config,
            places: HashMap::new(),
            entries: Vec::new(),
            free: Vec::new(),
            by_use: Order::new(|entry| &mut entry.use_links),
            by_age: Order::new(|entry| &mut entry.age_links),
            closed: VecDeque::new(),
            counts: FlowCacheCounts::default(),
        }
    }

    /// Counts one packet; its digest is the label.
    pub fn observe(&mut self, observation: &Observation, detail: &Detail) {
        self.counts.packets += 1;
        let name = (detail.key, observation.class);
        let place = match self.places.get(&name).copied() {
            Some(place) => match self.overdue(place, observation.time) {
                Some(end) => {
                    self.close(place, end);
                    self.open(observation, detail)
                }
                None => self.count(place, observation),
            },
            None => {
                if self.places.len() >= self.config.entries_max as usize {
                    let idlest = self.by_use.first().expect("a full cache has flows");
                    self.close(idlest, FlowEnd::Evicted);
                }
                self.open(observation, detail)
            }
        };
        let flags = detail.tcp.map_or(0, |tcp| tcp.flags);
        self.entries[place as usize].record.tcp_flags |= flags;
        if flags & (tcp_flag::FIN | tcp_flag::RST) != 0 {
            self.close(place, FlowEnd::Finished);
        }
    }

    /// Closes what is overdue at this time.
    pub fn advance(&mut self, now: Timestamp) {
        while let Some(place) = self.by_age.first()
            && self.is_aged(place, now)
        {
            self.close(place, FlowEnd::Active);
        }
        while let Some(place) = self.by_use.first()
            && self.is_idle(place, now)
        {
            self.close(place, FlowEnd::Idle);
        }
    }

    /// Closes all that is open: the meter stops.
    pub fn finish(&mut self) {
        while let Some(place) = self.by_age.first() {
            self.close(place, FlowEnd::Forced);
        }
    }

    /// The next record, in the order in which they were closed.
    pub fn poll(&mut self) -> Option<FlowRecord> {
        self.closed.pop_front()
    }

    /// Flows that are open.
    #[must_use]
    pub fn open_flows(&self) -> usize {
        self.places.len()
    }

    /// What it did so far.
    #[must_use]
    pub const fn counts(&self) -> FlowCacheCounts {
        self.counts
    }

    /// Why the record ends before a packet of this time, if it does. A record that is too old
    /// and idle as well was idle first.
    fn overdue(&self, place: u32, now: Timestamp) -> Option<FlowEnd> {
        if self.is_idle(place, now) {
            return Some(FlowEnd::Idle);
        }
        self.is_aged(place, now).then_some(FlowEnd::Active)
    }

    fn is_idle(&self, place: u32, now: Timestamp) -> bool {
        has_passed(self.entries[place as usize].record.last, now, self.config.inactive_timeout_ns)
    }

    fn is_aged(&self, place: u32, now: Timestamp) -> bool {
        has_passed(self.entries[place as usize].record.first, now, self.config.active_timeout_ns)
    }

    fn open(&mut self, observation: &Observation, detail: &Detail) -> u32 {
        let label = Some(observation.digest);
        let record = FlowRecord {
            key: detail.key,
            class: observation.class,
            first: observation.time,
            last: observation.time,
            packets: 1,
            bytes: u64::from(observation.length),
            tcp_flags: 0,
            first_label: label,
            last_label: label,
            end: FlowEnd::Unknown,
            resolution_ns: 1,
        };
        let entry = Entry { record, use_links: Links::default(), age_links: Links::default() };
        let place = match self.free.pop() {
            Some(place) => {
                self.entries[place as usize] = entry;
                place
            }
            None => {
                self.entries.push(entry);
                // entries_max keeps it within 32 bits.
                (self.entries.len() - 1) as u32
            }
        };
        self.places.insert((detail.key, observation.class), place);
        self.by_use.push_last(&mut self.entries, place);
        self.by_age.push_last(&mut self.entries, place);
        place
    }

    fn count(&mut self, place: u32, observation: &Observation) -> u32 {
        let record = &mut self.entries[place as usize].record;
        record.packets += 1;
        record.bytes += u64::from(observation.length);
        if observation.time >= record.last {
            record.last = observation.time;
            record.last_label = Some(observation.digest);
        } else {
            self.counts.backwards += 1;
        }
        self.by_use.remove(&mut self.entries, place);
        self.by_use.push_last(&mut self.entries, place);
        place
    }

    fn close(&mut self, place: u32, end: FlowEnd) {
        self.by_use.remove(&mut self.entries, place);
        self.by_age.remove(&mut self.entries, place);
        let record = self.entries[place as usize].record;
        self.places.remove(&(record.key, record.class));
        self.free.push(place);
        self.closed.push_back(FlowRecord { end, ..record });
        let counts = &mut self.counts;
        *match end {
            FlowEnd::Idle => &mut counts.idle,
            FlowEnd::Active => &mut counts.active,
            FlowEnd::Finished => &mut counts.finished,
            FlowEnd::Evicted => &mut counts.evicted,
            FlowEnd::Unknown | FlowEnd::Forced => &mut counts.forced,
        } += 1;
    }
}

/// Whether this much time lies between the two. Hostile times may be any number.
fn has_passed(from: Timestamp, to: Timestamp, timeout_ns: u64) -> bool {
    let passed_ns = i128::from(to.as_nanos()) - i128::from(from.as_nanos());
    passed_ns >= i128::from(timeout_ns)
}
