//! Sends epochs from the spool to the collector, until a receipt settles them.
//!
//! Every point has a spool, and a sender with waits of its own: a point that the collector does not
//! take holds up no other. Of a point, one batch at a time, oldest first, so that an epoch is
//! confirmed only after all before it; of an agent, one request at a time, over one connection.
//! Nothing else than a receipt takes an epoch out of the spool. One that the collector does not take
//! now, or that nothing in between lets through, goes to the back of the spool and is sent again
//! after the others. Knows nothing of packets.

mod back_off;
mod trouble;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use twixt_delivery::{
    COLLECTOR_HEADER, Receipt, RefusedEpoch, Reply, ResponseParts, UPLOAD_ENCODING,
    UPLOAD_MEDIA_TYPE, UPLOAD_PATH, UploadWriter,
};
use twixt_model::mix;
use ureq::tls::{Certificate, ClientCert, PemItem, PrivateKey, RootCerts, TlsConfig, parse_pem};

use crate::metrics::SenderMetrics;
use crate::spool::{Spool, SpoolError, Spooled};
use back_off::BackOff;

/// Epochs in one body at most.
pub const BATCH_EPOCHS_MAX: usize = 256;
/// Bytes of epochs in one body, unless a single one has more.
pub const BATCH_BYTES_MAX: usize = 4 << 20;
/// Until a connection stands.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Until the collector has answered: it answers when all is on its disk.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);
/// The same when the agent is about to end.
const LAST_TIMEOUT: Duration = Duration::from_secs(3);
/// How long to wait for epochs before looking whether all is over.
const WAIT: Duration = Duration::from_millis(500);
/// Of a reply, no more is read.
const REPLY_BYTES_MAX: u64 = 1 << 20;
/// Fast, and epochs are small.
const ZSTD_LEVEL: i32 = 3;

/// Where epochs go, and how this agent proves who it is.
#[derive(Clone, Debug, Default)]
pub struct DeliveryConfig {
    /// Such as `https://collector:9443`.
    pub url: String,
    /// The secret of a `Bearer` token.
    pub token: Option<String>,
    /// PEM of the authorities that may have signed the collector's certificate; `None`: those that
    /// browsers trust.
    pub ca: Option<Vec<u8>>,
    /// PEM of this agent's certificate, with those that lead to the authority, and of its key.
    pub identity: Option<(Vec<u8>, Vec<u8>)>,
    /// Send over plain HTTP though the collector is on another machine.
    pub plain_http_forced: bool,
}

/// Why nothing can be sent like this.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SenderError {
    /// The address of the collector is none. Write `https://HOST:PORT`.
    #[error("collector {url:?}: write https://HOST:PORT")]
    Url {
        /// As given.
        url: String,
    },
    /// What is sent could be read and changed by others. Use https, or force it.
    #[error(
        "collector {url:?}: plain http is for this machine only; use https, or force it with \
         plain_http = \"forced\""
    )]
    PlainHttp {
        /// As given.
        url: String,
    },
    /// There is no certificate or key in a file. It must be PEM.
    #[error("{what}: holds no {wanted} in PEM (-----BEGIN …)")]
    Pem {
        /// Which file.
        what: &'static str,
        /// What should be in it.
        wanted: &'static str,
    },
}

/// Sends what is in a spool.
#[derive(Debug)]
pub(crate) struct Sender {
    agent: ureq::Agent,
    url: String,
    token: Option<String>,
    seed: u64,
    point: String,
    back_off: BackOff,
    /// Epochs in the next body: fewer after one was refused as a whole.
    epochs_max: usize,
    /// The collector does not allow this point, and that was logged.
    is_forbidden: bool,
    /// Why the spool could not be read, as it was logged last.
    unreadable: Option<String>,
    /// The sender that has locked it may send.
    collector: Arc<Mutex<CollectorState>>,
}

/// What all senders of an agent know of the collector.
#[derive(Debug, Default)]
struct CollectorState {
    /// What went wrong last, whatever the point, so that it is logged once.
    trouble: Option<String>,
    /// The agent ends, and the collector did not take what was sent last: others need not try.
    is_hopeless: bool,
}

impl Sender {
    /// Sends nothing yet. The seed is for the jitter of its waits.
    pub(crate) fn new(config: &DeliveryConfig, seed: u64) -> Result<Self, SenderError> {
        check_url(config)?;
        let settings = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .proxy(None)
            .user_agent(concat!("twixt-agent/", env!("CARGO_PKG_VERSION")))
            .timeout_connect(Some(CONNECT_TIMEOUT))
            .timeout_global(Some(REQUEST_TIMEOUT))
            .tls_config(tls(config)?)
            .build();
        Ok(Self {
            agent: ureq::Agent::new_with_config(settings),
            url: format!("{}{UPLOAD_PATH}", config.url.trim_end_matches('/')),
            token: config.token.as_ref().map(|token| format!("Bearer {}", token.trim())),
            seed,
            point: String::new(),
            back_off: BackOff::new(seed),
            epochs_max: BATCH_EPOCHS_MAX,
            is_forbidden: false,
            unreadable: None,
            collector: Arc::default(),
        })
    }

    /// Another one, for the spool of a point. They take turns.
    pub(crate) fn of_point(&self, point: &str) -> Self {
        let salt = point.bytes().fold(self.seed, |seed, byte| mix(seed ^ u64::from(byte)));
        Self {
            agent: self.agent.clone(),
            url: self.url.clone(),
            token: self.token.clone(),
            seed: self.seed,
            point: point.to_owned(),
            back_off: BackOff::new(salt),
            epochs_max: BATCH_EPOCHS_MAX,
            is_forbidden: false,
            unreadable: None,
            collector: Arc::clone(&self.collector),
        }
    }

    /// Sends until the spool is closed, and then what is left if that can be sent at once.
    pub(crate) fn run(&mut self, spool: &Spool, metrics: &SenderMetrics) {
        loop {
            let is_open = spool.wait(WAIT);
            let batch = spool.batch(self.epochs_max, BATCH_BYTES_MAX);
            let batch = batch.unwrap_or_else(|error| {
                self.note_unreadable(&error);
                Vec::new()
            });
            if batch.is_empty() {
                if !is_open {
                    return;
                }
                // Epochs that cannot be read still wait: never spin on them.
                if spool.counts().epochs > 0 {
                    spool.pause(WAIT);
                }
                continue;
            }
            self.unreadable = None;
            let pause = self.send_batch(spool, &batch, is_open, metrics);
            if let Some(pause) = pause
                && !spool.pause(pause)
                && !is_open
            {
                return;
            }
        }
    }

    /// Sends a batch; how long to wait before the next, if not all of it was settled.
    fn send_batch(
        &mut self,
        spool: &Spool,
        batch: &[Spooled],
        is_open: bool,
        metrics: &SenderMetrics,
    ) -> Option<Duration> {
        let collector = Arc::clone(&self.collector);
        let mut collector = lock(&collector);
        if !is_open && collector.is_hopeless {
            return Some(Duration::ZERO);
        }
        let reply = self.send(batch, is_open);
        metrics.replied(&reply);
        match reply {
            Reply::Receipt(receipt) => self.settle(spool, batch, &receipt, &mut collector, metrics),
            Reply::TooLarge { .. } if batch.len() > 1 => {
                self.epochs_max = batch.len().div_ceil(2);
                None
            }
            Reply::TooLarge { reason } => {
                for Spooled { epoch, .. } in batch {
                    let (point, epoch) = (&self.point, epoch.0);
                    tracing::warn!(point, epoch, reason, "epoch not delivered, kept");
                }
                self.put_back(spool, batch, batch, metrics)
            }
            Reply::Forbidden { reason } => {
                if !std::mem::replace(&mut self.is_forbidden, true) {
                    tracing::warn!(point = self.point, reason, "epochs not delivered, kept");
                }
                Some(self.back_off.next(None))
            }
            Reply::Unavailable { after, reason } => {
                if collector.trouble.as_ref() != Some(&reason) {
                    tracing::warn!(reason, "epochs not delivered, kept");
                    collector.trouble = Some(reason);
                }
                collector.is_hopeless = !is_open;
                Some(self.back_off.next(after))
            }
        }
    }

    /// The receipt accounts for all epochs: those that it settles leave the spool.
    fn settle(
        &mut self,
        spool: &Spool,
        batch: &[Spooled],
        receipt: &Receipt,
        collector: &mut CollectorState,
        metrics: &SenderMetrics,
    ) -> Option<Duration> {
        self.log_refusals(&receipt.refused);
        metrics.received(receipt);
        let unsettled = receipt.refused.iter().filter(|refused| !refused.is_final());
        let unsettled: Vec<Spooled> =
            unsettled.filter_map(|refused| batch.get(refused.index?)).cloned().collect();
        self.epochs_max = (self.epochs_max * 2).min(BATCH_EPOCHS_MAX);
        if collector.trouble.take().is_some() | std::mem::take(&mut self.is_forbidden) {
            tracing::info!(point = self.point, "the collector accepts epochs again");
        }
        if unsettled.len() < batch.len() {
            self.back_off.reset();
        }
        match unsettled.is_empty() {
            true => {
                spool.confirm(batch.last()?);
                None
            }
            false => self.put_back(spool, batch, &unsettled, metrics),
        }
    }

    /// The spool cannot be read, and that is logged once. Its epochs wait.
    fn note_unreadable(&mut self, error: &SpoolError) {
        let problem = error.to_string();
        if self.unreadable.as_ref() != Some(&problem) {
            tracing::error!(point = self.point, problem, "cannot read the spool; epochs wait");
            self.unreadable = Some(problem);
        }
    }

    /// Puts these epochs of the batch to the back of the spool, and confirms the batch. If the disk
    /// does not take them, all of it stays where it is.
    fn put_back(
        &mut self,
        spool: &Spool,
        batch: &[Spooled],
        epochs: &[Spooled],
        metrics: &SenderMetrics,
    ) -> Option<Duration> {
        let append = |spooled: &Spooled| spool.append(spooled.epoch, &spooled.payload);
        match epochs.iter().try_for_each(append).and_then(|()| spool.sync()) {
            Ok(()) => {
                metrics.put_back(epochs.len() as u64);
                spool.confirm(batch.last()?);
            }
            Err(error) => tracing::warn!(point = self.point, %error, "the spool cannot be written"),
        }
        Some(self.back_off.next(None))
    }

    /// One line for all that are discarded, and one for all that are kept: a collector that is to be
    /// upgraded refuses every epoch.
    fn log_refusals(&self, refused: &[RefusedEpoch]) {
        for (is_final, consequence) in [(true, "discarded"), (false, "kept")] {
            let mut such = refused.iter().filter(|epoch| epoch.is_final() == is_final);
            if let Some(RefusedEpoch { epoch, reason, .. }) = such.next() {
                let (point, epochs) = (&self.point, 1 + such.count());
                tracing::warn!(point, epoch, reason, epochs, consequence, "epochs refused");
            }
        }
    }

    fn send(&self, batch: &[Spooled], is_open: bool) -> Reply {
        let body = match body_of(batch) {
            Ok(body) => body,
            Err(reason) => return Reply::TooLarge { reason },
        };
        let mut request = self
            .agent
            .post(&self.url)
            .header("Content-Type", UPLOAD_MEDIA_TYPE)
            .header("Content-Encoding", UPLOAD_ENCODING);
        if let Some(token) = &self.token {
            request = request.header("Authorization", token);
        }
        if !is_open {
            request = request.config().timeout_global(Some(LAST_TIMEOUT)).build();
        }
        let unavailable =
            |error| Reply::Unavailable { after: None, reason: trouble::explain(&error) };
        let response = request.send(&body[..]).map_err(unavailable);
        let read = response.and_then(|response| {
            let (head, mut body) = response.into_parts();
            let text = body.with_config().limit(REPLY_BYTES_MAX).read_to_string();
            Ok((head, text.map_err(unavailable)?))
        });
        let (head, text) = match read {
            Ok(read) => read,
            Err(unavailable) => return unavailable,
        };
        let header = |name: &str| head.headers.get(name).and_then(|value| value.to_str().ok());
        let response = ResponseParts {
            status: head.status.as_u16(),
            is_marked: header(COLLECTOR_HEADER).is_some(),
            retry_after: header("retry-after"),
            body: &text,
        };
        Reply::read(response, batch.len())
    }
}

fn body_of(batch: &[Spooled]) -> Result<Vec<u8>, String> {
    let mut writer = UploadWriter::new();
    for spooled in batch {
        writer.push(&spooled.payload).map_err(|error| error.to_string())?;
    }
    zstd::bulk::compress(&writer.into_body(), ZSTD_LEVEL).map_err(|error| error.to_string())
}

fn lock(collector: &Mutex<CollectorState>) -> MutexGuard<'_, CollectorState> {
    collector.lock().unwrap_or_else(PoisonError::into_inner)
}

fn check_url(config: &DeliveryConfig) -> Result<(), SenderError> {
    let url = || config.url.clone();
    let host = match config.url.split_once("://") {
        Some(("https", rest)) if !rest.is_empty() => return Ok(()),
        Some(("http", rest)) => rest.split('/').next().unwrap_or_default(),
        _ => return Err(SenderError::Url { url: url() }),
    };
    let host = host.rsplit_once(':').map_or(host, |(name, _)| name);
    let address = host.trim_matches(['[', ']']).parse::<std::net::IpAddr>();
    let is_here = host == "localhost" || address.is_ok_and(|address| address.is_loopback());
    match host {
        "" => Err(SenderError::Url { url: url() }),
        _ if is_here || config.plain_http_forced => Ok(()),
        _ => Err(SenderError::PlainHttp { url: url() }),
    }
}

fn tls(config: &DeliveryConfig) -> Result<TlsConfig, SenderError> {
    let mut tls = TlsConfig::builder();
    if let Some(pem) = &config.ca {
        tls = tls.root_certs(RootCerts::new_with_certs(&certificates("ca", pem)?));
    }
    if let Some((certificate, key)) = &config.identity {
        let chain = certificates("certificate", certificate)?;
        let key = PrivateKey::from_pem(key)
            .map_err(|_| SenderError::Pem { what: "key", wanted: "private key" })?;
        tls = tls.client_cert(Some(ClientCert::new_with_certs(&chain, key)));
    }
    Ok(tls.build())
}

fn certificates(what: &'static str, pem: &[u8]) -> Result<Vec<Certificate<'static>>, SenderError> {
    let certificate = |item| match item {
        Ok(PemItem::Certificate(certificate)) => Some(certificate),
        _ => None,
    };
    let found: Vec<_> = parse_pem(pem).filter_map(certificate).collect();
    match found.is_empty() {
        true => Err(SenderError::Pem { what, wanted: "certificate" }),
        false => Ok(found),
    }
}

#[cfg(test)]
mod tests;
