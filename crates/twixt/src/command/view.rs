//! `twixt view`: an incident bundle in the browser.

use std::net::SocketAddr;
use std::path::PathBuf;

use twixt_collector::StopRequest;
use twixt_collector::bundle::view_bundle;

use super::demo::check_loopback;
use crate::bundle::OpenedBundle;
use crate::exit::{Exit, note};
use crate::signals::{SecondSignal, Signals};

/// An incident bundle in the browser, as a collector would show it
///
/// Serves the dashboard and the API on a loopback address until Ctrl-C, read-only and without a
/// configuration. The bundle is opened into a temporary directory, which is removed at the end.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The bundle: downloaded from a dashboard, or written by `twixt query --bundle`
    #[arg(value_name = "BUNDLE")]
    bundle: PathBuf,
    /// Loopback address and port [default: 127.0.0.1, any port]
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<SocketAddr>,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Exit> {
    let listen = args.listen.unwrap_or_else(|| SocketAddr::from(([127, 0, 0, 1], 0)));
    check_loopback(listen)?;
    let (stop, signals) = (StopRequest::new(), Signals::watch(SecondSignal::Waits)?);
    signals.stop(stop.clone());
    let bundle = OpenedBundle::open(&args.bundle)?;
    let ready = |address| {
        note(format_args!("view: bundle on http://{address}/#/segment; Ctrl-C ends it"));
    };
    view_bundle(&bundle.manifest, bundle.folder(), listen, &stop, ready)?;
    Ok(if signals.was_interrupted() { Exit::Interrupted } else { Exit::Done })
}
