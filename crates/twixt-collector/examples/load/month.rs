//! Weeks of epochs, sent over HTTP to a collector whose clock runs as fast as they come.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

use twixt_collector::{Collector, EventSink, StopRequest, WallClock};
use twixt_engine::EngineEvent;
use twixt_model::{Delay, Observation, PacketDigest, Timestamp, mix};
use twixt_synopsis::{Purpose, find};

use crate::agents::{Agent, client, now_ns};
use crate::serving::config;

/// Every packet passes all points: each of the first is compared with each of the others.
const UPSTREAM_POINTS: usize = 10;
const DOWNSTREAM_POINTS: usize = 20;
pub(crate) const SEGMENTS: usize = UPSTREAM_POINTS * DOWNSTREAM_POINTS;
pub(crate) const MINUTE_NS: i64 = 60_000_000_000;
pub(crate) const HOUR_NS: i64 = 60 * MINUTE_NS;
pub(crate) const DAY_NS: i64 = 24 * HOUR_NS;
/// Packets of a minute, all of them in the sample.
const PACKETS: i64 = 200;
/// Sent at a time: of one point only so many epochs can wait for those of another.
const STEP_NS: i64 = 10 * MINUTE_NS;
/// Estimates may be so far behind what was sent.
const BEHIND_MINUTES: u64 = 25;
/// Hours are sealed by the clock: it must not be ahead of estimates.
const CLOCK_BEHIND_NS: i64 = 30 * MINUTE_NS;
const THREADS: usize = 4;

/// The points of a segment.
pub(crate) fn points(segment: usize) -> [String; 2] {
    let (upstream, downstream) = (segment / DOWNSTREAM_POINTS, segment % DOWNSTREAM_POINTS);
    [format!("west-{upstream:02}"), format!("east-{downstream:02}")]
}

/// Sends an epoch a minute of every point, and waits until all is estimated and sealed. How many
/// epochs that were.
pub(crate) fn fill(folder: &Path, start_ns: i64, end_ns: i64) -> u64 {
    let (clock, stop, estimated) =
        (WallClock::system(), StopRequest::new(), Arc::new(AtomicU64::new(0)));
    let mut config = config(folder, (0..SEGMENTS).map(points));
    config.clock = clock.clone();
    config.engine.patience = Delay::from_nanos(DAY_NS);
    let set = |moment_ns: i64| clock.set_ahead_ns(moment_ns - now_ns());
    set(start_ns);
    let sink = Box::new(Counting(estimated.clone()));
    let (sender, addresses) = channel();
    thread::scope(|scope| {
        let stop = &stop;
        scope.spawn(move || {
            let ready = |addresses: twixt_collector::Addresses| {
                sender.send(addresses.listen.to_string()).unwrap();
            };
            Collector::new(config).unwrap().run(sink, stop, ready).unwrap();
        });
        let address = addresses.recv().unwrap();
        let mut agents = agents(start_ns / MINUTE_NS);
        let started = Instant::now();
        for from_ns in (start_ns..end_ns).step_by(STEP_NS as usize) {
            let until_ns = from_ns + STEP_NS;
            let minutes = (until_ns - start_ns) / MINUTE_NS;
            send(&mut agents, until_ns + 3 * MINUTE_NS, &address);
            let expected = (minutes as u64).saturating_sub(BEHIND_MINUTES) * SEGMENTS as u64;
            wait_until(|| estimated.load(Ordering::Relaxed) >= expected);
            set(until_ns - CLOCK_BEHIND_NS);
            if until_ns % DAY_NS == 0 {
                eprintln!("{} days in {:.0?}", minutes / 1_440, started.elapsed());
            }
        }
        set(end_ns + 2 * HOUR_NS);
        let hours = (end_ns - start_ns) / HOUR_NS;
        wait_until(|| sealed(&folder.join(twixt_collector::ESTIMATES_FOLDER)) >= hours);
        stop.request();
        agents.iter().map(|agent| agent.acknowledged).sum()
    })
}

/// Counts estimates.
struct Counting(Arc<AtomicU64>);

impl EventSink for Counting {
    fn take(&mut self, event: &EngineEvent) -> io::Result<()> {
        if matches!(event, EngineEvent::Estimated(_)) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn agents(first: i64) -> Vec<Agent> {
    let agent = |point: String, delay: fn(usize, u64, i64) -> i64, number: usize| {
        let settings = toml::toml! { budget_bytes = 16384 };
        let synopsis = (find(Purpose::Delay, "sample").unwrap().start)(&settings).unwrap();
        let packets = move |minute: i64| {
            (0..PACKETS).map(move |packet| observation(minute, packet, number, delay)).collect()
        };
        Agent::sending(point, (MINUTE_NS, first), synopsis, packets)
    };
    let upstream = (0..UPSTREAM_POINTS)
        .map(|number| agent(points(number * DOWNSTREAM_POINTS)[0].clone(), |_, _, _| 0, number));
    let downstream =
        (0..DOWNSTREAM_POINTS).map(|number| agent(points(number)[1].clone(), delay_ns, number));
    upstream.chain(downstream).collect()
}

fn observation(
    minute: i64,
    packet: i64,
    point: usize,
    delay_ns: impl Fn(usize, u64, i64) -> i64,
) -> Observation {
    let digest = mix((minute * PACKETS + packet) as u64);
    let left_ns = minute * MINUTE_NS + packet * (MINUTE_NS / PACKETS);
    Observation {
        time: Timestamp::from_nanos(left_ns + delay_ns(point, digest, left_ns)),
        digest: PacketDigest(digest),
        length: 100,
        ..Observation::default()
    }
}

/// Rises and falls with the day, and is different for every packet and point.
fn delay_ns(point: usize, digest: u64, left_ns: i64) -> i64 {
    let phase = (left_ns % DAY_NS) as f64 / DAY_NS as f64 * std::f64::consts::TAU;
    let base_ns = 1e6 * (1.0 + point as f64 / 10.0) * (1.5 + phase.sin());
    let uniform = ((mix(digest ^ point as u64) >> 11) as f64 + 1.0) / (1_u64 << 53) as f64;
    (base_ns * (1.0 - 0.3 * uniform.ln())) as i64
}

fn send(agents: &mut [Agent], until_ns: i64, address: &str) {
    let share = agents.len().div_ceil(THREADS);
    thread::scope(|scope| {
        for agents in agents.chunks_mut(share) {
            scope.spawn(move || {
                let client = client();
                for agent in agents {
                    agent.observe(until_ns);
                    while !agent.is_empty() {
                        agent.send(&client, address);
                    }
                }
            });
        }
    });
}

fn wait_until(is_so: impl Fn() -> bool) {
    while !is_so() {
        thread::sleep(Duration::from_millis(5));
    }
}

/// Hours that are sealed: a folder for each day, files that begin with the hour.
fn sealed(folder: &Path) -> i64 {
    let within = |folder: &Path| std::fs::read_dir(folder).into_iter().flatten().flatten();
    let days = within(&folder.join("epochs")).map(|day| day.path());
    let hours = |day: PathBuf| {
        let names = within(&day).filter_map(|file| file.file_name().into_string().ok());
        let files = names.filter(|name| name.ends_with(".parquet"));
        files.map(|name| name[..2].to_owned()).collect::<BTreeSet<_>>().len() as i64
    };
    days.map(hours).sum()
}
