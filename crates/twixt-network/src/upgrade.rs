//! Which routers to upgrade first.
//!
//! Algorithm 1 of the mPlane paper, corrected: segments are a set, what each router would save is
//! counted again in every round, and it is counted in hops, which is what the paper's text wants to
//! reduce most.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

use crate::segments::{Segments, Survey};
use crate::shortest::ShortestPaths;
use crate::topology::RouterId;

/// How the next router is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strategy {
    /// The one that saves most hops; of equals, the first in the topology.
    Greedy,
    /// Any, each with the same chance.
    Random {
        /// What the choice follows from.
        seed: u64,
    },
}

/// The network after an upgrade.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UpgradeStep {
    /// How many routers are upgraded.
    pub upgraded: usize,
    /// The one that was upgraded last; None before the first.
    pub router: Option<RouterId>,
    /// What has to be measured.
    pub segments: Segments,
    /// By how many hops the last upgrade made that less; None before the first.
    pub saved_hops: Option<u64>,
}

/// Upgrades one router after the other, until all are. The first step is the network before any.
#[derive(Clone, Debug)]
pub struct Planner<'a> {
    paths: &'a ShortestPaths,
    choice: Choice,
    upgraded: Vec<bool>,
    /// Of the last step; None before the first.
    survey: Option<Survey>,
}

impl<'a> Planner<'a> {
    /// Starts with no router upgraded.
    #[must_use]
    pub fn new(paths: &'a ShortestPaths, strategy: Strategy) -> Self {
        let choice = match strategy {
            Strategy::Greedy => Choice::Greedy,
            Strategy::Random { seed } => Choice::Random(shuffled(paths.routers(), seed)),
        };
        Self { paths, choice, upgraded: vec![false; paths.routers()], survey: None }
    }
}

impl Iterator for Planner<'_> {
    type Item = UpgradeStep;

    fn next(&mut self) -> Option<UpgradeStep> {
        let router = match &self.survey {
            None => None,
            Some(survey) => Some(self.choice.next(survey, &self.upgraded)?),
        };
        if let Some(router) = router {
            self.upgraded[router] = true;
        }
        let survey = Survey::of(self.paths, &self.upgraded);
        let segments = survey.segments;
        let before = self.survey.replace(survey);
        Some(UpgradeStep {
            upgraded: self.upgraded.iter().filter(|&&upgraded| upgraded).count(),
            router: router.map(RouterId::of),
            segments,
            saved_hops: before.map(|before| before.segments.hops - segments.hops),
        })
    }
}

/// A strategy at work.
#[derive(Clone, Debug)]
enum Choice {
    Greedy,
    /// What is left, to be taken from the end.
    Random(Vec<usize>),
}

impl Choice {
    /// The router to upgrade next; None if all are.
    fn next(&mut self, survey: &Survey, upgraded: &[bool]) -> Option<usize> {
        match self {
            Self::Greedy => {
                let left = (0..upgraded.len()).rev().filter(|&router| !upgraded[router]);
                // The last of equals wins, so they are asked in reverse.
                left.max_by_key(|&router| survey.savings[router])
            }
            Self::Random(left) => left.pop(),
        }
    }
}

/// Fisher and Yates. The bias of a draw is below routers / 2^64.
fn shuffled(routers: usize, seed: u64) -> Vec<usize> {
    let mut generator = ChaCha8Rng::seed_from_u64(seed);
    let mut order: Vec<usize> = (0..routers).collect();
    for last in (1..routers).rev() {
        let drawn = (u128::from(generator.next_u64()) * (last as u128 + 1)) >> 64;
        order.swap(last, drawn as usize);
    }
    order
}

/// The steps of a planner, and what may be read from them together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpgradePlan {
    steps: Vec<UpgradeStep>,
    least_hops: u64,
}

impl UpgradePlan {
    /// The network before any upgrade, and after each of `count`; fewer if there are fewer
    /// routers.
    #[must_use]
    pub fn new(paths: &ShortestPaths, strategy: Strategy, count: usize) -> Self {
        let steps = Planner::new(paths, strategy).take(count.saturating_add(1)).collect();
        Self { steps, least_hops: paths.links_used() }
    }

    /// The steps, the first of which is before any upgrade.
    #[must_use]
    pub fn steps(&self) -> &[UpgradeStep] {
        &self.steps
    }

    /// The hops that remain when all routers are upgraded: one per directed link in use.
    #[must_use]
    pub const fn least_hops(&self) -> u64 {
        self.least_hops
    }

    /// How many upgrades save `share` of what upgrading all routers would; None if the plan does
    /// not get there.
    #[must_use]
    pub fn reaches(&self, share: f64) -> Option<usize> {
        let goal = self.savable_hops() as f64 * share;
        let start = self.hops_before();
        let there = |step: &&UpgradeStep| (start - step.segments.hops) as f64 >= goal;
        self.steps.iter().find(there).map(|step| step.upgraded)
    }

    /// After how many upgrades the gain is flat: each later one of the plan saves less than
    /// `share` of the hops before any. None if the last one still saves more.
    #[must_use]
    pub fn flat_after(&self, share: f64) -> Option<usize> {
        let worthwhile = self.hops_before() as f64 * share;
        let gains =
            |step: &&UpgradeStep| step.saved_hops.is_some_and(|saved| saved as f64 >= worthwhile);
        let last = self.steps.iter().rfind(gains).map_or(0, |step| step.upgraded);
        (last + 1 < self.steps.len()).then_some(last)
    }

    fn hops_before(&self) -> u64 {
        self.steps.first().map_or(0, |step| step.segments.hops)
    }

    fn savable_hops(&self) -> u64 {
        self.hops_before() - self.least_hops
    }
}

#[cfg(test)]
mod tests;
