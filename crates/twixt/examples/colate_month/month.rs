//! A month of recordings, made out of some minutes.

use std::fs;
use std::path::Path;
use std::time::Instant;

use twixt_measure::{Sealed, Stash};
use twixt_model::{Delay, Epoch, Span};
use twixt_store::{Durability, EpochEntry, Log, Options, Query};
use twixt_synopsis::{Colate, Reader, Synopsis, Writer};

use crate::{DAY_MINUTES, MINUTE_NS, Outcome, POINTS, START_NS, store, twixt};

/// Minutes that are simulated. The trace ends a little earlier, so that nothing is in flight
/// where it is repeated.
const SECONDS: u64 = 595;
/// Delays are around 1 ms; whole observations are kept so near to the boundaries of epochs.
const GUARD: &str = "50ms";

/// Fills the store; the name of the largest flow.
pub(crate) fn fill(folder: &Path, days: i64, rate: u64) -> Outcome<String> {
    let flow = simulate(folder, rate)?;
    let started = Instant::now();
    let base: Vec<Vec<Minute>> =
        POINTS.iter().map(|point| minutes(folder, point)).collect::<Outcome<_>>()?;
    let numbers = || base.iter().flatten().map(|minute| minute.sealed.epoch.0);
    let (first, last) = (
        numbers().min().ok_or("nothing was recorded")?,
        numbers().max().ok_or("nothing was recorded")?,
    );
    let log = Log::open(store(folder), Options { level: 1, ..Options::default() });
    for (point, minutes) in POINTS.iter().zip(&base) {
        let mut writer = log.writer(point)?;
        let mut start = START_NS / MINUTE_NS;
        while start < START_NS / MINUTE_NS + days * DAY_MINUTES {
            for minute in minutes {
                let (entry_span, sealed) = minute.postponed(start - first)?;
                let entry =
                    EpochEntry { stream: &minute.stream, span: entry_span, epoch: sealed.epoch };
                writer.append(&entry, &sealed.to_bytes(), Durability::Written)?;
            }
            start += last - first + 1;
        }
        writer.sync()?;
    }
    let bytes = log.bound(u64::MAX)?.left_bytes.unwrap_or(0);
    println!(
        "stored     {days} days of two points at {rate} packets per second, epochs of a minute: \
         {:.2} GiB in {:.0} s",
        bytes as f64 / f64::from(1 << 30),
        started.elapsed().as_secs_f64()
    );
    Ok(flow)
}

/// Simulates a segment and records both of its ends; the name of its largest flow.
fn simulate(folder: &Path, rate: u64) -> Outcome<String> {
    let text = |path: &Path| path.to_string_lossy().into_owned();
    let captures = text(&folder.join("captures"));
    let (packets, rate) = ((rate * SECONDS).to_string(), format!("{rate}pps"));
    let sizes = "pareto:shape=1.05,min=34,max=200000";
    let delay = "per-flow:median=1ms,spread=0.5,jitter=0.7";
    twixt(&[
        "simulate",
        "--out",
        &captures,
        "--flows",
        "20000",
        "--packets",
        &packets,
        "--rate",
        &rate,
        "--flow-size",
        sizes,
        "--delay",
        delay,
    ])?;
    for (point, capture) in POINTS.iter().zip(["upstream", "downstream"]) {
        let capture = format!("{captures}/{capture}.pcap");
        twixt(&[
            "record",
            "-r",
            &capture,
            "--store",
            &text(&folder.join("minutes")),
            "--point",
            point,
            "--epoch",
            "60s",
            "--guard",
            GUARD,
            "-a",
            "colate",
            "--counters",
            "65536",
            "--resolution",
            "1us",
            "--time-bits",
            "24",
            "--digest-bits",
            "8",
        ])?;
    }
    let truth = fs::read_to_string(format!("{captures}/truth.csv"))?;
    fs::remove_dir_all(&captures)?;
    let packets = |line: &&str| line.split(',').nth(1).and_then(|text| text.parse::<u64>().ok());
    let largest = truth.lines().max_by_key(|line| packets(line).unwrap_or(0));
    let name = largest.and_then(|line| line.split(',').next()).ok_or("there is no flow")?;
    Ok(name.to_owned())
}

/// What was recorded of a minute.
struct Minute {
    stream: String,
    span: Span,
    sealed: Sealed,
    counters: Colate,
}

fn minutes(folder: &Path, point: &str) -> Outcome<Vec<Minute>> {
    let log = Log::open(folder.join("minutes"), Options::default());
    let found = log.scan(Query::all().at_point(point))?;
    found
        .map(|found| {
            let sealed = Sealed::from_bytes(&found.payload)?;
            let mut state = Writer::new();
            sealed.synopsis.write(&mut state);
            let counters = Colate::decode(&mut Reader::new(&state.into_bytes()))?;
            Ok(Minute { stream: found.stream, span: found.span, sealed, counters })
        })
        .collect()
}

impl Minute {
    /// As it would have been recorded so many minutes later.
    fn postponed(&self, minutes: i64) -> Outcome<(Span, Sealed)> {
        let delay = Delay::from_nanos(minutes * MINUTE_NS);
        let later = |span: Span| Span { start: span.start + delay, end: span.end + delay };
        let counters =
            self.counters.postponed(delay).ok_or("a minute is no multiple of the resolution")?;
        let sealed = Sealed {
            epoch: Epoch(self.sealed.epoch.0 + minutes),
            seen: self.sealed.seen.map(later),
            head: postponed(Stash::head(self.sealed.head.max()), &self.sealed.head, delay),
            tail: postponed(Stash::tail(self.sealed.tail.max()), &self.sealed.tail, delay),
            synopsis: Box::new(counters),
            ..self.sealed.clone()
        };
        Ok((later(self.span), sealed))
    }
}

fn postponed(mut empty: Stash, stash: &Stash, delay: Delay) -> Stash {
    for &observation in stash.observations() {
        let time = observation.time + delay;
        empty.insert(twixt_model::Observation { time, ..observation });
    }
    empty
}
