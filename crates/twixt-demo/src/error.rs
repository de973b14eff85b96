//! Why the demo cannot go on.

use std::io;

use twixt_collector::CollectorError;
use twixt_history::HistoryError;
use twixt_sim::NetworkError;

/// Why the demo cannot go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DemoError {
    /// The network cannot be simulated: a fault of the demo.
    #[error("cannot simulate the network: {0}")]
    Network(#[from] NetworkError),
    /// The observation points cannot be set up: a fault of the demo.
    #[error("cannot set up the observation points: {0}")]
    Points(String),
    /// The collector cannot start or go on. The cause says why.
    #[error(transparent)]
    Collector(#[from] CollectorError),
    /// The collector does not take epochs.
    #[error("the collector does not take epochs: {0}")]
    Upload(String),
    /// Stored estimates cannot be read.
    #[error(transparent)]
    History(#[from] HistoryError),
    /// There is no room for temporary files, or no thread to be had.
    #[error("cannot start the demo: {0}")]
    Start(#[source] io::Error),
    /// What there is to tell cannot be written.
    #[error("cannot write what was found")]
    Shown(#[source] io::Error),
}
