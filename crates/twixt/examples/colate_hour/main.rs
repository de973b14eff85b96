//! What COLATE takes to store at half a million packets per second, and what it costs to take less.
//!
//! Packets go straight into counters: sums do not depend on the order of packets, so that flows are
//! counted one after the other and no trace is made or sorted. Every epoch has flows of its own, of
//! very unequal size; their delays are around 1 ms, half of it their own. Each epoch is sealed, with
//! the whole observations near its boundaries, and appended to a store, as `twixt record` does.
//! Prints one line for each setting: epochs of the first line for all of the time, of the others for
//! as long as it takes to see that they are all alike.
//!
//! `cargo run --release --example colate_hour -- FOLDER [SECONDS] [PACKETS PER SECOND]`

mod epoch;
mod traffic;

use std::error::Error;
use std::path::Path;
use std::time::Instant;

use epoch::Recorded;
use twixt_synopsis::{
    ColateConfig, ColateGoal, ColatePlan, ColateTraffic, PlannedEstimator, Reliability, Stored,
};

/// Whatever goes wrong ends it.
type Outcome<T> = Result<T, Box<dyn Error>>;

/// One line of the table.
#[derive(Clone, Copy)]
struct Setting {
    epoch_s: u64,
    counters: u32,
    stored: Stored,
    /// How much of the time is simulated, and whether flows are asked for.
    seconds: u64,
    asks: bool,
}

fn main() -> Outcome<()> {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().ok_or("name a folder to write to; it is deleted afterwards")?;
    let seconds = arguments.next().map_or(Ok(3600), |text| text.parse())?;
    let rate = arguments.next().map_or(Ok(500_000), |text| text.parse())?;
    if Path::new(&folder).exists() {
        return Err(format!("{folder} is there already").into());
    }
    println!(
        "| epoch | counters | packets per counter | resolution, time bits, digest bits | epochs | \
         bits per packet | least and most of an epoch | with boundaries | error of flows of 1000 \
         packets, planned | of 1000 and more, median |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|");
    let started = Instant::now();
    for setting in settings(seconds) {
        let outcome = line(Path::new(&folder), &setting, rate);
        std::fs::remove_dir_all(&folder)?;
        outcome?;
    }
    println!("\nin {:.0} s", started.elapsed().as_secs_f64());
    Ok(())
}

fn settings(seconds: u64) -> Vec<Setting> {
    let stored =
        |resolution_ns, time_bits, digest_bits| Stored { resolution_ns, time_bits, digest_bits };
    let of = |epoch_s, counters, stored| Setting {
        epoch_s,
        counters,
        stored,
        seconds: 3 * epoch_s.min(60).max(epoch_s / 3),
        asks: false,
    };
    let main = of(60, 65_536, stored(1000, 24, 8));
    vec![
        Setting { seconds, asks: true, ..main },
        of(60, 65_536, Stored::default()),
        of(60, 65_536, stored(1000, 24, 16)),
        of(60, 65_536, stored(1000, 24, 0)),
        of(60, 65_536, stored(10_000, 20, 4)),
        of(60, 524_288, stored(1000, 24, 8)),
        Setting { asks: true, ..of(6, 65_536, stored(1000, 24, 8)) },
        of(600, 524_288, stored(1000, 24, 8)),
        of(600, 65_536, stored(1000, 28, 8)),
    ]
}

fn line(folder: &Path, setting: &Setting, rate: u64) -> Outcome<()> {
    let config = ColateConfig::new(setting.counters, traffic::PER_FLOW, &[1.0])?;
    let config = config.with_stored(setting.stored)?;
    let recorded = Recorded::of(folder, setting, &config, rate)?;
    let Stored { resolution_ns, time_bits, digest_bits } = setting.stored;
    let packets = (rate * setting.epoch_s) as f64;
    println!(
        "| {} s | {} | {:.0} | {resolution_ns} ns, {time_bits}, {digest_bits} | {} | {:.3} | {:.3} to {:.3} | \
         {:.3} | {:.1} % | {} |",
        setting.epoch_s,
        setting.counters,
        packets / f64::from(setting.counters),
        recorded.epochs,
        recorded.mean_bits,
        recorded.least_bits,
        recorded.most_bits,
        recorded.stored_bits,
        planned(&config, packets) * 100.0,
        recorded.error.map_or("–".to_owned(), |error| format!("{:.2} %", error * 100.0)),
    );
    Ok(())
}

/// What `twixt plan colate` expects of flows of a thousand packets.
fn planned(config: &ColateConfig, packets: f64) -> f64 {
    let traffic = ColateTraffic {
        least: traffic::SMALLEST,
        smallest: traffic::SMALLEST,
        largest: traffic::LARGEST,
        spread: traffic::SPREAD,
        jitter: traffic::JITTER,
    };
    let goal = ColateGoal {
        wanted: Reliability { reliability: 0.95, interval: 0.05 },
        estimator: PlannedEstimator::Joint,
        packets: Some(packets),
        delay_units: 1e6,
    };
    let plan = ColatePlan::within(config.state_bytes(), &traffic, &goal);
    plan.map_or(f64::NAN, |plan| plan.expected_error(&traffic, PlannedEstimator::Joint, 1000.0))
}
