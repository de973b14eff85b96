//! The way of epochs: observed, sealed, posted, stored, acknowledged and estimated.

use twixt_agent::stepped::Response;
use twixt_collector::stepped::SteppedResponse;
use twixt_delivery::{Receipt, ResponseParts, UploadWriter, read_upload};

use super::{Answer, ESTIMATE_EVERY_NS, Event, OBSERVE_EVERY_NS, World};
use crate::ledger::BODY_BYTES_MAX;
use crate::network::{Passage, TIMEOUT_NS};
use crate::plan::{MS, Machine, SECOND};

/// Where the version of its format stands in an epoch.
const FORMAT_BYTE: usize = 4;

impl World {
    /// When a machine that sleeps can go on, if it sleeps.
    pub(super) fn asleep_ns(&self, agent: usize) -> Option<i64> {
        let left_ns = self.agents[agent].suspended_until_ns - self.now_ns;
        (left_ns > 0).then_some(left_ns)
    }

    pub(super) fn observe(&mut self, agent: usize, life: u64) -> Result<(), String> {
        if self.agents[agent].life != life {
            return Ok(());
        }
        if let Some(left_ns) = self.asleep_ns(agent) {
            self.after(left_ns, Event::Observe { agent, life });
            return Ok(());
        }
        self.agents[agent].observe(self.now_ns, &self.traffic);
        self.seal(agent)?;
        if !self.is_healing {
            self.after(OBSERVE_EVERY_NS, Event::Observe { agent, life });
        }
        Ok(())
    }

    pub(super) fn seal(&mut self, agent: usize) -> Result<(), String> {
        for written in self.agents[agent].seal() {
            let (epochs, is_durable) = (written.epochs.len(), written.is_durable);
            self.trace.note(
                self.now_ns,
                format_args!("agent {agent}: {epochs} epochs sealed, durable: {is_durable}"),
            );
            self.ledger.written(agent, written)?;
        }
        Ok(())
    }

    pub(super) fn send(&mut self, agent: usize, life: u64) -> Result<(), String> {
        if self.agents[agent].life != life || self.asleep_ns(agent).is_some() {
            return Ok(());
        }
        let request = self.requests + 1;
        let Some(body) = self.agents[agent].send(self.now_ns, request) else { return Ok(()) };
        self.requests = request;
        let epochs = self.ledger.posted(request, &body)?;
        self.senders.insert(request, agent);
        self.pass_on(agent, request, &body, epochs);
        self.after(TIMEOUT_NS, Event::Respond { agent, request, response: Answer::Nothing });
        Ok(())
    }

    pub(super) fn pass_on(&mut self, agent: usize, request: u64, body: &[u8], epochs: usize) {
        let is_cut_off = self.agents[agent].partitioned_until_ns > self.now_ns;
        let passage = match is_cut_off {
            true => Passage::Lost { after_ns: SECOND },
            false => self.network.passage(epochs),
        };
        self.trace.note(
            self.now_ns,
            format_args!("agent {agent} posts request {request}, {epochs} epochs: {passage:?}"),
        );
        match passage {
            Passage::Delivered(times) => {
                for after_ns in times {
                    let body = body.to_vec();
                    self.after(after_ns, Event::Arrive { agent, request, body, is_whole: true });
                }
            }
            Passage::Cut { after_ns, share } => {
                let left = body.len() * share as usize / 1000;
                let body = body[..left].to_vec();
                self.after(after_ns, Event::Arrive { agent, request, body, is_whole: false });
                self.after(after_ns, Event::Respond { agent, request, response: Answer::Nothing });
            }
            Passage::Lost { after_ns } => {
                self.after(after_ns, Event::Respond { agent, request, response: Answer::Nothing });
            }
            Passage::Answered { after_ns, response } => {
                let response = Answer::Proxy(response);
                self.after(after_ns, Event::Respond { agent, request, response });
            }
        }
    }

    pub(super) fn arrive(&mut self, agent: usize, request: u64, body: &[u8], is_whole: bool) {
        let is_newer = is_whole && self.agents[agent].newer_until_ns > self.now_ns;
        let newer = is_newer.then(|| of_newer_release(body));
        let body = newer.as_deref().unwrap_or(body);
        let Some(process) = self.collector.at(self.now_ns) else {
            // Nothing listens.
            self.after(MS, Event::Respond { agent, request, response: Answer::Nothing });
            return;
        };
        match process.receive(request, body, is_whole) {
            Some(response) => self.send_back(request, response),
            None if !self.collector.is_commit_planned => {
                self.collector.is_commit_planned = true;
                let (after_ns, life) = (self.random.within(0..20 * MS), self.collector.life);
                self.after(after_ns, Event::Commit { life });
            }
            None => {}
        }
    }

    pub(super) fn commit(&mut self, life: u64) -> Result<(), String> {
        if self.collector.life != life {
            return Ok(());
        }
        self.collector.is_commit_planned = false;
        let Some(process) = self.collector.at(self.now_ns) else { return Ok(()) };
        let responses = process.commit();
        if self.is_dead(Machine::Collector) {
            // Nothing leaves a machine without power.
            return Ok(());
        }
        for (request, response) in responses {
            if response.status == 200 {
                let receipt: Receipt =
                    serde_json::from_str(&response.body).map_err(|error| error.to_string())?;
                self.ledger.answered(request, &receipt)?;
            }
            self.send_back(request, response);
        }
        Ok(())
    }

    pub(super) fn send_back(&mut self, request: u64, response: SteppedResponse) {
        let Some(agent) = self.senders.get(&request).copied() else { return };
        let response = match self.collector.newer_until_ns > self.now_ns {
            true => SteppedResponse { body: say_more(response.body), ..response },
            false => response,
        };
        let arrival = self.network.response();
        self.trace.note(
            self.now_ns,
            format_args!("collector answers request {request}: {response:?}, arrives: {arrival:?}"),
        );
        if let Some(after_ns) = arrival {
            let response = Answer::Collector(response);
            self.after(after_ns, Event::Respond { agent, request, response });
        }
    }

    pub(super) fn respond(&mut self, agent: usize, request: u64, response: &Answer) {
        let response = match response {
            Answer::Nothing => Response::Nothing,
            Answer::Proxy(nonsense) => Response::Http(ResponseParts {
                status: nonsense.status,
                is_marked: false,
                retry_after: nonsense.retry_after,
                body: nonsense.body,
            }),
            Answer::Collector(response) => Response::Http(ResponseParts {
                status: response.status,
                is_marked: response.is_marked,
                retry_after: response.retry_after.as_deref(),
                body: &response.body,
            }),
        };
        let machine = &mut self.agents[agent];
        if machine.settle(self.now_ns, request, response) {
            let life = machine.life;
            self.trace.note(self.now_ns, format_args!("agent {agent} settles request {request}"));
            self.after(MS, Event::Send { agent, life, is_regular: false });
        }
    }

    pub(super) fn estimate(&mut self, life: u64) -> Result<(), String> {
        if self.collector.life != life {
            return Ok(());
        }
        let Some(process) = self.collector.at(self.now_ns) else { return Ok(()) };
        match process.estimate() {
            Ok(()) => self.after(ESTIMATE_EVERY_NS, Event::Estimate { life }),
            // A machine without power does nothing; its disk refuses everything.
            Err(_) if self.is_dead(Machine::Collector) => {}
            Err(error) => return Err(format!("the collector ended by itself: {error}")),
        }
        Ok(())
    }
}

/// A body whose epochs have a format of which this release knows nothing.
fn of_newer_release(body: &[u8]) -> Vec<u8> {
    let body = zstd::bulk::decompress(body, BODY_BYTES_MAX).expect("an agent packed it");
    let mut newer = UploadWriter::new();
    for epoch in read_upload(&body).expect("an agent wrote it") {
        let mut epoch = epoch.to_vec();
        epoch[FORMAT_BYTE] = u8::MAX;
        newer.push(&epoch).expect("it is as long as before");
    }
    zstd::bulk::compress(&newer.into_body(), 1).expect("memory can be packed")
}

/// A response with keys that this release does not know.
fn say_more(body: String) -> String {
    match body.strip_prefix('{') {
        Some(rest) => format!(r#"{{"release":{{"name":"newer","number":[9,9]}},{rest}"#),
        None => body,
    }
}
