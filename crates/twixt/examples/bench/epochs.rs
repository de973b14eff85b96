//! What an epoch costs once its packets are counted: a fresh synopsis for the next, bytes, and back,
//! and what both ends tell together.

use std::time::Duration;

use twixt_model::{Batch, Detail, Observation, Span, Timestamp};
use twixt_sim::{Config, Side, Simulation};
use twixt_synopsis::{
    ALGORITHMS, Algorithm, AnySynopsis, Estimator, Pair, Purpose, Question, decode, encode,
};

use super::clock::Start;
use super::table::{Row, Table};

/// Packets of the epoch.
const PACKETS: u64 = 1_000_000;

/// What is shorter is repeated.
const MEASURED_MIN: Duration = Duration::from_millis(50);

/// One line for each algorithm for delays, with its defaults.
pub(crate) fn table(repeats: usize, is_asked_for: impl Fn(&str) -> bool) -> Option<Table> {
    let algorithms = ALGORITHMS.iter().filter(|entry| entry.purpose == Purpose::Delay);
    let named = algorithms.map(|entry| (format!("epoch of {}", entry.name), entry));
    let asked: Vec<_> = named.filter(|(name, _)| is_asked_for(name)).collect();
    if asked.is_empty() {
        return None;
    }
    let ends = [Side::Upstream, Side::Downstream].map(seen);
    let lines = asked.into_iter().map(|(name, entry)| line(name, entry, &ends, repeats));
    Some(Table {
        title: "a million packets",
        columns: ["seal, ms", "encode, ms", "decode, ms", "pair, ms", "encoded, KiB"]
            .map(str::to_owned)
            .to_vec(),
        lines: lines.collect(),
    })
}

type Seen = (Vec<Observation>, Vec<Detail>);

fn seen(point: Side) -> Seen {
    let config = Config { packets: Some(PACKETS), ..Config::default() };
    let simulation = Simulation::run(&config).unwrap();
    let details = simulation.sightings(point).map(|sighting| simulation.detail(sighting));
    (simulation.observations(point).collect(), details.collect())
}

fn line(name: String, algorithm: &Algorithm, ends: &[Seen; 2], repeats: usize) -> Row {
    let synopses = ends.each_ref().map(|seen| filled(algorithm, seen));
    let [upstream, downstream] = synopses.each_ref().map(|synopsis| &**synopsis);
    let bytes = encode(upstream);
    let Estimator::TwoPoint { estimate, .. } = algorithm.estimator else { unreachable!() };
    let question = Question::about(Span::at(Timestamp::from_nanos(0)));
    let milliseconds = [
        median(repeats, || upstream.fresh()),
        median(repeats, || encode(upstream)),
        median(repeats, || decode(&bytes).unwrap()),
        median(repeats, || estimate(Pair { upstream, downstream }, &question).unwrap()),
    ]
    .map(|taken| Some(taken.as_secs_f64() * 1e3));
    let kibibytes = bytes.len() as f64 / 1024.0;
    Row { name, values: milliseconds.into_iter().chain([Some(kibibytes)]).collect() }
}

fn filled(algorithm: &Algorithm, (observations, details): &Seen) -> Box<dyn AnySynopsis> {
    let mut synopsis = (algorithm.start)(&toml::Table::new()).unwrap();
    for start in (0..observations.len()).step_by(256) {
        let end = (start + 256).min(observations.len());
        synopsis.update_batch(Batch { observations, details }.slice(start, end));
    }
    synopsis
}

/// How long something takes, and letting go of what comes out: often enough for the clock to tell.
fn median<T>(repeats: usize, mut run: impl FnMut() -> T) -> Duration {
    let mut times: Vec<Duration> = (0..repeats)
        .map(|_| {
            let (start, mut rounds) = (Start::now(), 0);
            while rounds == 0 || start.passed() < MEASURED_MIN {
                drop(std::hint::black_box(run()));
                rounds += 1;
            }
            start.elapsed() / rounds
        })
        .collect();
    times.sort();
    times[repeats / 2]
}
