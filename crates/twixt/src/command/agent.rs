//! `twixt agent`: observes, seals epochs, and keeps them until a collector has stored them.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use twixt_agent::{Agent, AgentConfig, AgentError};
use twixt_capture::Stop;

use crate::args::DigestArgs;
use crate::configuration::agent::{AgentSettings, PointSettings};
use crate::exit::{Exit, note, usage};
use crate::output::units;

/// Observe interfaces, and send sealed epochs to a collector
///
/// Settings are in the file of --config; the options are for the simple case of one point, and
/// override the file.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Check the configuration and exit: code 2 and a message if something is wrong
    #[arg(long)]
    check: bool,
    /// Interface to observe, if the file has no points
    #[arg(short = 'i', long, value_name = "INTERFACE")]
    interface: Option<String>,
    /// Only frames that the interface receives, or sends: in, out, both
    #[arg(long, value_name = "DIRECTION", requires = "interface")]
    direction: Option<String>,
    /// Name of the observation point [default: the interface]
    #[arg(long, value_name = "NAME", requires = "interface")]
    point: Option<String>,
    /// Threads to spread the flows of the interface over [default: 1]
    #[arg(long, value_name = "N", requires = "interface")]
    threads: Option<usize>,
    /// Domain within which point names are unique
    #[arg(long, value_name = "NAME")]
    domain: Option<String>,
    /// Algorithm whose synopsis to keep; repeatable [default: those of the file, or lda]
    #[arg(short = 'a', long = "algorithm", value_name = "NAME")]
    algorithms: Vec<String>,
    /// Length of epochs [default: 1s]
    #[arg(long, value_name = "DURATION")]
    epoch: Option<String>,
    /// Keep whole observations this close to an epoch's boundary; must exceed any delay [default: a
    /// tenth of an epoch]
    #[arg(long, value_name = "DURATION")]
    guard: Option<String>,
    /// Directory where epochs wait until the collector has stored them; created if missing
    #[arg(long, value_name = "DIR")]
    spool: Option<PathBuf>,
    /// Maximum size of the spool; when it is full, the oldest epochs are discarded [default: 1GiB]
    #[arg(long, value_name = "SIZE")]
    spool_bytes: Option<String>,
    /// The collector, such as https://collector:9443
    #[arg(long, value_name = "URL")]
    collector: Option<String>,
    /// File with the token that this agent sends
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Authority that signed the collector's certificate, in PEM
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
    /// Certificate of this agent, in PEM
    #[arg(long, value_name = "FILE")]
    certificate: Option<PathBuf>,
    /// Key of that certificate, in PEM
    #[arg(long, value_name = "FILE")]
    certificate_key: Option<PathBuf>,
    /// Address for /metrics and /healthz, such as 127.0.0.1:9470
    #[arg(long, value_name = "ADDRESS")]
    metrics: Option<String>,
    /// Switch to this user once the sockets are open
    #[arg(long, value_name = "NAME")]
    user: Option<String>,
    #[command(flatten)]
    digest: DigestArgs,
    /// Observe only these packets: host, net, port, portrange, proto, vlan, dscp, and, or, not
    #[arg(value_name = "FILTER", requires = "interface")]
    filter: Vec<String>,
}

/// What signals have set.
struct Signals {
    stop: Stop,
    interrupted: Arc<AtomicBool>,
}

pub(crate) fn run(args: Args, file: Option<&Path>) -> anyhow::Result<Exit> {
    let check = args.check;
    let config = args.config(file)?;
    if check {
        Agent::check(&config).map_err(explained)?;
        let points: Vec<&str> = config.points.iter().map(|point| point.name.as_str()).collect();
        note(format_args!("the configuration is valid; points: {}", points.join(", ")));
        return Ok(Exit::Done);
    }
    let signals = Signals::listen().context("cannot handle signals")?;
    let agent = Agent::open(config, &signals.stop).map_err(explained)?;
    tell_start(&agent);
    let left = agent.run()?;
    if left > 0 {
        note(format_args!("{} epochs remain in the spool for the next start", units::count(left)));
    }
    Ok(match signals.interrupted.load(Ordering::Relaxed) {
        true => Exit::Interrupted,
        false => Exit::Done,
    })
}

/// For people who wait, and for scripts that start traffic now; then the log begins.
fn tell_start(agent: &Agent) {
    for point in agent.points() {
        note(format_args!("{point}: capturing"));
    }
    if let Some(address) = agent.metrics_address() {
        note(format_args!("metrics on http://{address}/metrics"));
    }
    crate::logging::start();
    let waiting = agent.waiting_epochs();
    if waiting > 0 {
        tracing::info!(epochs = waiting, "the spool holds epochs of an earlier run");
    }
}

impl Signals {
    /// A second signal ends the process at once.
    fn listen() -> std::io::Result<Self> {
        let (stop, interrupted) = (Stop::default(), Arc::new(AtomicBool::new(false)));
        for (signal, exit) in [(SIGINT, Exit::Interrupted), (SIGTERM, Exit::Done)] {
            flag::register_conditional_shutdown(signal, exit as i32, stop.flag())?;
            flag::register(signal, stop.flag())?;
        }
        flag::register(SIGINT, Arc::clone(&interrupted))?;
        Ok(Self { stop, interrupted })
    }
}

impl Args {
    fn config(self, file: Option<&Path>) -> anyhow::Result<AgentConfig> {
        let written = AgentSettings::load(file)?;
        let digest = self.digest.clone().with(&written.general());
        let digester = digest.digester();
        let algorithms = self.algorithms.clone();
        self.over(written)?.resolve(&algorithms, digester)
    }

    /// The settings of the file, with those of the command line before them.
    fn over(self, mut written: AgentSettings) -> anyhow::Result<AgentSettings> {
        match self.named_point() {
            Some(_) if !written.point.is_empty() => {
                return Err(usage("the file configures points: omit --interface"));
            }
            Some(point) => written.point.push(point),
            None if written.point.is_empty() => {
                return Err(usage(
                    "nothing to observe: use --interface, or --config FILE with points",
                ));
            }
            None => {}
        }
        written.domain = self.domain.unwrap_or(written.domain);
        written.epoch.length = self.epoch.or(written.epoch.length);
        written.epoch.guard = self.guard.or(written.epoch.guard);
        written.spool.directory = self.spool.or(written.spool.directory);
        written.spool.bytes_max = self.spool_bytes.or(written.spool.bytes_max);
        let collector = &mut written.collector;
        collector.url = self.collector.or(collector.url.take());
        collector.token_file = self.token_file.or(collector.token_file.take());
        collector.ca = self.ca.or(collector.ca.take());
        collector.certificate = self.certificate.or(collector.certificate.take());
        collector.key = self.certificate_key.or(collector.key.take());
        written.metrics.listen = self.metrics.or(written.metrics.listen);
        written.run.user = self.user.or(written.run.user);
        Ok(written)
    }

    fn named_point(&self) -> Option<PointSettings> {
        let interface = self.interface.clone()?;
        Some(PointSettings {
            name: self.point.clone().unwrap_or_else(|| interface.clone()),
            interface,
            direction: self.direction.clone(),
            filter: (!self.filter.is_empty()).then(|| self.filter.join(" ")),
            threads: self.threads,
            outer: false,
            promiscuous: None,
            snap_length: None,
            times: None,
            ring: None,
        })
    }
}

/// What the user wrote is a matter of usage; what the machine refuses is not.
fn explained(error: AgentError) -> anyhow::Error {
    match error {
        AgentError::Config { .. }
        | AgentError::Meter(_)
        | AgentError::Observer(_)
        | AgentError::Sender(_) => usage(error.to_string()),
        other => other.into(),
    }
}
