//! Serves the dashboard and the API over a bundle that was opened. Nothing is taken in, and nothing goes
//! on: the time is that of the bundle's end.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use tokio::net::TcpListener;
use twixt_history::{History, HistoryConfig};
use twixt_store::{Log, Options, real_disk};

use super::{BundleError, ManifestDocument};
use crate::alerts::{AlertBoard, Marks};
use crate::api::{Api, ApiAbout};
use crate::clock::WallClock;
use crate::dashboard;
use crate::history::{Estimates, PointHistories};
use crate::server::{LAST_WORDS_TIME, Limits, Server};
use crate::stop::StopRequest;
use crate::telemetry::Telemetry;
use crate::{EPOCHS_FOLDER, ESTIMATES_FOLDER};

/// Threads that serve connections.
const SERVER_THREADS: usize = 1;

/// Serves a bundle that was opened into a folder, until asked to stop. `ready` learns the address.
///
/// # Errors
/// When files cannot be read, or the address not be listened on.
pub fn view_bundle(
    manifest: &ManifestDocument,
    folder: &Path,
    listen: SocketAddr,
    stop: &StopRequest,
    ready: impl FnOnce(SocketAddr),
) -> Result<(), BundleError> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(SERVER_THREADS)
        .enable_all()
        .build()
        .map_err(BundleError::io("start"))?;
    let failed = || BundleError::io(format!("listen on {listen}"));
    let listener = runtime.block_on(TcpListener::bind(listen)).map_err(failed())?;
    let address = listener.local_addr().map_err(failed())?;
    let api = api(manifest, folder, stop)?;
    let server = Server {
        listener,
        tls: None,
        limits: Limits::default(),
        router: dashboard::router(&api.router(axum::Router::new())),
        metrics: Telemetry::new().server,
    };
    ready(address);
    runtime.block_on(server.run(stop.clone()));
    runtime.shutdown_timeout(LAST_WORDS_TIME);
    Ok(())
}

fn api(manifest: &ManifestDocument, folder: &Path, stop: &StopRequest) -> Result<Api, BundleError> {
    let clock = WallClock::standing();
    clock.set(manifest.span().end, Duration::ZERO);
    let history = History::open(&folder.join(ESTIMATES_FOLDER), HistoryConfig::default())?;
    let log = Log::open(folder.join(EPOCHS_FOLDER), Options::default());
    let points = PointHistories::open(&real_disk(), folder, &HistoryConfig::default())?;
    let stored = (Estimates::new(history, points, clock), log, folder.to_owned());
    let marks = Marks::open(real_disk(), folder.join("alert-marks.json"));
    let about =
        ApiAbout { configuration: manifest.configuration.clone(), bundle: Some(manifest.clone()) };
    let alerts = AlertBoard::new(&[], marks);
    Ok(Api::new(stored, about, alerts, &[], true, Limits::default(), stop.clone()))
}
