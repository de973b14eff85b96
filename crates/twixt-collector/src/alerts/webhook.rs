//! Reports transitions over HTTP: a queue and a thread for each address, so that one that
//! does not answer holds up neither estimates nor other addresses.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tracing::warn;

use super::metrics::AlertMetrics;
use twixt_supervise::Supervisor;

use crate::stop::StopRequest;

/// Messages that wait for an address; further ones are dropped and counted.
const WAITING_MAX: usize = 1_000;
/// How often a message is tried, over about six minutes, until it is dropped and counted.
const ATTEMPTS_MAX: u32 = 10;
/// The first wait between two tries; each is twice as long as the one before.
const WAIT_FIRST: Duration = Duration::from_secs(1);
/// The longest.
const WAIT_MAX: Duration = Duration::from_secs(60);
/// How often it is looked whether to stop, meanwhile.
const WAIT_STEP: Duration = Duration::from_millis(50);
/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// The webhooks.
pub(super) struct Webhooks {
    queues: BTreeMap<String, SyncSender<Arc<str>>>,
    threads: Vec<JoinHandle<()>>,
    metrics: AlertMetrics,
}

/// How a try ended.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Outcome {
    Sent,
    /// Trying again will not help.
    Refused(String),
    /// It may help.
    Failed(String),
}

impl Webhooks {
    /// Starts a thread for each address.
    pub(super) fn start<'a>(
        addresses: impl IntoIterator<Item = &'a String>,
        metrics: &AlertMetrics,
        stop: &StopRequest,
        supervisor: &Supervisor,
    ) -> io::Result<Self> {
        let (queues, threads) = (BTreeMap::new(), Vec::new());
        let mut webhooks = Self { queues, threads, metrics: metrics.clone() };
        for address in addresses {
            if webhooks.queues.contains_key(address) {
                continue;
            }
            let (sender, receiver) = sync_channel(WAITING_MAX);
            let (url, metrics, stop) = (address.clone(), metrics.clone(), stop.clone());
            let builder = thread::Builder::new().name("webhook".to_owned());
            let supervisor = supervisor.clone();
            let send = move || send_all(&url, &receiver, &metrics, &stop);
            let run = move || drop(supervisor.run("webhook", send));
            webhooks.threads.push(builder.spawn(run)?);
            webhooks.queues.insert(address.clone(), sender);
        }
        Ok(webhooks)
    }

    /// Hands a message over; it is dropped if too many wait.
    pub(super) fn send(&self, address: &str, body: &Arc<str>) {
        let queue = self.queues.get(address);
        if queue.is_none_or(|queue| queue.try_send(Arc::clone(body)).is_err()) {
            self.metrics.dropped();
            warn!(host = host(address), "too many messages waiting for a webhook: one was dropped");
        }
    }
}

impl Drop for Webhooks {
    /// What waits is tried once more, if the collector is to stop.
    fn drop(&mut self) {
        self.queues.clear();
        for thread in self.threads.drain(..) {
            thread.join().expect("a supervised thread does not panic");
        }
    }
}

fn send_all(url: &str, messages: &Receiver<Arc<str>>, metrics: &AlertMetrics, stop: &StopRequest) {
    let config = ureq::Agent::config_builder()
        .http_status_as_error(false)
        .max_redirects(0)
        .timeout_global(Some(PATIENCE));
    let agent = ureq::Agent::new_with_config(config.build());
    let mut is_gone = false;
    for body in messages {
        // An address that did not answer while stopping will not answer the next time either.
        let post = || match is_gone && stop.is_requested() {
            true => Outcome::Refused("the collector is stopping".to_owned()),
            false => post(&agent, url, &body),
        };
        let delivered = deliver(post, |wait| pause(wait, stop), || metrics.retried());
        match delivered {
            Ok(()) => metrics.sent(),
            Err(problem) => {
                is_gone = true;
                metrics.dropped();
                warn!(host = host(url), problem, "cannot deliver an alert to a webhook");
            }
        }
    }
}

/// Tries until it succeeds or is in vain. `pause` returns whether to go on.
fn deliver(
    mut post: impl FnMut() -> Outcome,
    mut pause: impl FnMut(Duration) -> bool,
    mut retried: impl FnMut(),
) -> Result<(), String> {
    let mut wait = WAIT_FIRST;
    for attempt in 1.. {
        let problem = match post() {
            Outcome::Sent => return Ok(()),
            Outcome::Refused(problem) => return Err(problem),
            Outcome::Failed(problem) => problem,
        };
        if attempt >= ATTEMPTS_MAX || !pause(wait) {
            return Err(problem);
        }
        retried();
        wait = (wait * 2).min(WAIT_MAX);
    }
    unreachable!("attempts are bounded")
}

fn post(agent: &ureq::Agent, url: &str, body: &str) -> Outcome {
    let request = agent.post(url).header("Content-Type", "application/json");
    match request.send(body).map(|response| response.status()) {
        Ok(status) if status.is_success() => Outcome::Sent,
        Ok(status) if status.is_server_error() || [408, 429].contains(&status.as_u16()) => {
            Outcome::Failed(status.to_string())
        }
        Ok(status) if status.is_redirection() => Outcome::Refused(format!(
            "{status}: redirects are not followed; configure the new address"
        )),
        Ok(status) => Outcome::Refused(status.to_string()),
        Err(problem) => Outcome::Failed(problem.to_string()),
    }
}

/// What of an address may stand in a log: paths and queries of webhooks are secrets, as a rule.
fn host(url: &str) -> &str {
    let (_, behind) = url.split_once("://").unwrap_or(("", url));
    let authority = behind.split(['/', '?', '#']).next().unwrap_or_default();
    authority.rsplit_once('@').map_or(authority, |(_, host)| host)
}

/// Waits, unless the collector is to stop; whether to go on.
fn pause(wait: Duration, stop: &StopRequest) -> bool {
    let mut waited = Duration::ZERO;
    while waited < wait && !stop.is_requested() {
        thread::sleep(WAIT_STEP);
        waited += WAIT_STEP;
    }
    !stop.is_requested()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Outcomes of tries; how it ends, and the seconds waited in between.
    #[track_caller]
    fn check(outcomes: &[Outcome], is_sent: bool, waits: &[u64]) {
        let mut outcomes = outcomes.iter().cycle().cloned();
        let (mut waited, mut retries) = (Vec::new(), 0);
        let delivered = deliver(
            || outcomes.next().unwrap(),
            |wait| {
                waited.push(wait.as_secs());
                true
            },
            || retries += 1,
        );
        assert_eq!(delivered.is_ok(), is_sent);
        assert_eq!(waited, waits);
        assert_eq!(retries, waits.len());
    }

    #[test]
    fn tries_get_rarer_and_end() {
        let failed = || Outcome::Failed("503".to_owned());
        check(&[Outcome::Sent], true, &[]);
        check(&[failed(), failed(), Outcome::Sent], true, &[1, 2]);
        check(&[failed(), Outcome::Refused("404".to_owned())], false, &[1]);
        check(&[failed()], false, &[1, 2, 4, 8, 16, 32, 60, 60, 60]);
    }

    #[test]
    fn secrets_of_addresses_are_not_told() {
        for (url, expected) in [
            ("https://hooks.example/services/T0/secret", "hooks.example"),
            ("http://user:secret@127.0.0.1:80?token=secret", "127.0.0.1:80"),
            ("http://[::1]:80", "[::1]:80"),
        ] {
            assert_eq!(host(url), expected);
        }
    }

    #[test]
    fn who_stops_waits_no_longer() {
        let stopped = deliver(|| Outcome::Failed("503".to_owned()), |_| false, || {});
        assert_eq!(stopped, Err("503".to_owned()));
    }
}
