//! A collector for tests of the agent, as it is, behind a proxy that can be unwell in several ways.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, mpsc};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use twixt_collector::access::{TokenConfig, TokenHash};
use twixt_collector::{Collector, CollectorConfig, EPOCHS_FOLDER, StopRequest};
use twixt_delivery::Receipt;
use twixt_measure::Sealed;
use twixt_store::{Log, Options, Query};

/// Tokens that the proxy shows for the agent: for every point, and for `down` only.
const TOKENS: [(&str, &str); 2] =
    [("*", "0123456789abcdef-every"), ("down", "0123456789abcdef-down")];

/// What the proxy does with requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mood {
    /// Passes them on.
    Well,
    /// Answers by itself, with a status that means: again, after a moment.
    Refuses(u16),
    /// Passes them on, but the connection breaks before the reply.
    Forgetful,
    /// Hangs up in the midst of the body.
    HangsUp,
    /// Takes its time.
    Slow(Duration),
    /// Answers that bodies of more bytes are too large.
    Narrow(usize),
    /// Shows a token that allows `down` only.
    OnlyDown,
}

/// A collector behind a proxy.
pub(crate) struct TestCollector {
    /// The proxy's.
    pub(crate) address: SocketAddr,
    log: Log,
    shared: Arc<Mutex<Shared>>,
    _running: Running,
}

struct Shared {
    mood: Mood,
    requests: u64,
    /// Of all receipts, whether or not the agent got them.
    stored: u64,
    duplicates: u64,
}

/// The collector's thread; gone with the value.
struct Running {
    stop: StopRequest,
    thread: Option<JoinHandle<()>>,
    _folder: tempfile::TempDir,
}

impl TestCollector {
    pub(crate) fn start(mood: Mood) -> Self {
        let (folder, stop) = (super::folder(), StopRequest::new());
        let log = Log::open(folder.path().join(EPOCHS_FOLDER), Options::default());
        let mut config =
            CollectorConfig::new("127.0.0.1:0".parse().unwrap(), folder.path().to_owned());
        config.tokens = TOKENS
            .map(|(points, token)| TokenConfig {
                name: points.to_owned(),
                hash: TokenHash::of_token(token).unwrap(),
                points: vec![points.parse().unwrap()],
            })
            .into();
        let (ready, started) = mpsc::channel();
        let stopped = stop.clone();
        let thread = thread::spawn(move || {
            let ready =
                |addresses: twixt_collector::Addresses| ready.send(addresses.listen).unwrap();
            let collector = Collector::new(config).unwrap();
            collector.run(Box::new(std::io::sink()), &stopped, ready).unwrap();
        });
        let collector = started.recv().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let shared = Shared { mood, requests: 0, stored: 0, duplicates: 0 };
        let running = Running { stop, thread: Some(thread), _folder: folder };
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Mutex::new(shared));
        let proxy = Proxy { collector, shared: Arc::clone(&shared) };
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let proxy = proxy.clone();
                // If a connection breaks, the agent makes another.
                thread::spawn(move || proxy.serve(stream));
            }
        });
        Self { address, log, shared, _running: running }
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

    /// Epochs that it has.
    pub(crate) fn stored(&self) -> usize {
        self.shared.lock().unwrap().stored as usize
    }

    /// What one point sent of one algorithm, by run, epoch and class.
    pub(crate) fn epochs(&self, point: &str, algorithm: &str) -> Vec<Sealed> {
        if !self.log.folder().is_dir() {
            return Vec::new();
        }
        let found = self.log.scan(Query::all().at_point(point)).unwrap();
        let sealed =
            found.map(|found| Sealed::from_bytes(&self.log.payload(&found).unwrap()).unwrap());
        let mut epochs: Vec<Sealed> =
            sealed.filter(|sealed| sealed.synopsis.name() == algorithm).collect();
        epochs.sort_by_key(|sealed| (sealed.run, sealed.epoch, sealed.class.clone()));
        epochs
    }

    /// Packets of one point, by one algorithm.
    pub(crate) fn packets(&self, point: &str, algorithm: &str) -> u64 {
        self.epochs(point, algorithm).iter().map(|sealed| sealed.packets).sum()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.request();
        if let Some(thread) = self.thread.take() {
            let ended = thread.join();
            assert!(ended.is_ok() || thread::panicking());
        }
    }
}

#[derive(Clone)]
struct Proxy {
    collector: SocketAddr,
    shared: Arc<Mutex<Shared>>,
}

impl Proxy {
    /// Answers the requests of a connection, until one was passed on.
    fn serve(&self, mut client: TcpStream) -> Option<()> {
        loop {
            let head = read_head(&mut client)?;
            let mood = self.shared.lock().unwrap().mood;
            let length: usize = header(&head, "content-length")?.parse().ok()?;
            let mut body = vec![0; if mood == Mood::HangsUp { length / 2 } else { length }];
            client.read_exact(&mut body).ok()?;
            self.shared.lock().unwrap().requests += 1;
            let refused = match mood {
                Mood::HangsUp => return None,
                Mood::Refuses(status) => Some(status),
                Mood::Narrow(bytes_max) if body.len() > bytes_max => Some(413),
                _ => None,
            };
            let Some(status) = refused else {
                return self.pass_on(mood, &head, &body, &mut client);
            };
            let response =
                format!("HTTP/1.1 {status} no\r\nRetry-After: 1\r\nContent-Length: 0\r\n\r\n");
            client.write_all(response.as_bytes()).ok()?;
        }
    }

    fn pass_on(&self, mood: Mood, head: &str, body: &[u8], client: &mut TcpStream) -> Option<()> {
        if let Mood::Slow(length) = mood {
            twixt_testing::pace(length);
        }
        let (_, token) = TOKENS[usize::from(mood == Mood::OnlyDown)];
        let head = head.trim_end();
        let mut server = TcpStream::connect(self.collector).ok()?;
        write!(server, "{head}\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n\r\n")
            .ok()?;
        server.write_all(body).ok()?;
        let mut reply = String::new();
        server.read_to_string(&mut reply).ok()?;
        let (_, document) = reply.split_once("\r\n\r\n")?;
        if let Ok(receipt) = serde_json::from_str::<Receipt>(document) {
            let mut shared = self.shared.lock().unwrap();
            shared.stored += receipt.stored;
            shared.duplicates += receipt.duplicates;
        }
        if mood != Mood::Forgetful {
            client.write_all(reply.as_bytes()).ok()?;
        }
        None
    }
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
