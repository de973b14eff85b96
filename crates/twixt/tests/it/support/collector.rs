//! A collector for tests of the agent: speaks as much HTTP as an upload needs, keeps what it gets,
//! and can be unwell in several ways.

use std::collections::HashSet;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use twixt_measure::{Sealed, read_upload};

/// What it does with requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mood {
    /// Stores and answers.
    Well,
    /// Answers with a status that means: again, after a moment.
    Refuses(u16),
    /// Stores, but the connection breaks before the answer.
    Forgetful,
    /// Hangs up in the midst of the body.
    HangsUp,
    /// Takes its time.
    Slow(Duration),
    /// Answers that bodies of more than one epoch are too large.
    Narrow,
    /// Does not allow this point.
    Forbids(&'static str),
}

/// A collector, on a port of its own.
#[derive(Clone)]
pub(crate) struct TestCollector {
    pub(crate) address: SocketAddr,
    shared: Arc<Mutex<Shared>>,
}

struct Shared {
    mood: Mood,
    /// In the order in which they came, each once.
    stored: Vec<Sealed>,
    known: HashSet<(String, String, i64, u64, u16)>,
    duplicates: u64,
    requests: u64,
}

impl TestCollector {
    pub(crate) fn start(mood: Mood) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let shared =
            Shared { mood, stored: Vec::new(), known: HashSet::new(), duplicates: 0, requests: 0 };
        let address = listener.local_addr().unwrap();
        let collector = Self { address, shared: Arc::new(Mutex::new(shared)) };
        let serving = collector.clone();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let serving = serving.clone();
                // Whoever breaks a connection is the agent, and tries again.
                thread::spawn(move || serving.serve(stream));
            }
        });
        collector
    }

    pub(crate) fn set_mood(&self, mood: Mood) {
        self.shared.lock().unwrap().mood = mood;
    }

    pub(crate) fn requests(&self) -> u64 {
        self.shared.lock().unwrap().requests
    }

    pub(crate) fn duplicates(&self) -> u64 {
        self.shared.lock().unwrap().duplicates
    }

    /// What one point sent of one algorithm, in the order in which it came.
    pub(crate) fn epochs(&self, point: &str, algorithm: &str) -> Vec<Sealed> {
        let shared = self.shared.lock().unwrap();
        let wanted =
            |sealed: &&Sealed| sealed.point.0 == point && sealed.synopsis.name() == algorithm;
        shared.stored.iter().filter(wanted).cloned().collect()
    }

    /// All that it has.
    pub(crate) fn stored(&self) -> usize {
        self.shared.lock().unwrap().stored.len()
    }

    /// Packets of one point, by one algorithm.
    pub(crate) fn packets(&self, point: &str, algorithm: &str) -> u64 {
        self.epochs(point, algorithm).iter().map(|sealed| sealed.packets).sum()
    }

    fn serve(&self, mut stream: TcpStream) -> Option<()> {
        loop {
            let head = read_head(&mut stream)?;
            let mood = self.shared.lock().unwrap().mood;
            let length = header(&head, "content-length")?.parse().ok()?;
            if mood == Mood::HangsUp {
                stream.read_exact(&mut vec![0; length / 2]).ok()?;
                self.shared.lock().unwrap().requests += 1;
                return None;
            }
            let mut body = vec![0; length];
            stream.read_exact(&mut body).ok()?;
            assert_eq!(header(&head, "content-encoding"), Some("zstd"));
            let answer = self.answer(mood, &zstd::decode_all(&body[..]).unwrap());
            if mood == Mood::Forgetful {
                return None;
            }
            stream.write_all(answer.as_bytes()).ok()?;
        }
    }

    fn answer(&self, mood: Mood, body: &[u8]) -> String {
        let epochs = read_upload(body).unwrap();
        if let Mood::Slow(length) = mood {
            thread::sleep(length);
        }
        let mut shared = self.shared.lock().unwrap();
        shared.requests += 1;
        match mood {
            Mood::Refuses(status) => return response(status, "Retry-After: 1\r\n", "{}"),
            Mood::Narrow if epochs.len() > 1 => return response(413, "", "{}"),
            Mood::Forbids(point) if epochs.iter().any(|epoch| point_of(epoch) == point) => {
                return response(403, "", r#"{"error": "not yours"}"#);
            }
            _ => {}
        }
        let (mut stored, mut duplicates) = (0, 0);
        for bytes in epochs {
            let sealed = Sealed::from_bytes(&bytes).unwrap();
            let key = (
                sealed.point.0.clone(),
                sealed.class.clone(),
                sealed.epoch.0,
                sealed.run,
                sealed.synopsis.tag(),
            );
            match shared.known.insert(key) {
                true => {
                    stored += 1;
                    shared.stored.push(sealed);
                }
                false => duplicates += 1,
            }
        }
        shared.duplicates += duplicates;
        let receipt =
            format!(r#"{{"stored": {stored}, "duplicates": {duplicates}, "refused": []}}"#);
        response(200, "", &receipt)
    }
}

fn point_of(epoch: &[u8]) -> String {
    Sealed::from_bytes(epoch).unwrap().point.0
}

fn response(status: u16, headers: &str, body: &str) -> String {
    let length = body.len();
    format!("HTTP/1.1 {status} x\r\n{headers}Content-Length: {length}\r\n\r\n{body}")
}

fn read_head(stream: &mut TcpStream) -> Option<String> {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte).ok()?;
        head.push(byte[0]);
    }
    String::from_utf8(head).ok()
}

fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        key.eq_ignore_ascii_case(name).then(|| value.trim())
    })
}
