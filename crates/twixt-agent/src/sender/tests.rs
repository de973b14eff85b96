//! The sender against a collector, both as they are: in one process, over loopback.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread::JoinHandle;

use twixt_collector::{
    Collector, CollectorConfig, CollectorError, EPOCHS_FOLDER, StopRequest, TlsConfig, WallClock,
    authority,
};
use twixt_measure::{Meter, MeterConfig, Sealed};
use twixt_model::{Batch, Epoch, EpochRule, Observation, PointId, Timestamp};
use twixt_store::{Log, Options, Query};
use twixt_synopsis::{Purpose, find};

use super::*;
use crate::delivery::BATCH_BYTES_MAX;

const EPOCH_NS: i64 = 1_000_000_000;
const SPOOL_BYTES_MAX: u64 = 64 << 20;

fn config(url: &str) -> DeliveryConfig {
    DeliveryConfig { url: url.to_owned(), ..DeliveryConfig::default() }
}

#[track_caller]
fn check(url: &str, problem: Option<&str>) {
    let found = Sender::new(&config(url), 1).err().map(|error| error.to_string());
    match (found, problem) {
        (None, None) => {}
        (Some(found), Some(problem)) => assert!(found.contains(problem), "{url}: {found}"),
        (found, _) => panic!("{url}: {found:?}"),
    }
}

#[test]
fn plain_http_is_for_this_machine() {
    check("http://127.0.0.1:9443", None);
    check("http://127.0.0.1:9443/", None);
    check("http://localhost", None);
    check("http://[::1]:9443", None);
    check("https://collector:9443", None);
    check("http://collector:9443", Some("plain http"));
    check("http://10.0.0.1", Some("plain http"));
    check("collector:9443", Some("write https"));
    check("https://", Some("write https"));
    check("http://", Some("write https"));
    check("ftp://collector", Some("write https"));
    let forced = DeliveryConfig { plain_http_forced: true, ..config("http://collector") };
    assert!(Sender::new(&forced, 1).is_ok());
}

#[test]
fn files_that_hold_no_certificate_are_named() {
    let with_ca = DeliveryConfig { ca: Some(b"nonsense".to_vec()), ..config("https://c") };
    let problem = Sender::new(&with_ca, 1).unwrap_err().to_string();
    assert!(problem.starts_with("ca: contains no certificate"), "{problem}");
}

/// A collector in a thread of its own.
struct Running {
    folder: tempfile::TempDir,
    address: SocketAddr,
    clock: WallClock,
    stop: StopRequest,
    thread: Option<JoinHandle<Result<(), CollectorError>>>,
}

impl Running {
    fn start(change: impl FnOnce(&mut CollectorConfig)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let listen = "127.0.0.1:0".parse().unwrap();
        let mut config = CollectorConfig::new(listen, folder.path().to_owned());
        change(&mut config);
        let (clock, stop, (sender, receiver)) =
            (config.clock.clone(), StopRequest::new(), mpsc::channel());
        let stopped = stop.clone();
        let thread = std::thread::spawn(move || {
            let ready = |addresses: twixt_collector::Addresses| {
                sender.send(addresses.listen).unwrap();
            };
            Collector::new(config)?.run(Box::new(std::io::sink()), &stopped, ready)
        });
        match receiver.recv() {
            Ok(address) => Self { folder, address, clock, stop, thread: Some(thread) },
            Err(_) => panic!("{:?}", thread.join()),
        }
    }

    fn plain() -> Self {
        Self::start(|_| {})
    }

    fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The numbers of the epochs that it has, in order.
    fn stored(&self) -> Vec<i64> {
        let log = Log::open(self.folder.path().join(EPOCHS_FOLDER), Options::default());
        let mut epochs: Vec<i64> =
            log.scan(Query::all()).unwrap().map(|found| found.epoch.0).collect();
        epochs.sort_unstable();
        epochs
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.request();
        let ended = self.thread.take().map(JoinHandle::join);
        if !std::thread::panicking() {
            assert!(matches!(ended, Some(Ok(Ok(())))), "{ended:?}");
        }
    }
}

/// A proxy that does not let large bodies pass, and answers for itself.
struct Proxy {
    address: SocketAddr,
    body_bytes_max: Arc<AtomicUsize>,
}

impl Proxy {
    /// In front of a collector; answers with this status.
    fn start(collector: SocketAddr, status: u16, body_bytes_max: usize) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let body_bytes_max = Arc::new(AtomicUsize::new(body_bytes_max));
        let limit = Arc::clone(&body_bytes_max);
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let _ = pass_on(client, collector, status, &limit);
            }
        });
        Self { address, body_bytes_max }
    }

    fn url(&self) -> String {
        format!("http://{}", self.address)
    }
}

/// Passes requests of one connection on, as far as they are small enough.
fn pass_on(
    mut client: TcpStream,
    collector: SocketAddr,
    status: u16,
    limit: &AtomicUsize,
) -> std::io::Result<()> {
    loop {
        let mut head = Vec::new();
        let mut byte = [0];
        while !head.ends_with(b"\r\n\r\n") {
            client.read_exact(&mut byte)?;
            head.push(byte[0]);
        }
        let text = String::from_utf8_lossy(&head).to_lowercase();
        let length = text.split("content-length:").nth(1).unwrap();
        let mut body = vec![0; length.split_whitespace().next().unwrap().parse().unwrap()];
        client.read_exact(&mut body)?;
        if body.len() > limit.load(Ordering::Relaxed) {
            let page = "<html>a proxy</html>";
            let length = page.len();
            write!(client, "HTTP/1.1 {status} no\r\nContent-Length: {length}\r\n\r\n{page}")?;
            continue;
        }
        let mut server = TcpStream::connect(collector)?;
        head.truncate(head.len() - b"\r\n".len());
        server.write_all(&head)?;
        server.write_all(b"Connection: close\r\n\r\n")?;
        server.write_all(&body)?;
        std::io::copy(&mut server, &mut client)?;
        return Ok(());
    }
}

/// The sealed bytes of an epoch with so many packets, so many epochs from now.
fn sealed_bytes(ahead: i64, packets: i64) -> (Epoch, Vec<u8>) {
    let rule = EpochRule::every(EPOCH_NS).unwrap();
    let synopsis = (find(Purpose::Delay, "exact").unwrap().start)(&Default::default()).unwrap();
    let config = MeterConfig::new(PointId("up".to_owned()), rule);
    let mut meter = Meter::new(config, synopsis).unwrap();
    let now_ns = WallClock::system().now().as_nanos();
    let start_ns = (now_ns / EPOCH_NS + ahead) * EPOCH_NS;
    let packet = |number: i64| Observation {
        time: Timestamp::from_nanos(start_ns + number),
        digest: twixt_model::PacketDigest(mix(number as u64)),
        length: 100,
        ..Observation::default()
    };
    let packets: Vec<Observation> = (0..packets).map(packet).collect();
    meter.observe(Batch::of(&packets));
    meter.finish();
    let sealed: Sealed = meter.poll().expect("an epoch with packets");
    (sealed.epoch, sealed.to_bytes())
}

/// A spool with these epochs.
fn spool_of(folder: &Path, epochs: &[(Epoch, Vec<u8>)]) -> Spool {
    let spool = Spool::open(folder, SPOOL_BYTES_MAX).unwrap();
    for (epoch, bytes) in epochs {
        spool.append(*epoch, bytes).unwrap();
    }
    spool
}

/// Sends until nothing is left but what is put back: at most so many batches. Waits are left out.
fn send_all(sender: &Sender, delivery: &mut Delivery, spool: &Spool, batches: usize) {
    for _ in 0..batches {
        let batch = delivery.batch(spool);
        if batch.is_empty() {
            return;
        }
        let _ = sender.deliver(delivery, spool, &batch, true);
    }
}

/// A sender to a collector, and what it counts.
fn sender_to(url: &str) -> (Sender, Delivery, SenderMetrics) {
    let metrics = SenderMetrics::default();
    (Sender::new(&config(url), 1).unwrap(), Delivery::new("up", 1, metrics.clone()), metrics)
}

/// What comes of sending one epoch.
fn send_one(config: &DeliveryConfig) -> Reply {
    let folder = tempfile::tempdir().unwrap();
    let spool = spool_of(folder.path(), &[sealed_bytes(0, 3)]);
    let batch = spool.batch(1, 1 << 20).unwrap();
    Sender::new(config, 1).unwrap().send(&batch, spool.counts(), true)
}

#[track_caller]
fn check_reply(config: &DeliveryConfig, shown: &str) {
    let reply = format!("{:?}", send_one(config));
    assert!(reply.contains(shown), "{reply}");
}

/// Keys of a collector for this name, and of an agent.
fn keys(name: &str) -> tempfile::TempDir {
    let keys = tempfile::tempdir().unwrap();
    authority::init(keys.path(), &[name.to_owned()], 10).unwrap();
    let points = ["*".parse().unwrap()];
    authority::issue(keys.path(), "agent", &points, 10).unwrap();
    keys
}

fn read(keys: &tempfile::TempDir, file: &str) -> Vec<u8> {
    std::fs::read(keys.path().join(file)).unwrap()
}

fn encrypted(keys: &tempfile::TempDir, client_ca: bool) -> Running {
    let tls = TlsConfig {
        certificate: keys.path().join("collector.pem"),
        key: keys.path().join("collector-key.pem"),
        client_ca: client_ca.then(|| keys.path().join("ca.pem")),
    };
    Running::start(|config| config.tls = Some(tls))
}

#[test]
fn who_signed_what_decides_and_is_explained() {
    let (ours, theirs, elsewhere) = (keys("localhost"), keys("localhost"), keys("elsewhere"));
    let collector = encrypted(&ours, false);
    let port = collector.address.port();
    let ca = Some(read(&ours, "ca.pem"));
    let trusting = DeliveryConfig { ca, ..config(&format!("https://localhost:{port}")) };
    check_reply(&trusting, "stored: 1");
    let ca = Some(read(&theirs, "ca.pem"));
    check_reply(&DeliveryConfig { ca, ..trusting.clone() }, "set `ca`");
    check_reply(&DeliveryConfig { ca: None, ..trusting.clone() }, "set `ca`");
    let plain = DeliveryConfig { url: format!("http://localhost:{port}"), ..trusting };
    check_reply(&plain, "Unavailable");
    let collector = encrypted(&elsewhere, false);
    let url = format!("https://localhost:{}", collector.address.port());
    let ca = Some(read(&elsewhere, "ca.pem"));
    check_reply(&DeliveryConfig { ca, ..config(&url) }, "another name");
}

#[test]
fn a_client_certificate_opens_the_door() {
    let (ours, theirs) = (keys("localhost"), keys("localhost"));
    let collector = encrypted(&ours, true);
    let url = format!("https://localhost:{}", collector.address.port());
    let identity = |keys| Some((read(keys, "agent.pem"), read(keys, "agent-key.pem")));
    let without = DeliveryConfig { ca: Some(read(&ours, "ca.pem")), ..config(&url) };
    check_reply(&DeliveryConfig { identity: identity(&ours), ..without.clone() }, "stored: 1");
    check_reply(&without, "Unavailable");
    check_reply(&DeliveryConfig { identity: identity(&theirs), ..without }, "Unavailable");
}

/// The receipt had `"epoch":null`, which the agent could not read: it sent the batch for ever.
#[test]
fn a_damaged_epoch_is_settled_and_holds_up_no_other() {
    let (collector, folder) = (Running::plain(), tempfile::tempdir().unwrap());
    let mut epochs: Vec<_> = (-3..0).map(|ahead| sealed_bytes(ahead, 3)).collect();
    let middle = epochs[1].1.len() / 2;
    epochs[1].1[middle] ^= 1;
    let spool = spool_of(folder.path(), &epochs);
    let (sender, mut delivery, metrics) = sender_to(&collector.url());
    send_all(&sender, &mut delivery, &spool, 1);
    assert_eq!(spool.counts().epochs, 0, "the receipt accounts for all three");
    assert_eq!(collector.stored(), [epochs[0].0.0, epochs[2].0.0]);
    assert_eq!(metrics.counted(), [2, 0, 1, 0]);
}

/// An agent newer than its collector keeps what the collector cannot read yet.
#[test]
fn an_epoch_of_a_newer_format_is_kept_and_holds_up_no_other() {
    const VERSION_AT: usize = 4;
    let (collector, folder) = (Running::plain(), tempfile::tempdir().unwrap());
    let mut epochs: Vec<_> = (-3..0).map(|ahead| sealed_bytes(ahead, 3)).collect();
    epochs[0].1[VERSION_AT] = u8::MAX;
    let spool = spool_of(folder.path(), &epochs);
    let (sender, mut delivery, metrics) = sender_to(&collector.url());
    send_all(&sender, &mut delivery, &spool, 3);
    assert_eq!(collector.stored(), [epochs[1].0.0, epochs[2].0.0]);
    let kept = spool.batch(10, BATCH_BYTES_MAX).unwrap();
    assert_eq!(kept.iter().map(|kept| &kept.payload).collect::<Vec<_>>(), [&epochs[0].1]);
    assert_eq!(metrics.counted(), [2, 0, 0, 3], "it was sent three times, and put back");
}

/// What lies ahead of the collector's clock is taken when that has been set.
#[test]
fn an_epoch_of_the_future_is_kept_until_the_clock_is_right() {
    const DAY: i64 = 24 * 3_600;
    let (collector, folder) = (Running::plain(), tempfile::tempdir().unwrap());
    let epochs = [sealed_bytes(2 * DAY, 3), sealed_bytes(-1, 3)];
    let spool = spool_of(folder.path(), &epochs);
    let (sender, mut delivery, _) = sender_to(&collector.url());
    send_all(&sender, &mut delivery, &spool, 2);
    assert_eq!((collector.stored(), spool.counts().epochs), (vec![epochs[1].0.0], 1));
    collector.clock.set_ahead_ns(2 * DAY * EPOCH_NS);
    send_all(&sender, &mut delivery, &spool, 1);
    assert_eq!((collector.stored().len(), spool.counts().epochs), (2, 0));
}

/// A proxy's 400 or 413 made the agent discard epochs.
#[test]
fn a_proxy_in_between_costs_no_epoch() {
    for status in [400, 413] {
        let (collector, folder) = (Running::plain(), tempfile::tempdir().unwrap());
        let proxy = Proxy::start(collector.address, status, 20_000);
        // The digests of the second do not compress to so little.
        let mut epochs: Vec<_> = (-9..0).map(|ahead| sealed_bytes(ahead, 3)).collect();
        epochs[1] = sealed_bytes(-8, 5_000);
        let spool = spool_of(folder.path(), &epochs);
        let (sender, mut delivery, metrics) = sender_to(&proxy.url());
        send_all(&sender, &mut delivery, &spool, 20);
        assert_eq!(collector.stored().len(), 8, "the large one holds up no other");
        assert_eq!(spool.counts().epochs, 1, "and is kept");
        assert_eq!(metrics.counted()[..3], [8, 0, 0]);
        proxy.body_bytes_max.store(usize::MAX, Ordering::Relaxed);
        send_all(&sender, &mut delivery, &spool, 1);
        assert_eq!(collector.stored().len(), 9);
        assert_eq!((spool.counts().epochs, spool.counts().discarded), (0, 0));
    }
}

#[test]
fn every_request_says_what_waits_and_who_sends() {
    let folder = tempfile::tempdir().unwrap();
    let epochs: Vec<_> = (-3..0).map(|ahead| sealed_bytes(ahead, 3)).collect();
    let spool = spool_of(folder.path(), &epochs);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let asked = std::thread::spawn(move || {
        let (mut client, _) = listener.accept().unwrap();
        let mut request = Vec::new();
        let mut byte = [0];
        while !request.ends_with(b"\r\n\r\n") {
            client.read_exact(&mut byte).unwrap();
            request.push(byte[0]);
        }
        write!(client, "HTTP/1.1 503 no\r\nContent-Length: 0\r\n\r\n").unwrap();
        // Until the sender has gone: the rest of its request is not lost on the way.
        let _ = client.read_to_end(&mut Vec::new());
        String::from_utf8(request).unwrap().to_lowercase()
    });
    let (sender, mut delivery, _) = sender_to(&url);
    send_all(&sender, &mut delivery, &spool, 1);
    drop(sender);
    let head = asked.join().unwrap();
    let bytes = spool.counts().bytes;
    assert!(head.contains(&format!("twixt-spool: epochs=3, bytes={bytes}, discarded=0")), "{head}");
    assert!(
        head.contains(concat!("user-agent: twixt-agent/", env!("CARGO_PKG_VERSION"))),
        "{head}"
    );
}
