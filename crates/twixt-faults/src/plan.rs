//! What a story is about: who takes part, and what goes wrong when. All of it follows from the seed.

use twixt_store::{Faults, Operation};

use crate::random::Random;

pub(crate) const MS: i64 = 1_000_000;
pub(crate) const SECOND: i64 = 1_000 * MS;
const HOUR: i64 = 3_600 * SECOND;
/// A full hour, in 2023.
const FULL_HOUR_NS: i64 = 472_222 * HOUR;

/// A story.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    /// What all clocks show at the beginning.
    pub(crate) start_ns: i64,
    /// How long packets are sent, and things go wrong.
    pub(crate) length_ns: i64,
    /// Which points each agent has, by their number along the path.
    pub(crate) agents: Vec<Vec<usize>>,
    pub(crate) algorithms: Vec<&'static str>,
    /// A packet is sent each so often.
    pub(crate) packet_every_ns: i64,
    /// One packet in so many is lost between two points.
    pub(crate) loss_one_in: u64,
    pub(crate) network: NetworkPlan,
    /// In order of time.
    pub(crate) faults: Vec<(i64, Fault)>,
}

/// How often a request meets what; 0: never.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct NetworkPlan {
    pub(crate) lost_one_in: u64,
    pub(crate) reply_lost_one_in: u64,
    pub(crate) cut_one_in: u64,
    pub(crate) duplicated_one_in: u64,
    pub(crate) nonsense_one_in: u64,
    pub(crate) delay_ns_max: i64,
}

/// A machine with its process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Machine {
    Agent(usize),
    Collector,
}

/// What goes wrong.
#[derive(Clone, Debug)]
pub(crate) enum Fault {
    /// The process is killed.
    Kill { machine: Machine, down_ns: i64 },
    /// The machine loses power.
    Crash { machine: Machine, down_ns: i64 },
    /// The machine loses power while the process is at one of its next operations on the disk.
    CrashWithin { machine: Machine, operations: u64, down_ns: i64 },
    /// The disk is in trouble for a while.
    Disk { machine: Machine, faults: Faults, length_ns: i64 },
    /// The disk has so much room left for a while.
    Full { machine: Machine, room_bytes: u64, length_ns: i64 },
    /// A bit on the disk changes.
    Rot { machine: Machine },
    /// The agent cannot reach the collector for a while.
    Partition { agent: usize, length_ns: i64 },
    /// The clock is set.
    Step { machine: Machine, by_ns: i64 },
    /// The clock drifts.
    Drift { machine: Machine, ppm: i64 },
    /// The machine sleeps.
    Suspend { agent: usize, length_ns: i64 },
    /// The kernel drops frames for a while, and counts them.
    Drops { agent: usize, length_ns: i64 },
    /// The agent is of a newer release than the collector for a while: what it sends has a format that
    /// the collector does not know.
    NewerAgent { agent: usize, length_ns: i64 },
    /// The collector is of a newer release than the agents for a while: its receipts say more.
    NewerCollector { length_ns: i64 },
}

impl Plan {
    pub(crate) fn draw(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let length_ns = random.within(8..40) * SECOND;
        let start_ns = match random.one_in(2) {
            // So that an hour is sealed within the story.
            true => FULL_HOUR_NS - random.within(1..length_ns),
            false => FULL_HOUR_NS + random.within(0..HOUR / 2),
        };
        let agents = random.pick::<&[&[usize]]>(&[
            &[&[0], &[1]],
            &[&[0], &[1]],
            &[&[0, 1]],
            &[&[0], &[1, 2]],
        ]);
        let agents: Vec<Vec<usize>> = agents.iter().map(|points| points.to_vec()).collect();
        let algorithms = random.pick::<&[&str]>(&[&["exact"], &["exact", "lda"], &["lda"]]);
        let network = NetworkPlan::draw(&mut random);
        let mut plan = Self {
            start_ns,
            length_ns,
            algorithms: algorithms.to_vec(),
            packet_every_ns: random.pick(&[40 * MS, 40 * MS, 4 * MS]),
            loss_one_in: random.pick(&[u64::MAX, 50, 8]),
            network,
            agents,
            faults: Vec::new(),
        };
        // Some stories have few faults, so that what one of them does is not hidden by others.
        for _ in 0..random.pick(&[0, 1, 2, 4, 8]) {
            let (at_ns, fault) = (random.within(0..length_ns), plan.fault(&mut random));
            plan.faults.push((at_ns, fault));
        }
        plan.faults.sort_by_key(|(at_ns, _)| *at_ns);
        plan
    }

    fn fault(&self, random: &mut Random) -> Fault {
        let agent = random.within(0..self.agents.len() as i64) as usize;
        let machine = random.pick(&[Machine::Agent(agent), Machine::Collector]);
        let down_s_max = random.pick(&[1, 8, 20]);
        let down_ns = random_ns(random, down_s_max);
        let length_ns = random_ns(random, 10);
        match random.within(0..20) {
            0 | 1 => Fault::Kill { machine, down_ns },
            2..=4 => Fault::Crash { machine, down_ns },
            5 | 6 => {
                let operations = random.within(0..40).cast_unsigned();
                Fault::CrashWithin { machine, operations, down_ns }
            }
            7..=9 => Fault::Disk { machine, faults: disk_faults(random), length_ns },
            10 => {
                let room_bytes = random.within(0..20_000).cast_unsigned();
                Fault::Full { machine, room_bytes, length_ns }
            }
            11 => Fault::Rot { machine },
            12 => Fault::Partition { agent, length_ns: random_ns(random, 30) },
            13 => Fault::Step { machine, by_ns: step_ns(random) },
            14 => Fault::Drift { machine, ppm: random.within(-200..200) },
            15 => Fault::Suspend { agent, length_ns },
            16 => Fault::NewerAgent { agent, length_ns: random_ns(random, 20) },
            17 => Fault::NewerCollector { length_ns: random_ns(random, 20) },
            _ => Fault::Drops { agent, length_ns: random_ns(random, 4) },
        }
    }

    /// How many points there are along the path.
    pub(crate) fn points(&self) -> usize {
        self.agents.iter().map(Vec::len).sum()
    }

    /// Whether a clock is set or drifts, or a machine sleeps: then two clocks may differ by more than
    /// epochs can be compared with.
    pub(crate) fn has_clock_faults(&self) -> bool {
        let is_of_clock = |fault: &Fault| {
            matches!(fault, Fault::Step { .. } | Fault::Drift { .. } | Fault::Suspend { .. })
        };
        self.faults.iter().any(|(_, fault)| is_of_clock(fault))
    }
}

impl NetworkPlan {
    fn draw(random: &mut Random) -> Self {
        let mut rate = |rates: &[u64]| random.pick(rates);
        Self {
            lost_one_in: rate(&[0, 0, 20, 4]),
            reply_lost_one_in: rate(&[0, 0, 20, 4]),
            cut_one_in: rate(&[0, 0, 10]),
            duplicated_one_in: rate(&[0, 0, 10, 3]),
            nonsense_one_in: rate(&[0, 0, 10, 3]),
            delay_ns_max: random.pick(&[5 * MS, 200 * MS, 3 * SECOND]),
        }
    }
}

fn random_ns(random: &mut Random, seconds_max: i64) -> i64 {
    random.within(10 * MS..seconds_max * SECOND)
}

fn step_ns(random: &mut Random) -> i64 {
    let size_ns = random.pick(&[20 * MS, 300 * MS, 5 * SECOND, 100 * SECOND]);
    size_ns * random.pick(&[-1, 1])
}

fn disk_faults(random: &mut Random) -> Faults {
    let none = Faults::default();
    match random.within(0..8) {
        0 => Faults { is_read_only: true, ..none },
        1 => Faults { open_files_max: Some(random.within(0..6) as usize), ..none },
        2 => Faults { has_short_reads: true, ..none },
        _ => {
            let failing = vec![(random.pick(&Operation::ALL), random.pick(&[1, 2, 5, 20]))];
            Faults { failing, ..none }
        }
    }
}
