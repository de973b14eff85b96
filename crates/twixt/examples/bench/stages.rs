//! The parts of the pipeline, each over a whole capture.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use twixt_capture::{BatchEnd, CaptureFile, Frame};
use twixt_model::{Batch, Detail, DigestHash, DigestProfile, Needs, Observation};
use twixt_synopsis::{ALGORITHMS, Algorithm, Purpose};
use twixt_wire::{
    Digester, FrameBytes, HashKey, LinkType, Observer, ObserverOptions, PAYLOAD_BYTES_MAX,
    ParseOptions, RECORD_BYTES, parse,
};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::pipeline::Pipeline;

/// A part of the pipeline. What it returns is of no interest, but must be computed.
pub(crate) struct Stage {
    pub(crate) name: String,
    pub(crate) run: Box<dyn FnMut() -> u64>,
}

/// Cells of the table that `floor` adds to: as many bytes as LDA has by default.
const FLOOR_CELLS: u64 = 4096;
const BLOCK_BYTES: usize = 256 * 1024;

/// Every part; `walk` and `floor` come first.
pub(crate) fn all(path: &Path) -> Vec<Stage> {
    let stage = |name: &str, run: Box<dyn FnMut() -> u64>| Stage { name: name.to_owned(), run };
    let path: PathBuf = path.to_owned();
    let on = |run: fn(&Path) -> u64| {
        let path = path.clone();
        Box::new(move || run(&path))
    };
    let mut stages = vec![
        stage("walk", on(walk)),
        stage("floor", on(floor)),
        stage("read", on(read)),
        stage("read + parse", on(read_parse)),
        stage("read + parse + digest", on(|path| observe(path, false))),
        stage("read + parse + digest + flow hash", on(|path| observe(path, true))),
    ];
    stages.extend(ALGORITHMS.iter().map(|algorithm| update(algorithm, &path)));
    stages.extend(ALGORITHMS.iter().map(|algorithm| pipeline(algorithm, &path)));
    stages
}

/// Steps over the record headers of a classic capture, in large blocks.
fn walk(path: &Path) -> u64 {
    for_each_record(path, |record| record.len() as u64)
}

/// As `walk`, with one hash over the bytes of a digest and one add to a table.
fn floor(path: &Path) -> u64 {
    let mut table = vec![[0_u64; 3]; FLOOR_CELLS as usize];
    for_each_record(path, |record| {
        let mut bytes = [0; RECORD_BYTES];
        let length = record.len().min(RECORD_BYTES);
        bytes[..length].copy_from_slice(&record[..length]);
        let hash = xxh3_64_with_seed(&bytes, 1);
        let cell = &mut table[(((hash & 0xffff_ffff) * FLOOR_CELLS) >> 32) as usize];
        cell[0] = cell[0].wrapping_add(hash);
        cell[1] += 1;
        1
    }) + table[0][1]
}

fn for_each_record(path: &Path, mut each: impl FnMut(&[u8]) -> u64) -> u64 {
    const FILE_HEADER: usize = 24;
    const RECORD_HEADER: usize = 16;
    let mut file = File::open(path).unwrap();
    let mut block = vec![0; BLOCK_BYTES];
    let (mut filled, mut sum) = (0, 0);
    let mut at = FILE_HEADER;
    loop {
        let read = file.read(&mut block[filled..]).unwrap();
        filled += read;
        while at + RECORD_HEADER <= filled {
            let length = u32::from_le_bytes(block[at + 8..at + 12].try_into().unwrap()) as usize;
            let end = at + RECORD_HEADER + length;
            if end > filled {
                break;
            }
            sum += each(&block[at + RECORD_HEADER..end]);
            at = end;
        }
        if read == 0 {
            return sum;
        }
        block.copy_within(at..filled, 0);
        filled -= at;
        at = 0;
    }
}

fn read(path: &Path) -> u64 {
    for_each_frame(path, |frame| u64::from(frame.wire_length))
}

fn read_parse(path: &Path) -> u64 {
    for_each_frame(path, |frame| {
        let options = ParseOptions { outer: false, wire_length: Some(frame.wire_length) };
        parse(LinkType(frame.link_type), frame.bytes, options)
            .map_or(0, |packet| packet.length().into())
    })
}

fn observe(path: &Path, flow: bool) -> u64 {
    let observer = observer(flow);
    for_each_frame(path, |frame| {
        let link = LinkType(frame.link_type);
        let bytes = FrameBytes::within(frame.memory, frame.bytes.len());
        let seen = observer.observe(link, bytes, frame.wire_length, frame.time);
        seen.map_or(0, |seen| seen.digest.0 ^ seen.flow.0)
    })
}

pub(crate) fn for_each_frame(path: &Path, mut each: impl FnMut(&Frame<'_>) -> u64) -> u64 {
    let mut file = CaptureFile::open(path).unwrap();
    let mut sum = 0_u64;
    while file.read_batch(|frame| sum = sum.wrapping_add(each(&frame))) != BatchEnd::End {}
    sum
}

fn observer(flow: bool) -> Observer {
    observer_of(Needs { digest: true, flow, detail: false, group: false, exchange: false })
}

pub(crate) fn observer_of(needs: Needs) -> Observer {
    let key = HashKey::from_seed(1);
    Observer::new(ObserverOptions {
        needs,
        outer: false,
        filter: None,
        classes: Vec::new(),
        digester: Digester::new(DigestProfile::Default, DigestHash::Xxh3, PAYLOAD_BYTES_MAX, key),
    })
    .unwrap()
}

/// Updates alone: observations are made beforehand, the first time it is run.
fn update(algorithm: &'static Algorithm, path: &Path) -> Stage {
    let path = path.to_owned();
    let mut made: Option<(Vec<Observation>, Vec<Detail>)> = None;
    let run = move || {
        let (observations, details) =
            made.get_or_insert_with(|| observations(&path, algorithm.needs.detail));
        let mut synopsis = (algorithm.start)(&toml::Table::new()).unwrap();
        for start in (0..observations.len()).step_by(256) {
            let end = (start + 256).min(observations.len());
            let batch = Batch { observations, details };
            synopsis.update_batch(batch.slice(start, end));
        }
        synopsis.totals().packets
    };
    Stage { name: named("update of", algorithm), run: Box::new(run) }
}

/// All of a one-pass command but starting, cutting epochs and writing.
fn pipeline(algorithm: &'static Algorithm, path: &Path) -> Stage {
    let path = path.to_owned();
    let run = move || Pipeline::new(algorithm).run(&path);
    Stage { name: named("pipeline of", algorithm), run: Box::new(run) }
}

fn named(what: &str, algorithm: &Algorithm) -> String {
    match algorithm.purpose {
        Purpose::Delay => format!("{what} {}", algorithm.name),
        purpose => format!("{what} {} {}", purpose.name(), algorithm.name),
    }
}

fn observations(path: &Path, detail: bool) -> (Vec<Observation>, Vec<Detail>) {
    let observer = observer(true);
    let (mut observations, mut details) = (Vec::new(), Vec::new());
    for_each_frame(path, |frame| {
        let link = LinkType(frame.link_type);
        let bytes = FrameBytes::within(frame.memory, frame.bytes.len());
        let (seen, more) =
            observer.observe_detailed(link, bytes, frame.wire_length, frame.time).unwrap();
        observations.push(seen);
        details.extend(detail.then_some(more));
        0
    });
    (observations, details)
}
