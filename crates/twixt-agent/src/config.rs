//! What an agent is to do.

use std::net::SocketAddr;
use std::path::PathBuf;

use twixt_capture::{GROUP_MAX, LiveOptions};
use twixt_model::{Delay, EpochRule};
use twixt_synopsis::AnySynopsis;
use twixt_wire::{Digester, Filter};

use crate::agent::AgentError;
use crate::sender::DeliveryConfig;

/// Points of one agent.
pub const POINTS_MAX: usize = 64;

/// Epochs of each point that an advised spool holds: a minute of them, at one a second.
const SPOOL_EPOCHS_MIN: u64 = 60;

/// What an agent is to do.
#[derive(Debug)]
pub struct AgentConfig {
    /// Within which point names are unique.
    pub domain: String,
    /// How time is cut into epochs; the same at all points.
    pub rule: EpochRule,
    /// Half the width of the zone around boundaries; `None`: a tenth of an epoch.
    pub guard: Option<Delay>,
    /// How packets are recognised; the same at all points.
    pub digester: Digester,
    /// Classes of traffic, each with synopses of its own; none: one for all traffic.
    pub classes: Vec<(String, Filter)>,
    /// What each point keeps.
    pub synopses: Vec<Box<dyn AnySynopsis>>,
    /// Where packets are observed.
    pub points: Vec<PointConfig>,
    /// Where epochs wait.
    pub spool: SpoolConfig,
    /// Where epochs go.
    pub delivery: DeliveryConfig,
    /// Where metrics are served.
    pub metrics: Option<SocketAddr>,
    /// Who the agent becomes once its sockets are open.
    pub user: Option<String>,
}

/// Where packets are observed.
#[derive(Clone, Debug)]
pub struct PointConfig {
    /// Its name, unique in the domain.
    pub name: String,
    /// The interface.
    pub interface: String,
    /// How it is captured.
    pub options: LiveOptions,
    /// Only these packets.
    pub filter: Option<Filter>,
    /// Measure the outermost IP packet, not the one inside tunnels.
    pub outer: bool,
    /// Threads among which the kernel spreads its flows.
    pub threads: usize,
}

/// Where epochs wait until the collector has stored them.
#[derive(Clone, Debug)]
pub struct SpoolConfig {
    /// The folder, made if it is not there.
    pub folder: PathBuf,
    /// It never takes more.
    pub bytes_max: u64,
}

impl AgentConfig {
    /// What can be checked without opening anything.
    ///
    /// # Errors
    /// When it makes no sense.
    pub(crate) fn check(&self) -> Result<(), AgentError> {
        let wrong = |problem: String| Err(AgentError::Config { problem });
        if self.rule == EpochRule::WHOLE {
            return wrong("an agent needs an epoch length, such as 1s".to_owned());
        }
        if self.synopses.is_empty() {
            return wrong(
                "no synopsis configured: add a [[synopsis]] with an algorithm".to_owned(),
            );
        }
        if self.points.is_empty() || self.points.len() > POINTS_MAX {
            let points = self.points.len();
            return wrong(format!("{points} points; an agent has from 1 to {POINTS_MAX}"));
        }
        for (index, point) in self.points.iter().enumerate() {
            if self.points[..index].iter().any(|other| other.name == point.name) {
                return wrong(format!("duplicate point name {:?}", point.name));
            }
            if point.name.is_empty() {
                return wrong("a point without a name".to_owned());
            }
            if !(1..=GROUP_MAX).contains(&point.threads) {
                let name = &point.name;
                return wrong(format!("point {name}: threads must be from 1 to {GROUP_MAX}"));
            }
        }
        self.check_spool().or_else(wrong)
    }

    /// An epoch that is larger than the spool of its point would be discarded, and so would all that follow.
    fn check_spool(&self) -> Result<(), String> {
        let points = self.points.len() as u64;
        let share_bytes = self.spool.bytes_max / points;
        let largest = self.synopses.iter().max_by_key(|synopsis| synopsis.state_bytes());
        match largest.map(|synopsis| (synopsis.name(), synopsis.state_bytes())) {
            Some((name, bytes)) if bytes > share_bytes => Err(format!(
                "[spool] bytes_max is too small: an epoch of {name} takes up to {} KiB, and each point may \
                 store {} KiB; set it to {}MiB or more",
                bytes.div_ceil(1 << 10),
                share_bytes >> 10,
                (SPOOL_EPOCHS_MIN * bytes * points).div_ceil(1 << 20)
            )),
            _ => Ok(()),
        }
    }
}
