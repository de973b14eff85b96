//! The configuration file: defaults of the user's own for what the command line leaves out.
//!
//! Two stages: what was written ([`Configuration`]), then what runs (the arguments, once they have
//! taken their defaults from here).

pub(crate) mod agent;

use std::path::{Path, PathBuf};

use anyhow::Context;
use serde::{Deserialize, Serialize};
use twixt_synopsis::{ALGORITHMS, Algorithm, Purpose, find};
use twixt_wire::Filter;

use crate::args::{EpochLength, Groups};
use crate::exit::usage;

/// What was written. Everything may be left out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "a table")]
pub(crate) struct Configuration {
    /// The algorithm, where the command line names none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) algorithm: Option<String>,
    pub(crate) digest: DigestSettings,
    pub(crate) epoch: EpochSettings,
    /// Settings by algorithm.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) synopsis: Vec<SynopsisSettings>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) class: Vec<ClassSettings>,
}

/// How packets are recognised.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "a table")]
pub(crate) struct DigestSettings {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) profile: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) hash: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) payload_bytes: Option<u8>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) group_by: Option<String>,
    #[serde(skip_serializing)]
    pub(crate) key: Option<String>,
}

/// How time is cut.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "a table")]
pub(crate) struct EpochSettings {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) length: Option<String>,
}

/// Settings of one algorithm.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct SynopsisSettings {
    pub(crate) algorithm: String,
    /// The command that asks it, where several have an algorithm of that name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) command: Option<String>,
    #[serde(flatten)]
    pub(crate) options: toml::Table,
}

impl SynopsisSettings {
    /// Whether they are settings of that algorithm.
    pub(crate) fn is_of(&self, algorithm: &Algorithm) -> bool {
        self.algorithm == algorithm.name
            && self.command.as_deref().is_none_or(|command| command == algorithm.purpose.name())
    }

    fn of_registry(&self) -> Option<&'static Algorithm> {
        ALGORITHMS.iter().find(|algorithm| self.is_of(algorithm))
    }
}

/// A class of traffic.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(crate) struct ClassSettings {
    pub(crate) name: String,
    pub(crate) filter: String,
}

impl Configuration {
    /// Reads and checks a file; nothing written when there is none.
    pub(crate) fn load(path: Option<&PathBuf>) -> anyhow::Result<Self> {
        let Some(path) = path else { return Ok(Self::default()) };
        let text = std::fs::read_to_string(path)
            .with_context(|| format!("cannot read configuration {}", path.display()))?;
        Self::parse(path, &text)
    }

    /// The algorithm for a purpose, if one is written that serves it.
    pub(crate) fn algorithm_for(&self, purpose: Purpose) -> Option<&str> {
        self.algorithm.as_deref().filter(|name| find(purpose, name).is_some())
    }

    /// With the defaults of twixt itself in place of what was left out.
    pub(crate) fn in_effect(&self) -> Self {
        let built_in: Self = toml::from_str(&template()).expect("the template is valid");
        let mut synopsis = self.synopsis.clone();
        let left_out = |entry: &SynopsisSettings| {
            !self.synopsis.iter().any(|ours| match (ours.of_registry(), entry.of_registry()) {
                (Some(one), Some(other)) => std::ptr::eq(one, other),
                _ => false,
            })
        };
        synopsis.extend(built_in.synopsis.into_iter().filter(left_out));
        let digest = self.digest.clone();
        Self {
            digest: DigestSettings {
                profile: digest.profile.or(built_in.digest.profile),
                hash: digest.hash.or(built_in.digest.hash),
                payload_bytes: digest.payload_bytes.or(built_in.digest.payload_bytes),
                group_by: digest.group_by.or(built_in.digest.group_by),
                key: None,
            },
            algorithm: self.algorithm.clone(),
            epoch: EpochSettings { length: self.epoch.length.clone().or(built_in.epoch.length) },
            synopsis,
            class: self.class.clone(),
        }
    }

    fn parse(path: &Path, text: &str) -> anyhow::Result<Self> {
        let shown = path.display();
        let configuration: Self =
            toml::from_str(text).map_err(|error| usage(format!("{shown}: {error}")))?;
        configuration.check().map_err(|problem| usage(format!("{shown}: {problem}")))?;
        Ok(configuration)
    }

    /// What can be wrong although it is well-formed.
    fn check(&self) -> Result<(), String> {
        let digest = &self.digest;
        named(
            "digest.profile",
            digest.profile.as_ref().map(|name| name.parse::<twixt_model::DigestProfile>()),
        )?;
        named(
            "digest.hash",
            digest.hash.as_ref().map(|name| name.parse::<twixt_model::DigestHash>()),
        )?;
        named("digest.group_by", digest.group_by.as_ref().map(|text| text.parse::<Groups>()))?;
        named("epoch.length", self.epoch.length.as_ref().map(|text| text.parse::<EpochLength>()))?;
        if digest.payload_bytes.is_some_and(|bytes| bytes > twixt_wire::PAYLOAD_BYTES_MAX) {
            return Err(format!("digest.payload_bytes: at most {}", twixt_wire::PAYLOAD_BYTES_MAX));
        }
        if let Some(name) = &self.algorithm
            && !ALGORITHMS.iter().any(|entry| entry.name == name)
        {
            return Err(format!("unknown algorithm {name:?}"));
        }
        for class in &self.class {
            named(
                "class",
                Some(
                    class
                        .filter
                        .parse::<Filter>()
                        .map_err(|error| format!("{}: {error}", class.name)),
                ),
            )?;
        }
        for synopsis in &self.synopsis {
            let algorithm = synopsis
                .of_registry()
                .ok_or_else(|| format!("unknown algorithm {:?}", synopsis.algorithm))?;
            (algorithm.start)(&synopsis.options).map_err(|error| error.to_string())?;
        }
        Ok(())
    }
}

fn named<T>(field: &str, read: Option<Result<T, String>>) -> Result<(), String> {
    match read {
        Some(Err(problem)) => Err(format!("{field}: {problem}")),
        _ => Ok(()),
    }
}

/// A file to start from: the defaults, with every key explained.
pub(crate) fn template() -> String {
    let mut text = String::from(
        "# twixt: defaults for options that the command line leaves out. Unknown keys are refused.\n\n\
         # The algorithm; default: exact for delay, lda for the others.\n\
         # algorithm = \"lda\"\n\n\
         # How packets are identified; the same at both points of a segment.\n\
         [digest]\n\
         profile = \"default\"   # or \"headers\" (truncated captures), \"nat\" (translated addresses)\n\
         hash = \"xxh3\"         # or \"siphash\", if senders may be hostile\n\
         payload_bytes = 24\n\
         # group_by = \"prefix/24,48\"   # prefixes that group flows, for algorithms with banks\n\
         # key = \"a secret that both points share\"\n\n\
         # How time is cut; the same at both points of a segment.\n\
         [epoch]\n\
         length = \"whole\"      # or a duration, such as \"1s\"\n",
    );
    for algorithm in ALGORITHMS {
        text += &format!(
            "\n# {}: {}\n[[synopsis]]\nalgorithm = \"{}\"\n",
            algorithm.name, algorithm.summary, algorithm.name
        );
        if algorithm.purpose != Purpose::Delay {
            text += &format!("command = \"{}\"\n", algorithm.purpose.name());
        }
        let prototype = (algorithm.start)(&toml::Table::new()).expect("the defaults are valid");
        let defaults = prototype.config();
        for option in algorithm.options {
            if let Some(value) = defaults.get(option.name) {
                text += &format!("{} = {value}   # {}\n", option.name, option.help);
            }
        }
    }
    text += "\n# Classes of traffic, for --by class; the first match wins.\n\
             # [[class]]\n\
             # name = \"voice\"\n\
             # filter = \"udp and dscp ef\"\n";
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Configuration, String> {
        Configuration::parse(Path::new("twixt.toml"), text).map_err(|error| error.to_string())
    }

    #[test]
    fn the_template_is_valid_and_says_what_runs_anyway() {
        let configuration = parse(&template()).unwrap();
        assert_eq!(configuration.synopsis.len(), ALGORITHMS.len());
        assert_eq!(configuration.epoch.length.as_deref(), Some("whole"));
    }

    #[test]
    fn nonsense_is_refused_and_named() {
        for (text, named) in [
            ("colour = 1", "colour"),
            ("[digest]\nprofile = \"x\"", "digest.profile"),
            ("[digest]\ngroup_by = \"flow\"", "digest.group_by"),
            ("[epoch]\nlength = \"5 parsecs\"", "epoch.length"),
            ("[[synopsis]]\nalgorithm = \"x\"", "unknown algorithm \"x\""),
            ("algorithm = \"x\"", "unknown algorithm \"x\""),
            ("[[synopsis]]\nalgorithm = \"lda\"\nrows = 0", "rows must be"),
            ("[[synopsis]]\nalgorithm = \"lda\"\ncolumns = 4", "columns"),
            ("[[class]]\nname = \"a\"\nfilter = \"port\"", "class"),
        ] {
            let problem = parse(text).unwrap_err();
            assert!(problem.contains(named), "{text:?}: {problem}");
        }
    }
}
