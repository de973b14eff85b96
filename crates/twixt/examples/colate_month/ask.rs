//! One flow, asked for in the middle of the month.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use serde_json::Value;
use twixt_model::Timestamp;
use twixt_store::Day;

use crate::{DAY_MINUTES, MINUTE_NS, Outcome, POINTS, START_NS, store, twixt};

/// Each measurement is repeated, and the median counts.
const REPEATS: usize = 9;
/// Minutes after midnight.
const TEN_O_CLOCK: i64 = 600;

/// Asks for most of a day, for an hour and for a few minutes.
pub(crate) fn all(folder: &Path, days: i64, flow: &str) -> Outcome<()> {
    for minutes in [DAY_MINUTES - TEN_O_CLOCK, 60, 5] {
        Asked { store: store(folder), day: days / 2, minutes, flow: flow.to_owned() }.measure()?;
    }
    Ok(())
}

struct Asked {
    store: PathBuf,
    /// Of the month.
    day: i64,
    minutes: i64,
    flow: String,
}

impl Asked {
    fn measure(&self) -> Outcome<()> {
        let document: Value = serde_json::from_slice(&self.query()?)?;
        let read = |key: &str| document["read"][key].as_u64().unwrap_or(0);
        let bytes = read("data_bytes") + read("index_bytes");
        let total = &document["total"][0];
        println!(
            "\n{} minutes: read {} epochs, {} bytes of data and {} of indexes",
            self.minutes,
            read("records"),
            read("data_bytes"),
            read("index_bytes")
        );
        println!(
            "           {}: {} packets, {} ns, 95 % interval {} to {}",
            self.flow,
            total["packets"],
            total["mean_ns"],
            total["ci95_low_ns"],
            total["ci95_high_ns"]
        );
        self.compare("in memory", bytes, || Ok(()))?;
        self.compare("from disk", bytes, || self.forget())
    }

    fn compare(&self, name: &str, bytes: u64, prepare: impl Fn() -> Outcome<()>) -> Outcome<()> {
        let used_before = children_ms()?;
        let query = median_ms(&prepare, || self.query().map(drop))?;
        let used = (children_ms()? - used_before) / REPEATS as f64;
        let plain = median_ms(&prepare, || self.read_plainly(bytes))?;
        println!(
            "{name:<10} query {query:.1} ms, {used:.0} ms of them of a processor; as many bytes \
             read plainly {plain:.1} ms; ratio {:.1}",
            query / plain
        );
        Ok(())
    }

    fn query(&self) -> Outcome<Vec<u8>> {
        let start = START_NS + (self.day * DAY_MINUTES + TEN_O_CLOCK) * MINUTE_NS;
        let end = start + self.minutes * MINUTE_NS - 1;
        twixt(&[
            "query",
            "--store",
            &self.store.to_string_lossy(),
            "--from",
            POINTS[0],
            "--to",
            POINTS[1],
            "--flow",
            &self.flow,
            "--start",
            &start.to_string(),
            "--end",
            &end.to_string(),
            "-F",
            "json",
        ])
    }

    /// The files of the day.
    fn files(&self) -> impl Iterator<Item = PathBuf> + '_ {
        let day = Day::of(Timestamp::from_nanos(START_NS + self.day * DAY_MINUTES * MINUTE_NS));
        POINTS.iter().map(move |point| self.store.join(point).join(format!("{day}.twxl")))
    }

    /// Reads as many bytes as a query did, about where it found them.
    fn read_plainly(&self, bytes: u64) -> Outcome<()> {
        let mut buffer = vec![0; 1 << 18];
        for path in self.files() {
            let file = File::open(path)?;
            let length = file.metadata()?.len();
            let mut left = (bytes / 2).min(length) as usize;
            let place = length * TEN_O_CLOCK as u64 / DAY_MINUTES as u64;
            let mut place = place.min(length - left as u64);
            while left > 0 {
                let piece = left.min(buffer.len());
                file.read_exact_at(&mut buffer[..piece], place)?;
                place += piece as u64;
                left -= piece;
            }
        }
        Ok(())
    }

    /// Has the system forget what it holds of the files.
    fn forget(&self) -> Outcome<()> {
        for path in self.files().flat_map(|path| [path.with_extension("twxi"), path]) {
            let input = format!("if={}", path.display());
            let run = Command::new("dd").args([&input, "iflag=nocache", "count=0"]).output()?;
            if !run.status.success() {
                return Err(String::from_utf8_lossy(&run.stderr).into_owned().into());
            }
        }
        Ok(())
    }
}

/// Processor time of all programs that were run so far: fields 16 and 17 of proc(5), in ticks.
fn children_ms() -> Outcome<f64> {
    const TICK_MS: f64 = 10.0;
    let state = std::fs::read_to_string("/proc/self/stat")?;
    let fields = state.rsplit(')').next().unwrap_or_default().split_whitespace();
    let ticks: Vec<f64> = fields.skip(13).take(2).map(str::parse).collect::<Result<_, _>>()?;
    Ok(ticks.iter().sum::<f64>() * TICK_MS)
}

fn median_ms(
    prepare: impl Fn() -> Outcome<()>,
    mut run: impl FnMut() -> Outcome<()>,
) -> Outcome<f64> {
    let mut times = Vec::new();
    for _ in 0..REPEATS {
        prepare()?;
        let started = Instant::now();
        run()?;
        times.push(started.elapsed().as_secs_f64() * 1e3);
    }
    times.sort_by(f64::total_cmp);
    Ok(times[REPEATS / 2])
}
