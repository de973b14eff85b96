//! Which packets are measured.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::Context;
use clap::Args;
use twixt_model::{Needs, Prefix, Span};
use twixt_offline::Traffic;
use twixt_wire::{Digester, Filter, FilterError, Observer};

use super::moment::{Moment, span_of};
use super::weights;
use crate::configuration::{ClassSettings, Configuration};
use crate::exit::usage;

/// Which packets are measured.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct TrafficArgs {
    /// Count only packets to this prefix, as those that go downstream
    #[arg(long, value_name = "PREFIX")]
    pub(crate) toward: Option<Prefix>,
    /// Measure the outermost IP packet, not the one inside tunnels
    #[arg(long)]
    pub(crate) outer: bool,
    /// Only packets from this time on, by the clock of the point: 2024-01-31T10:00:00Z or with
    /// another offset (without one: UTC), 2024-01-31, @ and seconds since 1970, or nanoseconds
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    start: Option<Moment>,
    /// Only packets up to this time; like --start
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    end: Option<Moment>,
    /// A class of traffic, by a filter; repeatable, the first match wins
    #[arg(long = "class", value_name = "NAME=FILTER")]
    classes: Vec<ClassFilter>,
    /// A file of classes, one line NAME=FILTER each
    #[arg(long = "classes", value_name = "FILE")]
    classes_file: Option<PathBuf>,
    #[arg(skip)]
    weights_file: Option<PathBuf>,
    /// Do not resolve names (twixt never does; accepted for tcpdump users)
    #[arg(short = 'n', hide = true)]
    _numeric: bool,
    /// Measure only these packets: host, net, port, portrange, proto, vlan, dscp, and, or, not
    #[arg(value_name = "FILTER", trailing_var_arg = false)]
    filter: Vec<String>,
}

#[derive(Clone, Debug)]
struct ClassFilter {
    name: String,
    filter: Filter,
}

impl FromStr for ClassFilter {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, filter) =
            text.split_once('=').ok_or("write NAME=FILTER, such as voice=dscp ef")?;
        let filter = filter.parse::<Filter>().map_err(|error| error.to_string())?;
        Ok(Self { name: name.trim().to_owned(), filter })
    }
}

impl TrafficArgs {
    /// All packets that these words of a filter select.
    pub(crate) fn of_filter(filter: Vec<String>) -> Self {
        Self { filter, ..Self::default() }
    }

    /// What the trailing words select.
    pub(crate) fn filter(&self) -> anyhow::Result<Option<Filter>> {
        let text = self.filter.join(" ");
        match text.is_empty() {
            true => Ok(None),
            false => text.parse().map(Some).map_err(|error| self.refused(&error)),
        }
    }

    /// A shell that expanded a pattern gave us files where a filter should be.
    fn refused(&self, error: &FilterError) -> anyhow::Error {
        match self.filter.first().filter(|word| Path::new(word).is_file()) {
            Some(file) => usage(format!(
                "{file} is a file, not a filter: quote the pattern of a capture in several files"
            )),
            None => usage(format!("filter: {error}")),
        }
    }

    /// The packets that are measured.
    pub(crate) fn traffic(&self) -> anyhow::Result<Traffic> {
        Ok(Traffic {
            toward: self.toward,
            outer: self.outer,
            filter: self.filter()?,
            classes: self.all_classes()?,
            weighed: self.weights_file.is_some(),
            within: self.within()?,
        })
    }

    /// The time that was asked for.
    pub(crate) fn within(&self) -> anyhow::Result<Option<Span>> {
        match (self.start, self.end) {
            (None, None) => Ok(None),
            (start, end) => span_of(start, end).map(Some),
        }
    }

    /// The same, with classes by code point.
    pub(crate) fn traffic_by(&self, dscp: bool) -> anyhow::Result<Traffic> {
        let traffic = self.traffic()?;
        match dscp {
            true if !traffic.classes.is_empty() => {
                Err(usage("--by dscp makes classes of its own: omit --class"))
            }
            true => Ok(Traffic { classes: Traffic::dscp_classes(), ..traffic }),
            false => Ok(traffic),
        }
    }

    /// An observer of these packets that computes what is needed.
    pub(crate) fn observer(&self, needs: Needs, digester: Digester) -> anyhow::Result<Observer> {
        self.traffic()?.observer(needs, digester).map_err(|error| usage(error.to_string()))
    }

    /// Takes from the configuration file what the command line left out.
    pub(crate) fn with(mut self, configuration: &Configuration) -> Self {
        if self.classes.is_empty() && self.classes_file.is_none() {
            let class = |class: &ClassSettings| ClassFilter {
                name: class.name.clone(),
                filter: class.filter.parse().expect("the file was checked when it was read"),
            };
            self.classes = configuration.class.iter().map(class).collect();
        }
        self
    }

    /// With a word before those of the filter, where a command took it for something else.
    pub(crate) fn with_first_word(mut self, word: Option<&Path>) -> Self {
        self.filter.splice(0..0, word.map(|word| word.to_string_lossy().into_owned()));
        self
    }

    /// Takes the first words away as long as they are something else than a filter.
    pub(crate) fn take_first_words(&mut self, is_other: impl Fn(&str) -> bool) -> Vec<String> {
        let words = self.filter.iter().take_while(|word| is_other(word)).count();
        self.filter.drain(..words).collect()
    }

    /// The first word of the filter, if there is one.
    pub(crate) fn first_word(&self) -> Option<&str> {
        self.filter.first().map(String::as_str)
    }

    /// Distinguishes the packets that these rules weigh.
    pub(crate) fn weighed(self, rules: Option<&Path>) -> Self {
        Self { weights_file: rules.map(Path::to_owned), ..self }
    }

    /// Whether the user specified which packets go downstream.
    pub(crate) fn has_direction(&self) -> bool {
        self.toward.is_some() || !self.filter.is_empty()
    }

    /// Whether the user named classes.
    pub(crate) fn has_classes(&self) -> bool {
        !self.classes.is_empty() || self.classes_file.is_some()
    }

    fn all_classes(&self) -> anyhow::Result<Vec<(String, Filter)>> {
        if let Some(path) = &self.weights_file {
            if !self.classes.is_empty() || self.classes_file.is_some() {
                return Err(usage("--weights defines its own classes: omit --class"));
            }
            let rules = weights::read(path)?.into_iter().enumerate();
            return Ok(rules
                .map(|(index, rule)| (format!("rule {}", index + 1), rule.filter))
                .collect());
        }
        let mut classes: Vec<ClassFilter> = self.classes.clone();
        if let Some(path) = &self.classes_file {
            let text = std::fs::read_to_string(path)
                .with_context(|| format!("cannot read classes from {}", path.display()))?;
            let lines = text
                .lines()
                .map(str::trim)
                .filter(|line| !line.is_empty() && !line.starts_with('#'));
            for line in lines {
                let class = line
                    .parse()
                    .map_err(|error| usage(format!("{}: {line:?}: {error}", path.display())))?;
                classes.push(class);
            }
        }
        Ok(classes.into_iter().map(|class| (class.name, class.filter)).collect())
    }
}
