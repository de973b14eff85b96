//! The world of a story: what happens next, and what must hold all the while.

use std::collections::BTreeMap;

use twixt_agent::stepped::Response;
use twixt_collector::stepped::SteppedResponse;
use twixt_delivery::{Receipt, ResponseParts};
use twixt_history::{RowQuestion, Step};
use twixt_store::Faults;

use crate::agent_machine::AgentMachine;
use crate::collector_machine::CollectorMachine;
use crate::estimates;
use crate::ledger::{Ledger, Stored};
use crate::network::{Network, Nonsense, Passage, TIMEOUT_NS};
use crate::plan::{Fault, MS, Machine, Plan, SECOND};
use crate::random::Random;
use crate::trace::Trace;
use crate::traffic::Traffic;

/// How often packet threads hand over frames.
const OBSERVE_EVERY_NS: i64 = 200 * MS;
/// How often senders look for epochs.
const SEND_EVERY_NS: i64 = 500 * MS;
/// How often the thread that estimates looks at the time.
const ESTIMATE_EVERY_NS: i64 = 200 * MS;
/// How often hours are sealed.
const KEEP_EVERY_NS: i64 = 10 * SECOND;
/// Until a process that could not start is started again.
const RESTART_NS: i64 = 2 * SECOND;
/// A machine that was to lose power within some operations does so at the latest.
const WITHIN_NS: i64 = 2 * SECOND;
/// Everything must have healed so long after the last fault: waits of a sender double up to a minute,
/// and points are waited for after a start.
const HEALED_NS: i64 = 200 * SECOND;
/// After the last epoch was delivered, estimates are complete so much later.
const SETTLED_NS: i64 = 40 * SECOND;
/// How often the store is compared with what was acknowledged.
const CHECK_EVERY_STEPS: u64 = 64;

/// How a story ended.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// The same for the same seed.
    pub trace: u64,
    /// Things that happened.
    pub steps: u64,
    /// Epochs stored.
    pub stored: u64,
    /// Epochs of pairs estimated.
    pub estimated: u64,
}

/// What did not hold.
#[derive(Clone, Debug)]
pub struct Failure {
    /// What is wrong.
    pub problem: String,
    /// What happened before, if it was wanted.
    pub story: Vec<String>,
}

/// Runs the story of a seed, up to so many steps.
///
/// # Errors
/// When something does not hold that must.
pub fn run(seed: u64, steps_max: u64, keeps_story: bool) -> Result<Outcome, Failure> {
    let mut world = World::new(seed, keeps_story);
    let ended = world.run(steps_max);
    let World { trace, now_ns, steps, .. } = world;
    match ended {
        Ok((stored, estimated)) => Ok(Outcome { trace: trace.hash(), steps, stored, estimated }),
        Err(problem) => {
            let at = format!("{:.3} s, step {steps}", now_ns as f64 / 1e9);
            Err(Failure { problem: format!("{problem} (at {at})"), story: trace.into_lines() })
        }
    }
}

/// What happens.
#[derive(Debug)]
enum Event {
    Fault(Fault),
    Start(Machine),
    /// The machine loses power if that has not happened yet.
    PowerFails {
        machine: Machine,
        life: u64,
        down_ns: i64,
    },
    DiskHeals {
        machine: Machine,
        number: u64,
    },
    Observe {
        agent: usize,
        life: u64,
    },
    /// A sender looks for epochs: now and then, or because it may send again.
    Send {
        agent: usize,
        life: u64,
        is_regular: bool,
    },
    Arrive {
        agent: usize,
        request: u64,
        body: Vec<u8>,
        is_whole: bool,
    },
    Respond {
        agent: usize,
        request: u64,
        response: Answer,
    },
    Commit {
        life: u64,
    },
    Estimate {
        life: u64,
    },
    Keep {
        life: u64,
    },
    FaultsEnd,
}

/// What a sender is answered.
#[derive(Debug)]
enum Answer {
    Collector(SteppedResponse),
    Proxy(Nonsense),
    Nothing,
}

struct World {
    plan: Plan,
    random: Random,
    now_ns: i64,
    steps: u64,
    events: BTreeMap<(i64, u64), Event>,
    planned: u64,
    agents: Vec<AgentMachine>,
    collector: CollectorMachine,
    network: Network,
    traffic: Traffic,
    ledger: Ledger,
    trace: Trace,
    requests: u64,
    /// Who sent a request.
    senders: BTreeMap<u64, usize>,
    /// Machines that lose power when their disk has seen so many operations.
    doomed: Vec<(Machine, u64, i64)>,
    disk_faults: u64,
    /// Bits that changed on the collector's disk.
    changed_bits: usize,
    is_healing: bool,
}

impl World {
    fn new(seed: u64, keeps_story: bool) -> Self {
        let plan = Plan::draw(seed);
        let mut random = Random::new(seed ^ 0x5eed);
        let agents =
            (0..plan.agents.len()).map(|agent| AgentMachine::new(&plan, agent, random.next()));
        let agents: Vec<AgentMachine> = agents.collect();
        let mut world = Self {
            collector: CollectorMachine::new(&plan, random.next()),
            network: Network::new(plan.network, random.fork()),
            traffic: Traffic::new(random.next(), &plan),
            agents,
            now_ns: 0,
            steps: 0,
            events: BTreeMap::new(),
            planned: 0,
            ledger: Ledger::default(),
            trace: Trace::new(keeps_story),
            requests: 0,
            senders: BTreeMap::new(),
            doomed: Vec::new(),
            disk_faults: 0,
            changed_bits: 0,
            is_healing: false,
            random,
            plan,
        };
        world.plan_story();
        world
    }

    fn plan_story(&mut self) {
        self.trace.note(0, format_args!("{:?}", self.plan));
        self.after(0, Event::Start(Machine::Collector));
        for agent in 0..self.agents.len() {
            self.after(0, Event::Start(Machine::Agent(agent)));
        }
        for (at_ns, fault) in self.plan.faults.clone() {
            self.after(at_ns, Event::Fault(fault));
        }
        self.after(self.plan.length_ns, Event::FaultsEnd);
    }

    fn after(&mut self, delay_ns: i64, event: Event) {
        self.planned += 1;
        self.events.insert((self.now_ns + delay_ns, self.planned), event);
    }

    /// Until everything has healed; how many epochs are stored and estimated.
    fn run(&mut self, steps_max: u64) -> Result<(u64, u64), String> {
        let mut idle_since_ns = None;
        while self.steps < steps_max {
            let Some(((at_ns, _), event)) = self.events.pop_first() else { break };
            self.now_ns = at_ns;
            self.steps += 1;
            self.happen(event)?;
            self.fail_doomed();
            self.check_step()?;
            if !self.is_healing {
                continue;
            }
            match self.is_idle() {
                false => idle_since_ns = None,
                true if self.now_ns - *idle_since_ns.get_or_insert(self.now_ns) > SETTLED_NS => {
                    break;
                }
                true => {}
            }
            if self.now_ns > self.plan.length_ns + HEALED_NS {
                return Err(self.wedged());
            }
        }
        if self.steps >= steps_max { Ok((0, 0)) } else { self.check_end() }
    }

    fn is_idle(&self) -> bool {
        let is_empty = |agent: &AgentMachine| agent.process.is_some() && agent.waiting() == 0;
        self.collector.process.is_some() && self.agents.iter().all(is_empty)
    }

    fn wedged(&self) -> String {
        let waiting: Vec<u64> = self.agents.iter().map(AgentMachine::waiting).collect();
        let is_up = self.collector.process.is_some();
        format!(
            "not healed {} s after the last fault: {waiting:?} epochs wait in spools, collector up: \
             {is_up}",
            HEALED_NS / SECOND
        )
    }

    fn happen(&mut self, event: Event) -> Result<(), String> {
        match event {
            Event::Fault(fault) => self.fault(fault),
            Event::Start(machine) => self.start(machine),
            Event::PowerFails { machine, life, down_ns } => {
                if self.life(machine) == life {
                    self.end(machine, true, down_ns);
                }
            }
            Event::DiskHeals { machine, number } => {
                if number == self.disk_faults {
                    self.set_disk(machine, Faults::default());
                }
            }
            Event::Observe { agent, life } => self.observe(agent, life)?,
            Event::Send { agent, life, is_regular } => {
                if is_regular && self.agents[agent].life == life {
                    self.after(SEND_EVERY_NS, Event::Send { agent, life, is_regular });
                }
                self.send(agent, life)?;
            }
            Event::Arrive { agent, request, body, is_whole } => {
                self.arrive(agent, request, &body, is_whole);
            }
            Event::Respond { agent, request, response } => self.respond(agent, request, &response),
            Event::Commit { life } => self.commit(life)?,
            Event::Estimate { life } => self.estimate(life),
            Event::Keep { life } => {
                if self.collector.life == life
                    && let Some(process) = self.collector.at(self.now_ns)
                {
                    process.keep();
                    self.after(KEEP_EVERY_NS, Event::Keep { life });
                }
            }
            Event::FaultsEnd => self.heal()?,
        }
        Ok(())
    }

    fn fault(&mut self, fault: Fault) {
        self.trace.note(self.now_ns, format_args!("fault: {fault:?}"));
        match fault {
            Fault::Kill { machine, down_ns } => self.end(machine, false, down_ns),
            Fault::Crash { machine, down_ns } => self.end(machine, true, down_ns),
            Fault::CrashWithin { machine, operations, down_ns } => {
                let until = self.disk(machine).operations() + operations;
                let faults = Faults { stops_after: Some(operations), ..Faults::default() };
                self.set_disk(machine, faults);
                self.doomed.push((machine, until, down_ns));
                let life = self.life(machine);
                self.after(WITHIN_NS, Event::PowerFails { machine, life, down_ns });
            }
            Fault::Disk { machine, faults, length_ns } => {
                self.trouble_disk(machine, faults, length_ns);
            }
            Fault::Full { machine, room_bytes, length_ns } => {
                let used: u64 = self.disk(machine).files().iter().map(|(_, bytes)| bytes).sum();
                let bytes_max = Some(used + room_bytes);
                self.trouble_disk(machine, Faults { bytes_max, ..Faults::default() }, length_ns);
            }
            Fault::Rot { machine } => {
                let changed = self.disk(machine).rot();
                self.trace.note(self.now_ns, format_args!("changed bit: {changed:?}"));
                match machine {
                    Machine::Agent(agent) => self.agents[agent].changed_bits += 1,
                    Machine::Collector => self.changed_bits += 1,
                }
            }
            Fault::Partition { agent, length_ns } => {
                self.agents[agent].partitioned_until_ns = self.now_ns + length_ns;
            }
            Fault::Step { machine, by_ns } => {
                // What passed before was stamped before.
                if let Machine::Agent(agent) = machine {
                    self.agents[agent].observe(self.now_ns, &self.traffic);
                }
                self.clock(machine).step(by_ns);
            }
            Fault::Drift { machine, ppm } => {
                let now_ns = self.now_ns;
                self.clock(machine).drift(now_ns, ppm);
            }
            Fault::Drops { agent, length_ns } => {
                let machine = &mut self.agents[agent];
                machine.observe(self.now_ns, &self.traffic);
                machine.drops_until_ns = self.now_ns + length_ns;
            }
            Fault::Suspend { agent, length_ns } => {
                let machine = &mut self.agents[agent];
                machine.observe(self.now_ns, &self.traffic);
                machine.suspended_until_ns = self.now_ns + length_ns;
                machine.clock.suspend(length_ns);
                machine.skip_packets(self.now_ns + length_ns);
            }
        }
    }

    fn trouble_disk(&mut self, machine: Machine, faults: Faults, length_ns: i64) {
        self.set_disk(machine, faults);
        self.disk_faults += 1;
        let number = self.disk_faults;
        self.after(length_ns, Event::DiskHeals { machine, number });
    }

    fn disk(&self, machine: Machine) -> &twixt_store::SimulatedDisk {
        match machine {
            Machine::Agent(agent) => &self.agents[agent].disk,
            Machine::Collector => &self.collector.disk,
        }
    }

    fn set_disk(&self, machine: Machine, faults: Faults) {
        self.disk(machine).set_faults(faults);
    }

    fn clock(&mut self, machine: Machine) -> &mut crate::clock::MachineClock {
        match machine {
            Machine::Agent(agent) => &mut self.agents[agent].clock,
            Machine::Collector => &mut self.collector.clock,
        }
    }

    fn life(&self, machine: Machine) -> u64 {
        match machine {
            Machine::Agent(agent) => self.agents[agent].life,
            Machine::Collector => self.collector.life,
        }
    }

    fn end(&mut self, machine: Machine, is_crash: bool, down_ns: i64) {
        match machine {
            Machine::Agent(agent) => self.agents[agent].end(is_crash),
            Machine::Collector => self.collector.end(is_crash),
        }
        self.trace.note(self.now_ns, format_args!("{machine:?} ended, power lost: {is_crash}"));
        self.doomed.retain(|(doomed, ..)| *doomed != machine);
        self.after(down_ns, Event::Start(machine));
    }

    fn start(&mut self, machine: Machine) {
        let now_ns = self.now_ns;
        let started = match machine {
            Machine::Agent(agent) if self.agents[agent].process.is_some() => return,
            Machine::Collector if self.collector.process.is_some() => return,
            Machine::Agent(agent) => {
                self.agents[agent].start(now_ns).map_err(|error| error.to_string())
            }
            Machine::Collector => self.collector.start(now_ns).map_err(|error| error.to_string()),
        };
        self.trace.note(now_ns, format_args!("{machine:?} starts: {started:?}"));
        if started.is_err() {
            return self.end(machine, false, RESTART_NS);
        }
        let life = self.life(machine);
        match machine {
            Machine::Agent(agent) => {
                self.after(OBSERVE_EVERY_NS, Event::Observe { agent, life });
                self.after(OBSERVE_EVERY_NS, Event::Send { agent, life, is_regular: true });
            }
            Machine::Collector => {
                self.after(MS, Event::Estimate { life });
                self.after(KEEP_EVERY_NS, Event::Keep { life });
            }
        }
    }

    /// When a machine that sleeps can go on, if it sleeps.
    fn asleep_ns(&self, agent: usize) -> Option<i64> {
        let left_ns = self.agents[agent].suspended_until_ns - self.now_ns;
        (left_ns > 0).then_some(left_ns)
    }

    fn observe(&mut self, agent: usize, life: u64) -> Result<(), String> {
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

    fn seal(&mut self, agent: usize) -> Result<(), String> {
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

    fn send(&mut self, agent: usize, life: u64) -> Result<(), String> {
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

    fn pass_on(&mut self, agent: usize, request: u64, body: &[u8], epochs: usize) {
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

    fn arrive(&mut self, agent: usize, request: u64, body: &[u8], is_whole: bool) {
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

    fn commit(&mut self, life: u64) -> Result<(), String> {
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

    fn send_back(&mut self, request: u64, response: SteppedResponse) {
        let Some(agent) = self.senders.get(&request).copied() else { return };
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

    fn respond(&mut self, agent: usize, request: u64, response: &Answer) {
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

    fn estimate(&mut self, life: u64) {
        if self.collector.life != life {
            return;
        }
        let Some(process) = self.collector.at(self.now_ns) else { return };
        match process.estimate() {
            Ok(()) => self.after(ESTIMATE_EVERY_NS, Event::Estimate { life }),
            Err(error) => {
                self.trace.note(self.now_ns, format_args!("collector ends: {error}"));
                self.end(Machine::Collector, false, RESTART_NS);
            }
        }
    }

    /// Whether the disk of a machine has seen the operation at which its power fails.
    fn is_dead(&self, machine: Machine) -> bool {
        self.doomed.iter().any(|(doomed, until, _)| {
            *doomed == machine && self.disk(machine).operations() >= *until
        })
    }

    fn fail_doomed(&mut self) {
        let dead: Vec<(Machine, i64)> = self
            .doomed
            .iter()
            .filter(|(machine, ..)| self.is_dead(*machine))
            .map(|(machine, _, down_ns)| (*machine, *down_ns))
            .collect();
        for (machine, down_ns) in dead {
            self.end(machine, true, down_ns);
            self.set_disk(machine, Faults::default());
        }
    }

    /// Faults end, and no more packets pass.
    fn heal(&mut self) -> Result<(), String> {
        self.trace.note(self.now_ns, "faults end");
        self.is_healing = true;
        self.network.heal();
        self.doomed.clear();
        self.disk_faults += 1;
        let agents = (0..self.agents.len()).map(Machine::Agent);
        let machines: Vec<Machine> = agents.chain([Machine::Collector]).collect();
        for machine in machines {
            self.set_disk(machine, Faults::default());
            self.start(machine);
        }
        for agent in 0..self.agents.len() {
            let machine = &mut self.agents[agent];
            machine.partitioned_until_ns = 0;
            machine.suspended_until_ns = 0;
            machine.observe(self.now_ns, &self.traffic);
            machine.stop_observing();
            self.seal(agent)?;
        }
        Ok(())
    }

    fn check_step(&self) -> Result<(), String> {
        self.collector.check_bounds()?;
        self.agents.iter().try_for_each(AgentMachine::check_bounds)?;
        match self.steps.is_multiple_of(CHECK_EVERY_STEPS) {
            true => self.check_stored().map(drop),
            false => Ok(()),
        }
    }

    fn check_stored(&self) -> Result<Stored, String> {
        let durable = self.ledger.check_stored(&self.collector.durable(), self.changed_bits);
        durable.map_err(|problem| format!("if the power fails now: {problem}"))?;
        self.ledger.check_stored(&self.collector.stored(), self.changed_bits)
    }

    /// What must hold when all has healed, and still when the collector's machine then loses power.
    fn check_end(&mut self) -> Result<(u64, u64), String> {
        self.collector.end(true);
        self.collector
            .start(self.now_ns)
            .map_err(|error| format!("no start at the end: {error}"))?;
        let stored = self.check_stored()?;
        for (agent, machine) in self.agents.iter().enumerate() {
            self.ledger.check_delivered(agent, &stored, machine.lost_max())?;
        }
        if let Some((key, reason)) = self.ledger.refused().iter().next()
            && !self.plan.has_clock_faults()
        {
            return Err(format!("{key} was refused: {reason}"));
        }
        let process = self.collector.process.as_ref().ok_or("the collector is down")?;
        let answer =
            process.answer(&RowQuestion::all(Step::Epoch)).map_err(|error| error.to_string())?;
        for (path, bytes) in self.collector.disk.files() {
            self.trace.note(self.now_ns, format_args!("{}: {bytes} bytes", path.display()));
        }
        for row in &answer.rows {
            let said = row.reason.as_deref().unwrap_or("");
            self.trace.note(
                self.now_ns,
                format_args!(
                    "{}:{} {} epoch {:?}, gaps {}, packets {:?}, lost {:?}, late {}: {said}",
                    row.series.upstream,
                    row.series.downstream,
                    row.series.algorithm,
                    row.epoch,
                    row.gaps,
                    row.packets,
                    row.lost,
                    row.late_epochs
                ),
            );
        }
        let estimated = match self.changed_bits {
            0 => {
                let unacknowledged = self.ledger.unacknowledged(&stored);
                let (plan, traffic) = (&self.plan, &self.traffic);
                estimates::check(plan, traffic, &stored, &unacknowledged, &answer.rows)?
            }
            _ => 0,
        };
        Ok((stored.len() as u64, estimated))
    }
}
