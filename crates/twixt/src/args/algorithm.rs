//! `--algorithm` and its options, all from the registry.

use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::path::Path;

use clap::{Arg, ArgMatches, Command};
use twixt_measure::Sealed;
use twixt_model::quantity::Nanoseconds;
use twixt_offline::ChosenAlgorithm;
use twixt_synopsis::{
    ALGORITHMS, Algorithm, ConfigOption, OptionKind, PRINTED_ESTIMATOR, Purpose, find,
};

use super::weights;
use crate::configuration::{Configuration, SynopsisSettings};
use crate::exit::usage;

/// Under which options of the algorithms stand in help.
pub(crate) const ALGORITHM_HEADING: &str = "Options of the algorithms";

/// Which algorithms a command offers.
pub(crate) trait Asks: Clone + Default + Send + Sync + 'static {
    const PURPOSE: Purpose;
    /// Which one is meant if none is named, as the help says it.
    const DEFAULT: Option<&str> = None;
}

/// Those that compare two points.
#[derive(Clone, Debug, Default)]
pub(crate) struct Delays;

impl Asks for Delays {
    const PURPOSE: Purpose = Purpose::Delay;
}

/// Those that find large flows.
#[derive(Clone, Debug, Default)]
pub(crate) struct Heavies;

impl Asks for Heavies {
    const PURPOSE: Purpose = Purpose::Heavy;
    const DEFAULT: Option<&str> = Some("rap");
}

/// Those that find reordering.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reorderings;

impl Asks for Reorderings {
    const PURPOSE: Purpose = Purpose::Reorder;
    const DEFAULT: Option<&str> = Some("exact; for interfaces hybrid");
}

/// Those for round trips at one point.
#[derive(Clone, Debug, Default)]
pub(crate) struct RoundTrips;

impl Asks for RoundTrips {
    const PURPOSE: Purpose = Purpose::RoundTrip;
    const DEFAULT: Option<&str> = Some("exact; for interfaces fridge");
}

/// The user's choices about the algorithm.
#[derive(Clone, Debug, Default)]
pub(crate) struct AlgorithmArgs<A: Asks = Delays> {
    name: Option<String>,
    memory_bytes: Option<u64>,
    estimator: Option<String>,
    /// Options by their names in the registry.
    given: BTreeMap<&'static str, String>,
    /// What the configuration file says of algorithms.
    written: Vec<SynopsisSettings>,
    written_name: Option<String>,
    asks: PhantomData<A>,
}

impl<A: Asks> AlgorithmArgs<A> {
    /// An algorithm and an estimator by name, without any settings.
    pub(crate) fn named(name: Option<String>, estimator: Option<String>) -> Self {
        Self { name, estimator, ..Self::default() }
    }

    /// The algorithm and its settings; `default` if the user named none. Refuses formulas that are
    /// known to be wrong.
    pub(crate) fn choose(&self, default: &str) -> anyhow::Result<ChosenAlgorithm> {
        let chosen = self.choose_to_compare(default)?;
        match chosen.estimator.as_deref() {
            Some(PRINTED_ESTIMATOR) => Err(only_to_compare(chosen.algorithm)),
            _ => Ok(chosen),
        }
    }

    /// The same, with any estimator: what it gets wrong is shown beside the referee.
    pub(crate) fn choose_to_compare(&self, default: &str) -> anyhow::Result<ChosenAlgorithm> {
        let name = self.name.as_deref().or(self.written_name.as_deref()).unwrap_or(default);
        let algorithm =
            find(A::PURPOSE, name).ok_or_else(|| unknown_algorithm(A::PURPOSE, name))?;
        if let Some(estimator) = self.estimator.as_deref()
            && !algorithm.estimators.contains(&estimator)
        {
            let known: Vec<&str> = algorithm.sound_estimators().collect();
            return Err(usage(match known.as_slice() {
                [] => format!("{name} has only one estimator"),
                known => {
                    format!("{name} has no estimator {estimator:?}; it has: {}", known.join(", "))
                }
            }));
        }
        let settings = self.settings(algorithm)?;
        let prototype = (algorithm.start)(&settings).map_err(|error| usage(error.to_string()))?;
        Ok(ChosenAlgorithm { algorithm, estimator: self.estimator.clone(), prototype })
    }

    /// The algorithm of a recording, with its settings; of what was asked for, the estimator.
    pub(crate) fn recorded(&self, first: &Sealed) -> anyhow::Result<ChosenAlgorithm> {
        let name = first.synopsis.name();
        let asked = self.choose(name)?;
        if asked.algorithm.name != name {
            let asked = asked.algorithm.name;
            return Err(usage(format!("it was recorded with {name}, not {asked}")));
        }
        Ok(ChosenAlgorithm { prototype: first.synopsis.fresh(), ..asked })
    }

    /// The rules by which packets count several times, if the user gave some.
    pub(crate) fn weights_file(&self) -> Option<&Path> {
        let option = |name: &str| all_options(A::PURPOSE).get(name).map(|users| users[0].1.kind);
        let given = self.given.iter().find(|(name, _)| option(name) == Some(OptionKind::Weights));
        given.map(|(_, path)| Path::new(path))
    }

    /// Replaces `--by dscp`, which no algorithm knows, by `--by class`; whether it was given.
    pub(crate) fn dscp_by_class(&mut self) -> bool {
        let by = self.given.get_mut("by").filter(|text| text.as_str() == "dscp");
        by.map(|text| "class".clone_into(text)).is_some()
    }

    /// Takes from the configuration file what the command line left out.
    pub(crate) fn with(self, configuration: &Configuration) -> Self {
        let written_name = configuration.algorithm_for(A::PURPOSE).map(str::to_owned);
        Self { written: configuration.synopsis.clone(), written_name, ..self }
    }

    fn settings(&self, algorithm: &Algorithm) -> anyhow::Result<toml::Table> {
        let mut settings = match self.memory_bytes {
            Some(bytes) => self.sized(algorithm, bytes)?,
            None => {
                let written = self.written.iter().find(|entry| entry.is_of(algorithm));
                written.map(|entry| entry.options.clone()).unwrap_or_default()
            }
        };
        for (&name, text) in &self.given {
            let option = algorithm.options.iter().find(|option| option.name == name);
            let option = option.ok_or_else(|| unknown_option(algorithm, name))?;
            settings.insert(name.to_owned(), value(option, text)?);
        }
        self.check_size(algorithm, &settings)?;
        Ok(settings)
    }

    /// What is given beside a size may need more than that.
    fn check_size(&self, algorithm: &Algorithm, settings: &toml::Table) -> anyhow::Result<()> {
        let Some(bytes) = self.memory_bytes.filter(|_| !self.given.is_empty()) else {
            return Ok(());
        };
        match (algorithm.start)(settings)?.state_bytes() > bytes {
            true => Err(usage(SIZED_TWICE)),
            false => Ok(()),
        }
    }

    /// What suits so many bytes. What does not depend on them may still be given.
    fn sized(&self, algorithm: &Algorithm, bytes: u64) -> anyhow::Result<toml::Table> {
        let sized = (algorithm.sized)(bytes).ok_or_else(|| cannot_size(algorithm, bytes))?;
        match self.given.keys().any(|&name| sized.contains_key(name)) {
            true => Err(usage(SIZED_TWICE)),
            false => Ok(sized),
        }
    }
}

const SIZED_TWICE: &str = "use either --memory or the individual sizes, not both";

fn unknown_algorithm(purpose: Purpose, name: &str) -> anyhow::Error {
    let known: Vec<&str> = of_purpose(purpose).map(|entry| entry.name).collect();
    usage(format!("unknown algorithm {name:?} for this command; known are: {}", known.join(", ")))
}

fn only_to_compare(algorithm: &Algorithm) -> anyhow::Error {
    let sound: Vec<&str> = algorithm.sound_estimators().collect();
    usage(format!(
        "the estimator {PRINTED_ESTIMATOR:?} of {} is the formula as published, which is known to be \
         wrong: it is for verify and evaluate only; use {}",
        algorithm.name,
        sound.join(" or ")
    ))
}

fn unknown_option(algorithm: &Algorithm, name: &str) -> anyhow::Error {
    let known: Vec<String> =
        algorithm.options.iter().map(|option| format!("--{}", flag(option.name))).collect();
    let (name, flag) = (algorithm.name, flag(name));
    usage(format!("{name} has no option --{flag}; it has: {}", known.join(", ")))
}

fn cannot_size(algorithm: &Algorithm, bytes: u64) -> anyhow::Error {
    let smallest = (algorithm.sized)(u64::from(u32::MAX)).is_some();
    usage(match smallest {
        true => format!("{}: {bytes} bytes are too few", algorithm.name),
        false => format!("{} grows with traffic; --memory cannot size it", algorithm.name),
    })
}

fn of_purpose(purpose: Purpose) -> impl Iterator<Item = &'static Algorithm> {
    ALGORITHMS.iter().filter(move |entry| entry.purpose == purpose)
}

fn value(option: &ConfigOption, text: &str) -> anyhow::Result<toml::Value> {
    let wrong = |problem: String| usage(format!("--{} {text:?}: {problem}", flag(option.name)));
    match option.kind {
        OptionKind::Integer => match text.parse::<i64>() {
            Ok(number) => Ok(number.into()),
            Err(_) => Err(wrong("is not a whole number".to_owned())),
        },
        OptionKind::Number => match text.parse::<f64>() {
            Ok(number) => Ok(number.into()),
            Err(_) => Err(wrong("is not a number".to_owned())),
        },
        OptionKind::Choice(words) => match words.contains(&text) {
            true => Ok(text.into()),
            false => Err(wrong(format!("is not one of: {}", words.join(", ")))),
        },
        OptionKind::Text(_) => Ok(text.into()),
        OptionKind::Weights => {
            let rules = weights::read(Path::new(text))?;
            let weights = rules.iter().map(|rule| toml::Value::from(i64::from(rule.weight)));
            Ok(weights.collect::<Vec<_>>().into())
        }
        OptionKind::Numbers => {
            let numbers: Result<Vec<f64>, _> =
                text.split(',').map(|part| part.trim().parse()).collect();
            let numbers =
                numbers.map_err(|_| wrong("is not a list such as 1,0.1,0.01".to_owned()))?;
            Ok(numbers.into_iter().map(toml::Value::from).collect::<Vec<_>>().into())
        }
        OptionKind::Duration => match text.parse::<Nanoseconds>() {
            Ok(length) if length.0 >= 0 => Ok(length.0.into()),
            Ok(_) => Err(wrong("must not be negative".to_owned())),
            Err(error) => Err(wrong(error.to_string())),
        },
    }
}

/// A setting's name as users write it on the command line.
fn flag(name: &str) -> String {
    name.replace('_', "-")
}

/// The options of all algorithms of a purpose; one name may serve several.
fn all_options(
    purpose: Purpose,
) -> BTreeMap<&'static str, Vec<(&'static str, &'static ConfigOption)>> {
    let mut options: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for algorithm in of_purpose(purpose) {
        for option in algorithm.options {
            options.entry(option.name).or_default().push((algorithm.name, option));
        }
    }
    options
}

fn option_arg(name: &'static str, users: &[(&'static str, &'static ConfigOption)]) -> Arg {
    let alike = users.chunk_by(|(_, option), (_, next)| option.help == next.help);
    let help: Vec<String> = alike
        .map(|alike| {
            let names: Vec<&str> = alike.iter().map(|(algorithm, _)| *algorithm).collect();
            format!("{}: {}", names.join(", "), alike[0].1.help)
        })
        .collect();
    let value = match users[0].1.kind {
        OptionKind::Integer => "N",
        OptionKind::Number => "NUMBER",
        OptionKind::Numbers => "RATES",
        OptionKind::Duration => "DURATION",
        OptionKind::Choice(words) => &words.join("|"),
        OptionKind::Text(name) => name,
        OptionKind::Weights => "FILE",
    };
    Arg::new(name)
        .long(flag(name))
        .value_name(value.to_owned())
        .help(help.join("; "))
        .help_heading(ALGORITHM_HEADING)
}

fn algorithm_help(purpose: Purpose, default: Option<&str>) -> String {
    let lines: Vec<String> =
        of_purpose(purpose).map(|entry| format!("{}: {}", entry.name, entry.summary)).collect();
    let default = default.map(|name| format!(" [default: {name}]")).unwrap_or_default();
    format!("Algorithm{default}\n{}", lines.join("\n"))
}

fn estimator_help(purpose: Purpose) -> String {
    let several = of_purpose(purpose).filter(|entry| !entry.estimators.is_empty());
    let names = several.map(|entry| {
        let names: Vec<&str> = entry.sound_estimators().collect();
        format!("{}: {}", entry.name, names.join(", "))
    });
    format!("Estimator to use [{}]", names.collect::<Vec<_>>().join("; "))
}

impl<A: Asks> clap::Args for AlgorithmArgs<A> {
    fn augment_args(command: Command) -> Command {
        let heading = ALGORITHM_HEADING;
        let estimator = Arg::new("estimator")
            .long("estimator")
            .value_name("NAME")
            .help(estimator_help(A::PURPOSE))
            .help_heading(heading);
        let memory = Arg::new("memory")
            .long("memory")
            .value_name("SIZE")
            .value_parser(super::bytes)
            .help("Memory to use, such as 64KiB; determines all other sizes")
            .help_heading(heading);
        let name = Arg::new("algorithm").long("algorithm").short('a').value_name("NAME");
        let command = command.arg(name.help(algorithm_help(A::PURPOSE, A::DEFAULT))).arg(memory);
        let several = of_purpose(A::PURPOSE).any(|entry| !entry.estimators.is_empty());
        let command = if several { command.arg(estimator) } else { command };
        all_options(A::PURPOSE)
            .iter()
            .fold(command, |command, (name, users)| command.arg(option_arg(name, users)))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl<A: Asks> clap::FromArgMatches for AlgorithmArgs<A> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        // Commands without estimators have no such argument.
        let text = |name: &str| matches.try_get_one::<String>(name).ok().flatten().cloned();
        let given =
            all_options(A::PURPOSE).into_keys().filter_map(|name| Some((name, text(name)?)));
        Ok(Self {
            name: text("algorithm"),
            memory_bytes: matches.get_one("memory").copied(),
            estimator: text("estimator"),
            given: given.collect(),
            written: Vec::new(),
            written_name: None,
            asks: PhantomData,
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}
