//! Sends epochs from the spool to the collector. What is sent, and what a reply means, is decided by
//! `delivery`; here are the connection and the waiting. One request at a time, over one connection.

mod trouble;

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use twixt_delivery::{
    AGENT_PRODUCT, COLLECTOR_HEADER, Reply, ResponseParts, SPOOL_HEADER, SpoolState,
    UPLOAD_ENCODING, UPLOAD_MEDIA_TYPE, UPLOAD_PATH,
};
use twixt_model::mix;
use ureq::tls::{Certificate, ClientCert, PemItem, PrivateKey, RootCerts, TlsConfig, parse_pem};

use crate::delivery::{CollectorTrouble, Delivery, body_of};
use crate::metrics::SenderMetrics;
use crate::spool::{Spool, SpoolCounts, Spooled};

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
    #[error("{what}: contains no {wanted} in PEM (-----BEGIN …)")]
    Pem {
        /// Which file.
        what: &'static str,
        /// What should be in it.
        wanted: &'static str,
    },
}

/// Sends what is in spools. Threads share it, and take turns.
#[derive(Debug)]
pub(crate) struct Sender {
    agent: ureq::Agent,
    url: String,
    token: Option<String>,
    seed: u64,
    /// The thread that has locked it may send.
    turn: Mutex<Turn>,
}

/// What the thread knows that may send.
#[derive(Debug, Default)]
struct Turn {
    trouble: CollectorTrouble,
    /// The agent ends, and the collector did not take what was sent last: others need not try.
    is_hopeless: bool,
}

impl Sender {
    /// Sends nothing yet. The seed is for the jitter of waits.
    pub(crate) fn new(config: &DeliveryConfig, seed: u64) -> Result<Self, SenderError> {
        check_url(config)?;
        let settings = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .proxy(None)
            .user_agent(format!("{AGENT_PRODUCT}{}", env!("CARGO_PKG_VERSION")))
            .timeout_connect(Some(CONNECT_TIMEOUT))
            .timeout_global(Some(REQUEST_TIMEOUT))
            .tls_config(tls(config)?)
            .build();
        Ok(Self {
            agent: ureq::Agent::new_with_config(settings),
            url: format!("{}{UPLOAD_PATH}", config.url.trim_end_matches('/')),
            token: config.token.as_ref().map(|token| format!("Bearer {}", token.trim())),
            seed,
            turn: Mutex::default(),
        })
    }

    /// Sends the epochs of a point until its spool is closed, and then what is left if that can be
    /// sent at once.
    pub(crate) fn run(&self, point: &str, spool: &Spool, metrics: &SenderMetrics) {
        let salt = point.bytes().fold(self.seed, |seed, byte| mix(seed ^ u64::from(byte)));
        let mut delivery = Delivery::new(point, salt, metrics.clone());
        loop {
            let is_open = spool.wait(WAIT);
            let batch = delivery.batch(spool);
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
            let pause = self.deliver(&mut delivery, spool, &batch, is_open);
            if let Some(pause) = pause
                && !spool.pause(pause)
                && !is_open
            {
                return;
            }
        }
    }

    /// Sends a batch; how long to wait before the next, if not all of it was settled.
    fn deliver(
        &self,
        delivery: &mut Delivery,
        spool: &Spool,
        batch: &[Spooled],
        is_open: bool,
    ) -> Option<Duration> {
        let mut turn = lock(&self.turn);
        if turn.is_hopeless {
            return Some(Duration::ZERO);
        }
        let reply = self.send(batch, spool.counts(), is_open);
        turn.is_hopeless = !is_open && matches!(reply, Reply::Unavailable { .. });
        delivery.settle(spool, batch, reply, &mut turn.trouble)
    }

    fn send(&self, batch: &[Spooled], waiting: SpoolCounts, is_open: bool) -> Reply {
        let SpoolCounts { epochs, bytes, discarded, .. } = waiting;
        let body = match body_of(batch) {
            Ok(body) => body,
            Err(reason) => return Reply::TooLarge { reason },
        };
        let mut request = self
            .agent
            .post(&self.url)
            .header("Content-Type", UPLOAD_MEDIA_TYPE)
            .header("Content-Encoding", UPLOAD_ENCODING)
            .header(SPOOL_HEADER, SpoolState { epochs, bytes, discarded }.to_string());
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

fn lock(turn: &Mutex<Turn>) -> MutexGuard<'_, Turn> {
    turn.lock().unwrap_or_else(PoisonError::into_inner)
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
