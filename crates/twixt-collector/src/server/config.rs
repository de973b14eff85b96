//! What connections and requests may use.

use std::path::PathBuf;
use std::time::Duration;

/// Where the keys of encrypted connections lie, as PEM files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsConfig {
    /// The collector's certificate, and those between it and the authority.
    pub certificate: PathBuf,
    /// Its key.
    pub key: PathBuf,
    /// The authority whose certificates clients show. Without tokens they must show one.
    pub client_ca: Option<PathBuf>,
}

/// Why keys cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TlsError {
    /// A file cannot be read, or is not a PEM file of this kind. Check path and permissions.
    #[error("cannot read {what} from {}: {problem}", path.display())]
    File {
        /// What should be in it.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// What is wrong.
        problem: String,
    },
    /// Certificate and key do not belong together, or are of a kind that is not known.
    #[error("certificate and key: {0}")]
    Pair(#[from] rustls::Error),
    /// The authority cannot be used.
    #[error("client authority: {0}")]
    Authority(String),
}

/// What one caller, and all together, may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a request's body, before and after it is unpacked.
    pub body_bytes_max: usize,
    /// Memory for bodies and epochs from being read to being handed to the engine, of all callers
    /// together. One caller has a quarter of it at most.
    pub memory_bytes_max: u64,
    /// Connections at a time.
    pub connections_max: usize,
    /// Connections of one address at a time.
    pub connections_per_address_max: usize,
    /// Requests of one caller at a time.
    pub requests_per_caller_max: usize,
    /// Epochs of one caller, lasting.
    pub epochs_per_second: u64,
    /// Epochs of one caller at once, after a pause: a spool that is being emptied.
    pub epochs_burst: u64,
    /// Questions of one reader, lasting.
    pub queries_per_second: u64,
    /// Questions of one reader at once, after a pause.
    pub queries_burst: u64,
    /// Points that there may be.
    pub points_max: usize,
    /// How long the header of a request may take, and a connection may be silent.
    pub header_time: Duration,
    /// How long the body of a request may take.
    pub body_time: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            body_bytes_max: 32 << 20,
            memory_bytes_max: 512 << 20,
            connections_max: 512,
            connections_per_address_max: 64,
            requests_per_caller_max: 16,
            epochs_per_second: 1_000,
            epochs_burst: 10_000,
            queries_per_second: 50,
            queries_burst: 200,
            points_max: 1_024,
            header_time: Duration::from_secs(15),
            body_time: Duration::from_secs(60),
        }
    }
}

impl Limits {
    /// The first that is zero.
    pub(crate) fn zero(&self) -> Option<&'static str> {
        let values = [
            ("body_bytes_max", self.body_bytes_max == 0),
            ("memory_max", self.memory_bytes_max == 0),
            ("connections_max", self.connections_max == 0),
            ("connections_per_address_max", self.connections_per_address_max == 0),
            ("requests_per_caller_max", self.requests_per_caller_max == 0),
            ("epochs_per_second", self.epochs_per_second == 0),
            ("epochs_burst", self.epochs_burst == 0),
            ("queries_per_second", self.queries_per_second == 0),
            ("queries_burst", self.queries_burst == 0),
            ("points_max", self.points_max == 0),
            ("header_time", self.header_time.is_zero()),
            ("body_time", self.body_time.is_zero()),
        ];
        values.into_iter().find(|(_, is_zero)| *is_zero).map(|(name, _)| name)
    }
}
