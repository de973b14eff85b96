//! Sends epochs from the spool to the collector, until it says that they are stored.
//!
//! One batch at a time, oldest first, so that an epoch is confirmed only after all before it. Knows
//! nothing of packets.

mod answer;
mod back_off;
mod trouble;

use std::time::Duration;

use twixt_measure::Sealed;
use twixt_measure::{UPLOAD_ENCODING, UPLOAD_MEDIA_TYPE, UPLOAD_PATH, UploadWriter};
use ureq::tls::{Certificate, ClientCert, PemItem, PrivateKey, RootCerts, TlsConfig, parse_pem};

use crate::metrics::SenderMetrics;
use crate::spool::{Spool, Spooled};
pub(crate) use answer::Answer;
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
/// Of an answer, no more is read.
const ANSWER_BYTES_MAX: u64 = 1 << 20;
/// Fast, and epochs are small.
const ZSTD_LEVEL: i32 = 3;

/// Where epochs go, and how this agent proves who it is.
#[derive(Clone, Debug)]
pub struct CollectorConfig {
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
    back_off: BackOff,
    /// Epochs in the next body: fewer after one was refused as a whole.
    epochs_max: usize,
    /// What went wrong last, so that it is said once.
    trouble: Option<String>,
}

impl Sender {
    /// Sends nothing yet. The seed is for the jitter of its waits.
    pub(crate) fn new(config: &CollectorConfig, seed: u64) -> Result<Self, SenderError> {
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
            back_off: BackOff::new(seed),
            epochs_max: BATCH_EPOCHS_MAX,
            trouble: None,
        })
    }

    /// Sends until the spool is closed, and then what is left if that goes at once.
    pub(crate) fn run(&mut self, spool: &Spool, metrics: &SenderMetrics) {
        loop {
            let is_open = spool.wait(WAIT);
            let batch = spool.batch(self.epochs_max, BATCH_BYTES_MAX);
            if batch.is_empty() {
                if !is_open {
                    return;
                }
                continue;
            }
            let pause = self.send_batch(spool, &batch, is_open, metrics);
            if let Some(pause) = pause
                && !spool.pause(pause)
                && !is_open
            {
                return;
            }
        }
    }

    /// Sends a batch; how long to wait before the next, if anything went wrong.
    fn send_batch(
        &mut self,
        spool: &Spool,
        batch: &[Spooled],
        is_open: bool,
        metrics: &SenderMetrics,
    ) -> Option<Duration> {
        let last = batch.last()?;
        let answer = self.send(batch, is_open);
        metrics.answered(&answer);
        match answer {
            Answer::Stored { stored, duplicates, refused } => {
                for refusal in &refused {
                    tracing::warn!(
                        point = refusal.point,
                        epoch = refusal.epoch,
                        reason = refusal.reason,
                        "the collector refuses an epoch"
                    );
                }
                metrics.confirmed(stored, duplicates, refused.len() as u64);
                spool.confirm(last);
                self.epochs_max = (self.epochs_max * 2).min(BATCH_EPOCHS_MAX);
                self.back_off.reset();
                if self.trouble.take().is_some() {
                    tracing::info!("the collector takes epochs again");
                }
                None
            }
            Answer::TooMuch { .. } if batch.len() > 1 => {
                self.epochs_max = batch.len().div_ceil(2);
                None
            }
            Answer::TooMuch { reason } => {
                tracing::warn!(
                    epoch = last.epoch.0,
                    point = point_of(last),
                    reason,
                    "the collector refuses an epoch"
                );
                metrics.confirmed(0, 0, 1);
                spool.confirm(last);
                None
            }
            Answer::NotNow { after, reason } => {
                if self.trouble.as_ref() != Some(&reason) {
                    tracing::warn!(reason, "epochs are not stored, and kept");
                    self.trouble = Some(reason);
                }
                Some(self.back_off.next(after))
            }
        }
    }

    fn send(&self, batch: &[Spooled], is_open: bool) -> Answer {
        let body = match body_of(batch) {
            Ok(body) => body,
            Err(reason) => return Answer::TooMuch { reason },
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
        let mut response = match request.send(&body[..]) {
            Ok(response) => response,
            Err(error) => return Answer::NotNow { after: None, reason: trouble::explain(&error) },
        };
        let status = response.status().as_u16();
        let retry_after =
            response.headers().get("retry-after").and_then(|value| value.to_str().ok());
        let retry_after = retry_after.map(str::to_owned);
        match response.body_mut().with_config().limit(ANSWER_BYTES_MAX).read_to_string() {
            Ok(text) => Answer::of(status, retry_after.as_deref(), &text, batch.len()),
            Err(error) => Answer::NotNow { after: None, reason: trouble::explain(&error) },
        }
    }
}

fn body_of(batch: &[Spooled]) -> Result<Vec<u8>, String> {
    let mut writer = UploadWriter::new();
    for spooled in batch {
        writer.push(&spooled.payload).map_err(|error| error.to_string())?;
    }
    zstd::bulk::compress(&writer.into_body(), ZSTD_LEVEL).map_err(|error| error.to_string())
}

/// The point of an epoch, for messages.
fn point_of(spooled: &Spooled) -> String {
    Sealed::from_bytes(&spooled.payload).map_or_else(|_| "?".to_owned(), |sealed| sealed.point.0)
}

fn check_url(config: &CollectorConfig) -> Result<(), SenderError> {
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

fn tls(config: &CollectorConfig) -> Result<TlsConfig, SenderError> {
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
