//! How long a query of an hour takes in a month of records.
//!
//! Writes one-minute records of two points for so many days, of so many bytes that do not pack,
//! then asks for one hour of both. Records of days that are not asked for may be shorter, to save
//! disk. Prints what the query touched, how long it took, and how
//! long it takes to read the same bytes plainly, in the same run. The folder is deleted.
//!
//! `cargo run --release -p twixt-store --example month -- FOLDER [DAYS] [BYTES] [BYTES ON OTHER DAYS]`

use std::error::Error;
use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::Path;
use std::time::Instant;

use twixt_model::{Epoch, Span, Timestamp};
use twixt_store::{Durability, EpochEntry, Log, Options, Query, Report};

const MINUTE_NS: i64 = 60_000_000_000;
const DAY_MINUTES: i64 = 1440;
/// 2024-01-01.
const START_NS: i64 = 1_704_067_200_000_000_000;
const POINTS: [&str; 2] = ["paris", "rome"];
/// Each measurement is repeated, and the median counts.
const REPEATS: usize = 9;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().ok_or("name a folder to write to; it is deleted afterwards")?;
    let days = arguments.next().map_or(Ok(30), |text| text.parse())?;
    let bytes = arguments.next().map_or(Ok(300 << 10), |text| text.parse())?;
    let other_bytes = arguments.next().map_or(Ok(bytes), |text| text.parse())?;
    let folder = Path::new(&folder);
    if folder.exists() {
        return Err(format!("{} is there already", folder.display()).into());
    }
    let outcome = measure(folder, days, [bytes, other_bytes]);
    std::fs::remove_dir_all(folder)?;
    outcome
}

fn measure(folder: &Path, days: i64, bytes: [usize; 2]) -> Result<(), Box<dyn Error>> {
    let log = Log::open(folder, Options { level: 1, ..Options::default() });
    let started = Instant::now();
    for point in POINTS {
        write(&log, point, days, bytes)?;
    }
    let stored_bytes = log.bound(u64::MAX)?.left_bytes.unwrap_or(0);
    println!(
        "stored     {days} days of one-minute records of two points, {} bytes each, {} on \
         days not asked for: {:.2} GiB in {:.1} s",
        bytes[0],
        bytes[1],
        stored_bytes as f64 / f64::from(1 << 30),
        started.elapsed().as_secs_f64()
    );
    let hour = hour_of(days / 2);
    let first = Instant::now();
    let report = query(&log, hour)?;
    let first = first.elapsed().as_secs_f64();
    println!(
        "query      {} records of one hour; touched {} bytes of data in {} days' files, {} of indexes",
        report.records, report.data_bytes, report.days, report.index_bytes
    );
    let query_s = median(|| query(&log, hour).map(drop))?;
    let plain_s = median(|| read_plainly(folder, days, report.data_bytes + report.index_bytes))?;
    println!("time       first {:.1} ms, then {:.1} ms", first * 1e3, query_s * 1e3);
    println!("plain read {:.1} ms of as many bytes", plain_s * 1e3);
    println!("ratio      {:.2}", query_s / plain_s);
    Ok(())
}

fn write(log: &Log, point: &str, days: i64, bytes: [usize; 2]) -> Result<(), Box<dyn Error>> {
    let mut writer = log.writer(point)?;
    let noise = bytes.map(noise);
    for number in 0..days * DAY_MINUTES {
        let payload = &noise[usize::from(number / DAY_MINUTES != days / 2)];
        let start = START_NS + number * MINUTE_NS;
        let span = Span {
            start: Timestamp::from_nanos(start),
            end: Timestamp::from_nanos(start + MINUTE_NS - 1),
        };
        let entry = EpochEntry { stream: "colate", span, epoch: Epoch(start / MINUTE_NS) };
        writer.append(&entry, payload, Durability::Written)?;
    }
    Ok(writer.sync()?)
}

/// Ten o'clock to eleven of a day.
fn hour_of(day: i64) -> Span {
    let start = START_NS + (day * DAY_MINUTES + 600) * MINUTE_NS;
    Span {
        start: Timestamp::from_nanos(start),
        end: Timestamp::from_nanos(start + 60 * MINUTE_NS - 1),
    }
}

fn query(log: &Log, span: Span) -> Result<Report, Box<dyn Error>> {
    let mut scan = log.scan(Query::between(span))?;
    let bytes: u64 = scan.by_ref().map(|found| found.payload.len() as u64).sum();
    assert!(scan.report().is_whole() && bytes > 0, "what was stored is found");
    Ok(scan.report().clone())
}

/// Reads as many bytes as the query touched, at the place where it found them.
fn read_plainly(folder: &Path, days: i64, bytes: u64) -> Result<(), Box<dyn Error>> {
    let day = twixt_store::Day::of(hour_of(days / 2).start);
    for point in POINTS {
        let mut file = File::open(folder.join(point).join(format!("{day}.twxl")))?;
        let start = file.metadata()?.len() * 600 / DAY_MINUTES as u64;
        file.seek(SeekFrom::Start(start))?;
        io::copy(&mut BufReader::with_capacity(1 << 18, file.take(bytes / 2)), &mut io::sink())?;
    }
    Ok(())
}

fn median(mut run: impl FnMut() -> Result<(), Box<dyn Error>>) -> Result<f64, Box<dyn Error>> {
    let mut times = Vec::new();
    for _ in 0..REPEATS {
        let started = Instant::now();
        run()?;
        times.push(started.elapsed().as_secs_f64());
    }
    times.sort_by(f64::total_cmp);
    Ok(times[REPEATS / 2])
}

/// Bytes that do not pack, always the same.
fn noise(length: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as u8
    };
    (0..length).map(|_| next()).collect()
}
