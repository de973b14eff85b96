//! Topologies from files of other programs, recognised by content.
//!
//! Each format has a file of its own below, which knows its syntax and nothing else. The bytes come
//! from outside: whatever they are, they end in a topology or in an error that says where and
//! what to do.

mod draft;
mod gml;
mod graphml;
mod json;
mod rocketfuel;

use std::fmt;

use crate::topology::{Topology, TopologyError};
use crate::weight::{WEIGHT_MAX, Weight};

/// The largest file that is read.
pub const FILE_BYTES_MAX: usize = 32 << 20;
/// How much of a wrong text an error shows.
const SHOWN_BYTES: usize = 60;

/// A format of files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Lines of source, destination and weight, each for one direction, as in the `weights.intra`
    /// and `latencies.intra` of Rocketfuel.
    Rocketfuel,
    /// Graph Modelling Language, as of the Internet Topology Zoo.
    Gml,
    /// GraphML, the XML of NetworkX, yEd and others.
    GraphMl,
    /// Our own: `{"directed": false, "routers": ["a", "b"], "links": [{"from": "a", "to": "b",
    /// "weight": 2.5}]}`. Everything but `links`, and in a link everything but `from` and `to`,
    /// may be missing.
    Json,
}

impl Format {
    /// The format of a text, by how it begins.
    #[must_use]
    pub fn of(text: &str) -> Option<Self> {
        let lines = text.lines().map(str::trim_start);
        let line = lines.into_iter().find(|line| !line.is_empty() && !line.starts_with('#'))?;
        if line.starts_with('{') {
            return Some(Self::Json);
        }
        if line.starts_with('<') {
            return Some(Self::GraphMl);
        }
        let words: Vec<&str> = line.split_whitespace().take(4).collect();
        match words.as_slice() {
            [_, _, weight] if weight.parse::<f64>().is_ok() => Some(Self::Rocketfuel),
            _ if gml::is_likely(text) => Some(Self::Gml),
            _ => None,
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Rocketfuel => "Rocketfuel weights",
            Self::Gml => "GML",
            Self::GraphMl => "GraphML",
            Self::Json => "JSON",
        })
    }
}

/// Where in a file something is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProblemPlace {
    /// In this line, from 1.
    Line(usize),
    /// In this element of `routers`, from 1.
    Router(usize),
    /// In this element of `links`, from 1.
    Link(usize),
    /// In no one place.
    File,
}

impl fmt::Display for ProblemPlace {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line(line) => write!(formatter, "line {line}"),
            Self::Router(router) => write!(formatter, "element {router} of \"routers\""),
            Self::Link(link) => write!(formatter, "element {link} of \"links\""),
            Self::File => formatter.write_str("the topology"),
        }
    }
}

/// Why a file is no topology.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ImportError {
    /// The file is larger than [`FILE_BYTES_MAX`]. Leave out what is neither router nor link.
    #[error("more than {} MiB; remove everything except routers and links", FILE_BYTES_MAX >> 20)]
    TooLarge,
    /// The file is not UTF-8. Convert it.
    #[error("line {line}: not UTF-8; convert the file, as with iconv -f latin1 -t utf-8")]
    NotText {
        /// The line with the first wrong byte.
        line: usize,
    },
    /// The beginning of the file is that of no format that is read here. Export it as one.
    #[error(
        "neither Rocketfuel weights, GML, GraphML nor JSON; export the topology as one of them"
    )]
    UnknownFormat,
    /// The file breaks the rules of its format. Correct it there, or export it again.
    #[error("{place}: {problem}")]
    Syntax {
        /// Where.
        place: ProblemPlace,
        /// What, and what would be right.
        problem: String,
    },
    /// A weight is not a number, or not within bounds. Correct it, or leave the link out.
    #[error(
        "{place}: {text:?} is not a valid weight; use a number from 0.000001 to {WEIGHT_MAX}, or \
         remove an unused link"
    )]
    Weight {
        /// Where.
        place: ProblemPlace,
        /// What stands there.
        text: String,
    },
    /// A router or link does not fit the rest. The problem says why, and what to do.
    #[error("{place}: {problem}")]
    Topology {
        /// Where.
        place: ProblemPlace,
        /// What does not fit.
        problem: TopologyError,
    },
}

/// Reads a topology.
///
/// # Errors
///
/// If the bytes are none, or too many.
pub fn import(bytes: &[u8]) -> Result<Topology, ImportError> {
    if bytes.len() > FILE_BYTES_MAX {
        return Err(ImportError::TooLarge);
    }
    let text = std::str::from_utf8(bytes).map_err(|error| ImportError::NotText {
        line: 1 + line_breaks(&bytes[..error.valid_up_to()]),
    })?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    match Format::of(text).ok_or(ImportError::UnknownFormat)? {
        Format::Rocketfuel => rocketfuel::parse(text),
        Format::Gml => gml::parse(text),
        Format::GraphMl => graphml::parse(text),
        Format::Json => json::parse(text),
    }
}

impl ImportError {
    fn syntax(place: ProblemPlace, problem: impl Into<String>) -> Self {
        Self::Syntax { place, problem: problem.into() }
    }

    /// Turns what a topology refused into what a file has wrong.
    fn at(place: ProblemPlace) -> impl FnOnce(TopologyError) -> Self {
        move |problem| Self::Topology { place, problem }
    }
}

/// A weight as it is written.
fn weight(place: ProblemPlace, text: &str) -> Result<Weight, ImportError> {
    let number = text.trim().parse().ok().and_then(Weight::new);
    number.ok_or_else(|| ImportError::Weight { place, text: beginning(text).to_owned() })
}

/// As much of a text as an error should show.
fn beginning(text: &str) -> &str {
    &text[..text.floor_char_boundary(SHOWN_BYTES)]
}

fn line_breaks(bytes: &[u8]) -> usize {
    bytes.iter().filter(|&&byte| byte == b'\n').count()
}

#[cfg(test)]
mod tests;
