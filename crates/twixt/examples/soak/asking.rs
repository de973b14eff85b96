//! Questions to the API, as dashboards ask them.

use std::fmt;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use serde_json::Value;

/// A dashboard with some panels asks about as often.
const ASK_EVERY: Duration = Duration::from_millis(500);
/// The last epochs are still under way when the collector is asked about all of them.
const SETTLE: Duration = Duration::from_secs(20);
const PATIENCE: Duration = Duration::from_secs(30);

/// What became of the questions.
#[derive(Debug, Default)]
pub(crate) struct Asked {
    answered: u64,
    pub(crate) failed: u64,
    longest: Duration,
}

/// What the collector has in the end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Counted {
    epochs: u64,
    pub(crate) gaps: u64,
}

/// Asks in turns about everything.
pub(crate) fn ask_until(over: &AtomicBool, address: SocketAddr) -> Asked {
    let mut asked = Asked::default();
    for turn in 0.. {
        if over.load(Ordering::Relaxed) {
            break;
        }
        let start = Instant::now();
        match answer(address, &question(turn)) {
            Ok(_) => asked.answered += 1,
            Err(error) => {
                asked.failed += 1;
                println!("{}: {error}", question(turn));
            }
        }
        asked.longest = asked.longest.max(start.elapsed());
        thread::sleep(ASK_EVERY.saturating_sub(start.elapsed()));
    }
    asked
}

fn question(turn: usize) -> String {
    let segment = turn / 6 % crate::SEGMENTS;
    let about = format!("segment=up-{segment}:down-{segment}&start={}", now_s() - 900);
    match turn % 6 {
        0 => "/v1/segments".to_owned(),
        1 => format!("/v1/estimates?step=epoch&{about}"),
        2 => format!("/v1/estimates?step=minute&{about}"),
        3 => format!("/v1/histogram?{about}"),
        4 => format!("/v1/flows?segment=up-{segment}:down-{segment}&start={}", now_s() - 60),
        _ => "/v1/points".to_owned(),
    }
}

/// How many epochs all segments have since `start_s`, once the last are settled.
pub(crate) fn counted(address: SocketAddr, start_s: u64) -> Counted {
    thread::sleep(SETTLE);
    let end_s = now_s() - 60;
    let mut counted = Counted { epochs: 0, gaps: 0 };
    for segment in 0..crate::SEGMENTS {
        let path = format!(
            "/v1/estimates?step=minute&limit=100000&segment=up-{segment}:down-{segment}\
             &start={start_s}&end={end_s}"
        );
        let completeness = answer(address, &path).unwrap()["completeness"].take();
        counted.epochs += completeness["epochs"].as_u64().unwrap();
        counted.gaps += completeness["gaps"].as_u64().unwrap();
    }
    counted
}

fn answer(address: SocketAddr, path: &str) -> io::Result<Value> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    write!(stream, "GET {path} HTTP/1.1\r\nhost: soak\r\nconnection: close\r\n\r\n")?;
    let mut reply = String::new();
    stream.read_to_string(&mut reply)?;
    let (head, body) = reply.split_once("\r\n\r\n").unwrap_or((&reply, ""));
    match head.starts_with("HTTP/1.1 200") {
        true => serde_json::from_str(body).map_err(io::Error::other),
        false => Err(io::Error::other(reply)),
    }
}

/// Seconds since 1970.
pub(crate) fn now_s() -> u64 {
    SystemTime::UNIX_EPOCH.elapsed().unwrap().as_secs()
}

impl fmt::Display for Asked {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { answered, failed, longest } = self;
        let longest_ms = longest.as_millis();
        write!(formatter, "{answered} questions answered, {failed} failed, longest {longest_ms} ms")
    }
}

impl fmt::Display for Counted {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} epochs estimated, {} gaps", self.epochs, self.gaps)
    }
}
