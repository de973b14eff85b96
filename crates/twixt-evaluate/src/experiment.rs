//! What an experiment is, and one run of it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::claim::{Claim, Judged};
use crate::figure::Figure;
use crate::summary::Summary;

/// A published result, rerun.
#[derive(Debug)]
pub struct Experiment {
    /// Its name on the command line, such as `lda-loss`.
    pub name: &'static str,
    /// What is measured: the section of the accuracy page that it stands in.
    pub algorithm: &'static str,
    /// Where it was published: paper and figure, table or section.
    pub paper: &'static str,
    /// What it varies, and what it measures, in a sentence or two.
    pub about: &'static str,
    /// How often it is run.
    pub seeds: Seeds,
    /// One run.
    pub trial: fn(Setting) -> Trial,
    /// What was published, and when we agree.
    pub claims: &'static [Claim],
    /// What is drawn.
    pub figures: fn(&Summary) -> Vec<Figure>,
}

/// How often an experiment is run: with seeds from 1 on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seeds {
    /// When it must be quick.
    pub quick: u64,
    /// Otherwise.
    pub full: u64,
}

/// What a trial is given.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// Everything random follows from this.
    pub seed: u64,
    /// How much to simulate.
    pub size: Size,
    /// Files of others, such as topologies of real networks, by their path; `None` where this
    /// machine does not have them.
    pub foreign: fn(&str) -> Option<Vec<u8>>,
}

/// How much to simulate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// In seconds: for continuous integration.
    Quick,
    /// As published, as far as that fits the machine.
    Full,
}

impl Size {
    /// As in names of files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Quick => "quick",
            Self::Full => "full",
        }
    }

    /// One of two.
    #[must_use]
    pub const fn pick(self, quick: u64, full: u64) -> u64 {
        match self {
            Self::Quick => quick,
            Self::Full => full,
        }
    }
}

/// What one run measured, under names that claims and figures use.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    /// Single numbers. One that could not be measured is left out.
    pub values: BTreeMap<String, f64>,
    /// Points (x, y) in the order of x.
    pub curves: BTreeMap<String, Vec<(f64, f64)>>,
}

impl Trial {
    /// Notes a number; what is not a number is not known, and left out.
    pub fn value(&mut self, name: impl Into<String>, value: impl Into<Option<f64>>) {
        if let Some(value) = value.into().filter(|value| value.is_finite()) {
            self.values.insert(name.into(), value);
        }
    }

    /// Notes a point of a curve; what is not a number is left out.
    pub fn point(&mut self, curve: &str, x: f64, y: impl Into<Option<f64>>) {
        if let Some(y) = y.into().filter(|y| y.is_finite() && x.is_finite()) {
            self.curves.entry(curve.to_owned()).or_default().push((x, y));
        }
    }
}

impl Experiment {
    /// What the trials say of each claim.
    #[must_use]
    pub fn judge(&self, summary: &Summary) -> Vec<Judged> {
        self.claims.iter().map(|claim| claim.judge(summary)).collect()
    }

    /// How many seeds are run, unless the user says otherwise.
    #[must_use]
    pub const fn seeds_of(&self, size: Size) -> u64 {
        match size {
            Size::Quick => self.seeds.quick,
            Size::Full => self.seeds.full,
        }
    }
}
