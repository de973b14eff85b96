//! What befalls machines: faults, ends and starts, and that all heals.

use twixt_store::{Faults, SimulatedDisk};

use super::{Event, KEEP_EVERY_NS, OBSERVE_EVERY_NS, RESTART_NS, WITHIN_NS, World};
use crate::clock::MachineClock;
use crate::plan::{Fault, MS, Machine};

impl World {
    pub(super) fn fault(&mut self, fault: Fault) {
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
            Fault::NewerAgent { agent, length_ns } => {
                self.agents[agent].newer_until_ns = self.now_ns + length_ns;
            }
            Fault::NewerCollector { length_ns } => {
                self.collector.newer_until_ns = self.now_ns + length_ns;
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

    pub(super) fn trouble_disk(&mut self, machine: Machine, faults: Faults, length_ns: i64) {
        self.set_disk(machine, faults);
        self.disk_faults += 1;
        let number = self.disk_faults;
        self.after(length_ns, Event::DiskHeals { machine, number });
    }

    pub(super) fn disk(&self, machine: Machine) -> &SimulatedDisk {
        match machine {
            Machine::Agent(agent) => &self.agents[agent].disk,
            Machine::Collector => &self.collector.disk,
        }
    }

    pub(super) fn set_disk(&self, machine: Machine, faults: Faults) {
        self.disk(machine).set_faults(faults);
    }

    pub(super) fn clock(&mut self, machine: Machine) -> &mut MachineClock {
        match machine {
            Machine::Agent(agent) => &mut self.agents[agent].clock,
            Machine::Collector => &mut self.collector.clock,
        }
    }

    pub(super) fn life(&self, machine: Machine) -> u64 {
        match machine {
            Machine::Agent(agent) => self.agents[agent].life,
            Machine::Collector => self.collector.life,
        }
    }

    pub(super) fn end(&mut self, machine: Machine, is_crash: bool, down_ns: i64) {
        match machine {
            Machine::Agent(agent) => self.agents[agent].end(is_crash),
            Machine::Collector => self.collector.end(is_crash),
        }
        self.trace.note(self.now_ns, format_args!("{machine:?} ended, power lost: {is_crash}"));
        self.doomed.retain(|(doomed, ..)| *doomed != machine);
        self.after(down_ns, Event::Start(machine));
    }

    pub(super) fn start(&mut self, machine: Machine) {
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

    /// Whether the disk of a machine has seen the operation at which its power fails.
    pub(super) fn is_dead(&self, machine: Machine) -> bool {
        self.doomed.iter().any(|(doomed, until, _)| {
            *doomed == machine && self.disk(machine).operations() >= *until
        })
    }

    pub(super) fn fail_doomed(&mut self) {
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
    pub(super) fn heal(&mut self) -> Result<(), String> {
        self.trace.note(self.now_ns, "faults end");
        self.is_healing = true;
        self.network.heal();
        self.collector.newer_until_ns = 0;
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
            machine.newer_until_ns = 0;
            machine.observe(self.now_ns, &self.traffic);
            machine.stop_observing();
            self.seal(agent)?;
        }
        Ok(())
    }
}
