//! The world of a story: what happens next, and what must hold all the while.

mod checks;
mod machines;
mod requests;

use std::collections::BTreeMap;

use twixt_collector::stepped::SteppedResponse;
use twixt_store::Faults;

use crate::agent_machine::AgentMachine;
use crate::collector_machine::CollectorMachine;
use crate::ledger::Ledger;
use crate::network::{Network, Nonsense};
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
    /// What happened, if it was wanted.
    pub story: Vec<String>,
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
        Ok((stored, estimated)) => {
            let (trace, story) = (trace.hash(), trace.into_lines());
            Ok(Outcome { trace, steps, stored, estimated, story })
        }
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
            Event::Estimate { life } => self.estimate(life)?,
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
}
