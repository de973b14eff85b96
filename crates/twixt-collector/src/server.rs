//! Connections: accepts them, encrypts them, and ensures that no client holds more of them, or
//! holds them longer, than is fair. What a request asks for is not its business.

mod accept;
mod config;
mod descriptors;
mod metrics;
mod tls;

pub use config::{Limits, TlsConfig, TlsError};
pub(crate) use metrics::ServerMetrics;
pub(crate) use tls::{WithoutCertificate, acceptor};

use std::io::Write as _;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Body;
use hyper::Request;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tower::ServiceExt;
use tracing::{debug, warn};

use crate::access::{Caller, caller_of};
use crate::log_limit::LogLimit;
use crate::stop::StopRequest;
use accept::{Admission, Guests};

/// How long the making of an encrypted connection may take.
const HANDSHAKE_TIME: Duration = Duration::from_secs(10);
/// A connection is closed at this age, after the request that is being answered. An agent makes a
/// new one; who does not read answers is got rid of.
const CONNECTION_AGE: Duration = Duration::from_secs(600);
/// How long a request that is being answered may then still take, and all of them when the
/// collector stops.
pub(crate) const LAST_WORDS_TIME: Duration = Duration::from_secs(10);
/// Headers of a request at most, in bytes; hyper wants 8 KiB at least.
const HEADER_BYTES_MAX: usize = 16 << 10;
/// How long to wait when a connection cannot be accepted.
const ACCEPT_RETRY: Duration = Duration::from_millis(50);
/// The answer to a connection beyond the limit.
const CROWDED: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\n\
    retry-after: 5\r\ntwixt-collector: 1\r\ncontent-type: application/json\r\n\
    content-length: 32\r\n\r\n\
    {\"error\":\"too many connections\"}";

/// Who is at the other end of a connection, as far as the connection tells.
#[derive(Clone, Debug)]
pub(crate) struct Peer {
    /// The owner of the certificate, if one was shown that names points.
    pub(crate) certified: Option<Arc<Caller>>,
}

/// Accepts connections until asked to stop, then lets requests finish.
pub(crate) struct Server {
    pub(crate) listener: TcpListener,
    pub(crate) tls: Option<TlsAcceptor>,
    pub(crate) limits: Limits,
    pub(crate) router: Router,
    pub(crate) metrics: ServerMetrics,
}

impl Server {
    /// Serves until asked to stop.
    pub(crate) async fn run(self, stop: StopRequest) {
        let guests = Guests::new(self.limits, self.metrics.clone());
        let (mut crowded, mut failing) = (LogLimit::default(), LogLimit::default());
        let shared = Arc::new(self);
        loop {
            let accepted = tokio::select! {
                accepted = shared.listener.accept() => accepted,
                () = stop.requested() => break,
            };
            match accepted {
                Ok((stream, address)) => match guests.admit(address.ip()) {
                    Some(admission) => {
                        let serving = Arc::clone(&shared).serve(stream, address, stop.clone());
                        tokio::spawn(hold(admission, serving));
                    }
                    None => {
                        shared.turn_away(stream);
                        if let Some(refused) = crowded.note(1, Instant::now()) {
                            warn!(%address, refused, "too many connections: refusing some");
                        }
                    }
                },
                // Out of descriptors, as a rule: waiting lets some be closed.
                Err(problem) => {
                    shared.metrics.refuse("accept-failed");
                    if let Some(failed) = failing.note(1, Instant::now()) {
                        warn!(%problem, failed, "cannot accept connections");
                    }
                    tokio::time::sleep(ACCEPT_RETRY).await;
                }
            }
        }
        let _ = timeout(LAST_WORDS_TIME, guests.all_gone()).await;
    }

    /// Answers with the reason, if that is possible at once: nothing is kept of refused
    /// connections.
    fn turn_away(&self, stream: TcpStream) {
        if self.tls.is_none()
            && let Ok(mut stream) = stream.into_std()
        {
            let _ = stream.write(CROWDED);
        }
    }

    async fn serve(self: Arc<Self>, stream: TcpStream, address: SocketAddr, stop: StopRequest) {
        let _ = stream.set_nodelay(true);
        let Some(acceptor) = &self.tls else {
            return self.answer(stream, Peer { certified: None }, stop).await;
        };
        let handshake = timeout(HANDSHAKE_TIME, acceptor.accept(stream)).await;
        match handshake {
            Ok(Ok(encrypted)) => {
                let certificates = encrypted.get_ref().1.peer_certificates();
                let first = certificates.and_then(<[_]>::first);
                let certified = first.and_then(|der| caller_of(der)).map(Arc::new);
                self.answer(encrypted, Peer { certified }, stop).await;
            }
            Ok(Err(problem)) => {
                self.metrics.refuse("handshake");
                debug!(%address, %problem, "TLS handshake failed");
            }
            Err(_) => self.metrics.refuse("handshake-slow"),
        }
    }

    async fn answer<S>(&self, stream: S, peer: Peer, stop: StopRequest)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let router = self.router.clone();
        let service = service_fn(move |mut request: Request<hyper::body::Incoming>| {
            request.extensions_mut().insert(peer.clone());
            router.clone().oneshot(request.map(Body::new))
        });
        let mut builder = http1::Builder::new();
        builder
            .timer(TokioTimer::new())
            .header_read_timeout(self.limits.header_time)
            .max_buf_size(HEADER_BYTES_MAX)
            .half_close(false);
        let connection = builder.serve_connection(TokioIo::new(stream), service);
        tokio::pin!(connection);
        tokio::select! {
            _ = connection.as_mut() => return,
            () = tokio::time::sleep(CONNECTION_AGE) => {}
            () = stop.requested() => {}
        }
        connection.as_mut().graceful_shutdown();
        let _ = timeout(LAST_WORDS_TIME, connection).await;
    }
}

/// The admission ends with the connection.
async fn hold(admission: Admission, serving: impl Future<Output = ()>) {
    serving.await;
    drop(admission);
}
