//! Two clocks and two paths whose truth is known, and what two points would see of packets between
//! them. Plain loops over a seeded generator; nothing of it is shared with what is tested.

use twixt_model::{Delay, Timestamp};

use crate::clock::ClockPoint;

pub(super) const START_NS: f64 = 1_700_000_000e9;
pub(super) const MS: f64 = 1e6;

/// Draws numbers by a permuted congruence.
pub(super) struct Draw(u64);

impl Draw {
    pub(super) fn new(seed: u64) -> Self {
        let mut draw = Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5555_aaaa);
        (0..4).for_each(|_| {
            draw.uniform();
        });
        draw
    }

    pub(super) fn uniform(&mut self) -> f64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let mixed = (self.0 ^ (self.0 >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
        ((mixed ^ (mixed >> 32)) >> 11) as f64 / (1_u64 << 53) as f64
    }

    pub(super) fn exponential(&mut self) -> f64 {
        -(1.0 - self.uniform()).ln()
    }
}

/// What packets suffer beside the length of the path.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Noise {
    /// Exponential around 100 µs.
    Light,
    /// Weibull of shape 0.6: many near the floor, and a long tail.
    Heavy,
    /// A queue with Poisson arrivals of other traffic, of this load; a packet takes 0.2 ms.
    Queue(f64),
    /// A queue whose load rises from 0.5 to this.
    Filling(f64),
}

type Course = Box<dyn Fn(f64) -> f64>;

/// One direction.
pub(super) struct Path {
    pub(super) floor_ns: f64,
    pub(super) noise: Noise,
    /// Added from when to when, by seconds.
    pub(super) extra_ns: Course,
    pub(super) per_second: f64,
}

impl Path {
    pub(super) fn new(floor_ms: f64, noise: Noise) -> Self {
        Self { floor_ns: floor_ms * MS, noise, extra_ns: Box::new(|_| 0.0), per_second: 200.0 }
    }

    pub(super) fn with(self, extra_ns: impl Fn(f64) -> f64 + 'static) -> Self {
        Self { extra_ns: Box::new(extra_ns), ..self }
    }

    /// When packets leave, in seconds, and how long each takes.
    fn packets(&self, seconds: f64, draw: &mut Draw) -> Vec<(f64, f64)> {
        let (mut packets, mut time, mut queue_ns) = (Vec::new(), 0.0, 0.0_f64);
        loop {
            let gap = draw.exponential() / self.per_second;
            time += gap;
            if time >= seconds {
                return packets;
            }
            let suffered = match self.noise {
                Noise::Light => 1e5 * draw.exponential(),
                Noise::Heavy => 1e5 * draw.exponential().powf(1.0 / 0.6),
                Noise::Queue(load) => {
                    queue_ns = queued(queue_ns, gap, load, draw);
                    queue_ns
                }
                Noise::Filling(load) => {
                    let now = 0.5 + (load - 0.5) * time / seconds;
                    queue_ns = queued(queue_ns, gap, now, draw);
                    queue_ns
                }
            };
            packets.push((time, self.floor_ns + (self.extra_ns)(time) + suffered));
        }
    }
}

/// What waits in a queue after a time in which others arrived.
fn queued(mut queue_ns: f64, gap: f64, load: f64, draw: &mut Draw) -> f64 {
    const SERVICE_NS: f64 = 200_000.0;
    let mut left_ns = gap * 1e9;
    loop {
        let next_ns = draw.exponential() * SERVICE_NS / load;
        if next_ns >= left_ns {
            return (queue_ns - left_ns).max(0.0);
        }
        left_ns -= next_ns;
        queue_ns = (queue_ns - next_ns).max(0.0) + SERVICE_NS * draw.exponential();
    }
}

/// Two points, their clocks, and the paths between them.
pub(super) struct World {
    pub(super) seconds: f64,
    pub(super) forward: Path,
    pub(super) backward: Option<Path>,
    /// What each clock shows beyond the true time, in nanoseconds, by true seconds.
    pub(super) up_clock: Course,
    pub(super) down_clock: Course,
    pub(super) seed: u64,
}

impl World {
    pub(super) fn new(seconds: f64, forward: Path, backward: Option<Path>) -> Self {
        let right = || Box::new(|_| 0.0);
        Self { seconds, forward, backward, up_clock: right(), down_clock: right(), seed: 1 }
    }

    pub(super) fn down(self, clock: impl Fn(f64) -> f64 + 'static) -> Self {
        Self { down_clock: Box::new(clock), ..self }
    }

    pub(super) fn up(self, clock: impl Fn(f64) -> f64 + 'static) -> Self {
        Self { up_clock: Box::new(clock), ..self }
    }

    pub(super) fn seed(self, seed: u64) -> Self {
        Self { seed, ..self }
    }

    /// Packets of both directions, each with the true second at which it was seen upstream.
    pub(super) fn points(&self) -> [Vec<(f64, ClockPoint)>; 2] {
        let mut draw = Draw::new(self.seed);
        let stamp =
            |clock: &Course, time: f64| START_NS as i64 + (time * 1e9 + clock(time)).round() as i64;
        let point = |up: f64, down: f64| {
            let (up_ns, down_ns) = (stamp(&self.up_clock, up), stamp(&self.down_clock, down));
            let time = Timestamp::from_nanos(up_ns);
            (up, ClockPoint { time, difference: Delay::from_nanos(down_ns - up_ns), flow: 0 })
        };
        let there = self.forward.packets(self.seconds, &mut draw);
        let back = self.backward.as_ref().map(|path| path.packets(self.seconds, &mut draw));
        let there = there.iter().map(|(sent, took)| point(*sent, sent + took / 1e9)).collect();
        let back = back.iter().flatten().map(|(sent, took)| point(sent + took / 1e9, *sent));
        [there, back.collect()]
    }

    /// How far the downstream clock is ahead, at a true second.
    pub(super) fn ahead_ns(&self, second: f64) -> f64 {
        (self.down_clock)(second) - (self.up_clock)(second)
    }
}
