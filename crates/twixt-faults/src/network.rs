//! What becomes of a request and of its response on their way.

use crate::plan::{MS, NetworkPlan, SECOND};
use crate::random::Random;

/// As the sender has it.
pub(crate) const TIMEOUT_NS: i64 = 30 * SECOND;

/// What becomes of a request.
#[derive(Clone, Debug)]
pub(crate) enum Passage {
    /// It is delivered so much later, once or several times.
    Delivered(Vec<i64>),
    /// The connection is cut after some of the body.
    Cut { after_ns: i64, share: u64 },
    /// Nothing of it arrives, and the sender notices after a while.
    Lost { after_ns: i64 },
    /// A proxy answers for itself.
    Answered { after_ns: i64, response: Nonsense },
}

/// What a proxy answers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Nonsense {
    pub(crate) status: u16,
    pub(crate) retry_after: Option<&'static str>,
    pub(crate) body: &'static str,
}

/// A network between agents and the collector.
#[derive(Clone, Debug)]
pub(crate) struct Network {
    plan: NetworkPlan,
    random: Random,
}

const NONSENSE: [Nonsense; 8] = [
    nonsense(200, "<html>Welcome</html>"),
    nonsense(200, "{}"),
    nonsense(200, r#"{"stored": 1}"#),
    nonsense(400, "Bad Request"),
    nonsense(413, "<html>Request Entity Too Large</html>"),
    nonsense(302, ""),
    nonsense(403, r#"{"error": "not today"}"#),
    Nonsense { status: 503, retry_after: Some("2"), body: "" },
];

const fn nonsense(status: u16, body: &'static str) -> Nonsense {
    Nonsense { status, retry_after: None, body }
}

impl Network {
    pub(crate) const fn new(plan: NetworkPlan, random: Random) -> Self {
        Self { plan, random }
    }

    /// Nothing goes wrong from now on.
    pub(crate) fn heal(&mut self) {
        self.plan = NetworkPlan { delay_ns_max: 5 * MS, ..NetworkPlan::default() };
    }

    /// What becomes of a request. A response of a proxy that could be taken for a receipt would be
    /// one: it accounts for another number of epochs than were sent.
    pub(crate) fn passage(&mut self, epochs: usize) -> Passage {
        let plan = self.plan;
        if self.meets(plan.lost_one_in) {
            let after_ns = self.random.pick(&[20 * MS, 5 * SECOND, TIMEOUT_NS]);
            return Passage::Lost { after_ns };
        }
        if self.meets(plan.cut_one_in) {
            return Passage::Cut { after_ns: self.delay_ns(), share: self.random.next() % 1000 };
        }
        if self.meets(plan.nonsense_one_in) {
            let response = self.random.pick(&NONSENSE);
            if epochs != 1 || !response.body.contains("stored") {
                return Passage::Answered { after_ns: self.delay_ns(), response };
            }
        }
        let mut times = vec![self.delay_ns()];
        if self.meets(plan.duplicated_one_in) {
            times.push(self.delay_ns() + self.random.pick(&[0, SECOND, 20 * SECOND]));
        }
        Passage::Delivered(times)
    }

    /// How much later a response arrives; `None` if it never does.
    pub(crate) fn response(&mut self) -> Option<i64> {
        let is_lost = self.meets(self.plan.reply_lost_one_in);
        (!is_lost).then(|| self.delay_ns())
    }

    fn meets(&mut self, one_in: u64) -> bool {
        one_in > 0 && self.random.one_in(one_in)
    }

    fn delay_ns(&mut self) -> i64 {
        self.random.within(MS..self.plan.delay_ns_max + MS)
    }
}
