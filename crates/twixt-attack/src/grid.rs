//! What traffic may be like: six factors, each with its levels. A cell has one level of each.

use std::fmt;

/// One property of the traffic, or of how it is measured.
#[derive(Debug)]
pub struct Factor {
    /// Its name, as the page has it.
    pub name: &'static str,
    /// The names of its levels.
    pub levels: &'static [&'static str],
}

/// All factors, in the order of [`GridCell::levels`].
pub const FACTORS: [Factor; 6] = [
    Factor { name: "flows", levels: &["1", "3", "10", "30", "100", "250", "400", "1000", "10000"] },
    Factor { name: "sizes", levels: &["equal", "pareto", "elephant"] },
    Factor { name: "memory", levels: &["quarter", "default", "fourfold"] },
    Factor {
        name: "delays",
        levels: &["exponential", "bimodal", "broken", "route", "queue", "pareto"],
    },
    Factor { name: "loss", levels: &["none", "2%", "30%", "gilbert", "one-flow"] },
    Factor { name: "repeats", levels: &["none", "10%", "50%"] },
];

/// One combination of levels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct GridCell {
    /// The index of a level for each factor.
    pub levels: [usize; 6],
}

/// How packets are spread over flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FlowSizes {
    Equal,
    /// Pareto, shape 1.05.
    Pareto,
    /// One flow has half of the packets, the others share the rest equally.
    Elephant,
}

/// What delays are like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Delays {
    Exponential,
    /// Each flow takes one of two paths.
    Bimodal,
    /// Up to five flows are delayed by half a second.
    Broken,
    /// Half-way the path becomes longer for all.
    Route,
    /// A queue at 99 % of its capacity.
    Queue,
    /// Pareto, shape 1.5: finite mean, no variance.
    Pareto,
}

/// Which packets are lost.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Losses {
    /// Each with this probability.
    Uniform(f64),
    /// In bursts.
    Gilbert,
    /// All packets of one flow.
    OneFlow,
}

impl GridCell {
    /// The cell of these names of levels.
    ///
    /// # Panics
    ///
    /// If a level does not exist.
    #[must_use]
    pub fn named(names: [&str; 6]) -> Self {
        let level = |factor: usize| {
            let found = FACTORS[factor].levels.iter().position(|&level| level == names[factor]);
            found
                .unwrap_or_else(|| panic!("no level {} of {}", names[factor], FACTORS[factor].name))
        };
        Self { levels: std::array::from_fn(level) }
    }

    /// Identifies it in seeds.
    pub(crate) fn number(self) -> u64 {
        self.levels
            .iter()
            .zip(&FACTORS)
            .fold(0, |number, (&level, factor)| number * factor.levels.len() as u64 + level as u64)
    }

    fn level(self, factor: usize) -> &'static str {
        FACTORS[factor].levels[self.levels[factor]]
    }

    pub(crate) fn flows(self) -> usize {
        self.level(0).parse().expect("levels of flows are numbers")
    }

    pub(crate) fn sizes(self) -> FlowSizes {
        [FlowSizes::Equal, FlowSizes::Pareto, FlowSizes::Elephant][self.levels[1]]
    }

    /// Memory, as a multiple of an algorithm's default; `None` for the default itself.
    pub(crate) fn memory(self) -> Option<f64> {
        [Some(0.25), None, Some(4.0)][self.levels[2]]
    }

    pub(crate) fn delays(self) -> Delays {
        use Delays::{Bimodal, Broken, Exponential, Pareto, Queue, Route};
        [Exponential, Bimodal, Broken, Route, Queue, Pareto][self.levels[3]]
    }

    pub(crate) fn losses(self) -> Losses {
        use Losses::{Gilbert, OneFlow, Uniform};
        [Uniform(0.0), Uniform(0.02), Uniform(0.3), Gilbert, OneFlow][self.levels[4]]
    }

    /// The share of packets that repeat others byte by byte.
    pub(crate) fn repeats(self) -> f64 {
        [0.0, 0.1, 0.5][self.levels[5]]
    }
}

impl fmt::Display for GridCell {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, factor) in FACTORS.iter().enumerate() {
            let comma = if index == 0 { "" } else { ", " };
            write!(formatter, "{comma}{} {}", factor.name, self.level(index))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_what_their_names_say() {
        let cell = GridCell::named(["400", "elephant", "quarter", "queue", "30%", "50%"]);
        assert_eq!((cell.flows(), cell.sizes()), (400, FlowSizes::Elephant));
        assert_eq!((cell.memory(), cell.delays()), (Some(0.25), Delays::Queue));
        assert_eq!((cell.losses(), cell.repeats()), (Losses::Uniform(0.3), 0.5));
        let text = "flows 400, sizes elephant, memory quarter, delays queue, loss 30%, repeats 50%";
        assert_eq!(cell.to_string(), text);
    }
}
