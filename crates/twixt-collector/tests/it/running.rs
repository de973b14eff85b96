//! A collector in a thread, and a client.

use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, mpsc};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use twixt_collector::{
    Addresses, Collector, CollectorConfig, CollectorError, EPOCHS_FOLDER, EventSink, StopRequest,
};
use twixt_delivery::UPLOAD_PATH;
use twixt_engine::{EngineEvent, SegmentConfig};
use twixt_model::{Delay, PointId, Segment};
use twixt_store::{Depth, Log, Options, Query};
use twixt_testing::wait_for;

/// A collector.
pub(crate) struct Running {
    pub(crate) addresses: Addresses,
    stop: StopRequest,
    thread: Option<JoinHandle<Result<(), CollectorError>>>,
    events: Arc<Mutex<Vec<EngineEvent>>>,
}

/// Called with all that was out before, each time that something is about to go out.
type BeforeFlush = Box<dyn FnMut(&[EngineEvent]) + Send>;

struct Remembering {
    waiting: Vec<EngineEvent>,
    out: Arc<Mutex<Vec<EngineEvent>>>,
    before_flush: BeforeFlush,
}

impl EventSink for Remembering {
    fn take(&mut self, event: &EngineEvent) -> io::Result<()> {
        self.waiting.push(event.clone());
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        let mut out = self.out.lock().unwrap();
        (self.before_flush)(&out);
        out.append(&mut self.waiting);
        Ok(())
    }
}

/// On a free port, for the segment from `up` to `down`.
pub(crate) fn config(directory: &Path) -> CollectorConfig {
    let mut config = CollectorConfig::new("127.0.0.1:0".parse().unwrap(), directory.to_owned());
    let point = |name: &str| PointId(name.to_owned());
    let segment = Segment { upstream: point("up"), downstream: point("down") };
    config.engine.segments = vec![SegmentConfig { segment, class: None }];
    config.engine.patience = Delay::from_nanos(1_000_000_000);
    config.metrics = Some("127.0.0.1:0".parse().unwrap());
    config.resume_wait = Duration::from_secs(1);
    config
}

impl Running {
    pub(crate) fn start(config: CollectorConfig) -> Self {
        Self::start_watched(config, Box::new(|_| {}))
    }

    pub(crate) fn start_watched(config: CollectorConfig, before_flush: BeforeFlush) -> Self {
        let (sender, receiver) = mpsc::channel();
        let (stop, events) = (StopRequest::new(), Arc::new(Mutex::new(Vec::new())));
        let out = Arc::clone(&events);
        let (stopped, sink) =
            (stop.clone(), Remembering { waiting: Vec::new(), out, before_flush });
        let thread = thread::spawn(move || {
            let ready = |addresses| sender.send(addresses).unwrap();
            Collector::new(config)?.run(Box::new(sink), &stopped, ready)
        });
        match receiver.recv() {
            Ok(addresses) => Self { addresses, stop, thread: Some(thread), events },
            Err(_) => panic!("{:?}", thread.join()),
        }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}{UPLOAD_PATH}", self.addresses.listen)
    }

    pub(crate) fn send(&self, body: &[u8]) -> Answer {
        send(&client(), &self.url(), &[], body)
    }

    pub(crate) fn metrics(&self) -> String {
        let url = format!("http://{}/metrics", self.addresses.metrics.unwrap());
        client().get(&url).call().unwrap().body_mut().read_to_string().unwrap()
    }

    /// Waits until so many epochs were estimated, and returns which.
    pub(crate) fn estimated(&self, count: usize) -> Vec<i64> {
        wait_for("estimates", || {
            let estimated: Vec<i64> = self.events().iter().filter_map(estimated_epoch).collect();
            if estimated.len() >= count { Ok(estimated) } else { Err(self.events()) }
        })
    }

    pub(crate) fn events(&self) -> Vec<EngineEvent> {
        self.events.lock().unwrap().clone()
    }

    /// How it ended by itself.
    pub(crate) fn ended(mut self) -> Result<(), CollectorError> {
        self.thread.take().unwrap().join().unwrap()
    }

    pub(crate) fn stop(mut self) -> Vec<EngineEvent> {
        self.stop.request();
        self.thread.take().unwrap().join().unwrap().unwrap();
        self.events()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.request();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

pub(crate) fn estimated_epoch(event: &EngineEvent) -> Option<i64> {
    match event {
        EngineEvent::Estimated(pair) => Some(pair.epoch.0),
        _ => None,
    }
}

/// What a collector answered.
#[derive(Debug, PartialEq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) retry_seconds: Option<u64>,
    pub(crate) text: String,
}

impl Answer {
    /// Stored and duplicates, where that was the answer.
    #[track_caller]
    pub(crate) fn counts(&self) -> (u64, u64) {
        assert_eq!(self.status, 200, "{self:?}");
        let document: serde_json::Value = serde_json::from_str(&self.text).unwrap();
        (document["stored"].as_u64().unwrap(), document["duplicates"].as_u64().unwrap())
    }

    /// The document that it is.
    #[track_caller]
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// The reasons of what was refused.
    pub(crate) fn reasons(&self) -> Vec<String> {
        let document: serde_json::Value = serde_json::from_str(&self.text).unwrap();
        let refused = document["refused"].as_array().unwrap();
        refused.iter().map(|refused| refused["reason"].as_str().unwrap().to_owned()).collect()
    }
}

pub(crate) fn client() -> ureq::Agent {
    ureq::Agent::config_builder().http_status_as_error(false).build().into()
}

pub(crate) fn send(
    client: &ureq::Agent,
    url: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) -> Answer {
    try_send(client, url, headers, body).unwrap()
}

pub(crate) fn try_send(
    client: &ureq::Agent,
    url: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) -> Result<Answer, ureq::Error> {
    let mut request = client.post(url);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let mut response = request.send(body)?;
    let retry = response.headers().get("retry-after").and_then(|value| value.to_str().ok());
    Ok(Answer {
        status: response.status().as_u16(),
        retry_seconds: retry.and_then(|seconds| seconds.parse().ok()),
        text: response.body_mut().read_to_string()?,
    })
}

/// What lies in the log: point and epoch, in order.
pub(crate) fn logged(directory: &Path) -> Vec<(String, i64)> {
    let log = Log::open(directory.join(EPOCHS_FOLDER), Options::default());
    let mut scan = log.scan(Query::all().to_depth(Depth::Checks)).unwrap();
    let mut found: Vec<_> = scan.by_ref().map(|found| (found.point, found.epoch.0)).collect();
    assert_eq!(scan.report().damaged, 0, "{:?}", scan.report());
    found.sort();
    found
}
