//! An agent reduced to the minimum: makes epochs as time goes by, and sends each until it is
//! acknowledged.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::{Duration, SystemTime};

use twixt_delivery::{UPLOAD_PATH, UploadWriter};
use twixt_measure::{Meter, MeterConfig, Sealed};
use twixt_model::{
    Batch, Delay, EpochRule, FlowHash, Observation, PacketDigest, PointId, Timestamp,
};
use twixt_synopsis::{Purpose, find};
use twixt_testing::pace;

const EPOCH_NS: i64 = 100_000_000;
const PACKETS: i64 = 20;

/// What all senders share with the test.
#[derive(Debug)]
pub(crate) struct Shared {
    /// Where the collector is at present.
    pub(crate) address: Mutex<SocketAddr>,
    /// What it acknowledged.
    pub(crate) acknowledged: Mutex<Vec<(String, i64)>>,
    /// The last epoch to send.
    pub(crate) last: AtomicI64,
    /// Whether connections break in the midst of a body.
    pub(crate) cuts: AtomicBool,
}

impl Shared {
    /// Epochs go to this collector, and there is no last one yet.
    pub(crate) fn new(collector: SocketAddr) -> Self {
        Self {
            address: Mutex::new(collector),
            acknowledged: Mutex::default(),
            last: AtomicI64::new(i64::MAX),
            cuts: AtomicBool::new(false),
        }
    }
}

pub(crate) fn epoch_now() -> i64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    now.as_nanos() as i64 / EPOCH_NS
}

/// Sends epochs from the first to the last, each soon after it ended.
pub(crate) fn send_all(shared: &Shared, point: &str, delay_ns: i64, first: i64) {
    let mut meter = meter(point);
    let mut waiting = VecDeque::new();
    let mut epoch = first;
    while epoch <= shared.last.load(Ordering::Relaxed) || !waiting.is_empty() {
        if epoch <= shared.last.load(Ordering::Relaxed) && epoch < epoch_now() {
            meter.observe(Batch::of(&packets(epoch, delay_ns)));
            waiting.extend(std::iter::from_fn(|| meter.poll()));
            epoch += 1;
            if epoch > shared.last.load(Ordering::Relaxed) {
                meter.finish();
                waiting.extend(std::iter::from_fn(|| meter.poll()));
            }
        }
        if waiting.front().is_some_and(|sealed| is_acknowledged(shared, sealed)) {
            let sealed = waiting.pop_front().expect("it was there just now");
            let mut acknowledged = shared.acknowledged.lock().unwrap();
            acknowledged.push((point.to_owned(), sealed.epoch.0));
        } else {
            pace(Duration::from_millis(10));
        }
    }
}

fn meter(point: &str) -> Meter {
    let rule = EpochRule::every(EPOCH_NS).unwrap();
    let config = MeterConfig {
        domain: "lab".to_owned(),
        run: 1,
        guard: Delay::from_nanos(20_000_000),
        clock_bound: Some(Delay::from_nanos(1_000)),
        ..MeterConfig::new(PointId(point.to_owned()), rule)
    };
    let settings = toml::toml! { rows = 64 };
    Meter::new(config, (find(Purpose::Delay, "lda").unwrap().start)(&settings).unwrap()).unwrap()
}

fn packets(epoch: i64, delay_ns: i64) -> Vec<Observation> {
    let packet = |number: i64| {
        let left_ns = epoch * EPOCH_NS + number * (EPOCH_NS / PACKETS);
        let digest = ((epoch * PACKETS + number) as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        Observation {
            time: Timestamp::from_nanos(left_ns + delay_ns),
            digest: PacketDigest(digest),
            flow: FlowHash(digest % 7),
            length: 100,
            ..Observation::default()
        }
    };
    (0..PACKETS).map(packet).collect()
}

fn is_acknowledged(shared: &Shared, sealed: &Sealed) -> bool {
    let mut writer = UploadWriter::new();
    writer.push(&sealed.to_bytes()).unwrap();
    let (address, body) = (*shared.address.lock().unwrap(), writer.into_body());
    if shared.cuts.load(Ordering::Relaxed) {
        let _ = send_half(address, &body);
        return false;
    }
    post(address, &body).is_ok_and(|answer| {
        let is_stored = answer.contains("\"stored\":1") || answer.contains("\"duplicates\":1");
        answer.starts_with("HTTP/1.1 200") && is_stored
    })
}

/// Sends a body, and returns the whole answer.
pub(crate) fn post(address: SocketAddr, body: &[u8]) -> io::Result<String> {
    let mut stream = begin(address, body.len())?;
    stream.write_all(body)?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

/// Hangs up in the midst of a body.
fn send_half(address: SocketAddr, body: &[u8]) -> io::Result<()> {
    begin(address, body.len())?.write_all(&body[..body.len() / 2])
}

fn begin(address: SocketAddr, length: usize) -> io::Result<TcpStream> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(Duration::from_secs(20)))?;
    write!(
        stream,
        "POST {UPLOAD_PATH} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\
         content-length: {length}\r\n\r\n"
    )?;
    Ok(stream)
}
