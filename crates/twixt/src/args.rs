//! Arguments that several commands share, and what they mean.

mod algorithm;
mod digest;
mod fail_above;
mod flows;
mod moment;
mod threshold;
mod traffic;
mod weights;

pub(crate) use algorithm::{
    ALGORITHM_HEADING, AlgorithmArgs, Delays, Heavies, Reorderings, RoundTrips,
};
pub(crate) use digest::{DigestArgs, Groups};
pub(crate) use fail_above::{FailAbove, Judgement, Known, Limit, LimitMeasure};
pub(crate) use flows::FlowsArgs;
pub(crate) use moment::{Moment, span_of};
pub(crate) use threshold::{Threshold, threshold};
pub(crate) use traffic::TrafficArgs;

use std::str::FromStr;

use twixt_measure::Cutting;
use twixt_model::quantity::{ByteCount, Nanoseconds};
use twixt_model::{EpochRule, PointId};
use twixt_offline::{ClockUse, Split};

use crate::configuration::Configuration;
use crate::exit::usage;

/// `whole`, or a length of time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EpochLength(pub(crate) EpochRule);

impl FromStr for EpochLength {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "whole" {
            return Ok(Self(EpochRule::WHOLE));
        }
        let length: Nanoseconds = text.parse().map_err(|error| format!("{error}, or: whole"))?;
        EpochRule::every(length.0).map(Self).ok_or_else(|| "must be longer than 0".to_owned())
    }
}

impl EpochLength {
    /// What the configuration file says.
    pub(crate) fn written(configuration: &Configuration) -> Option<Self> {
        let text = configuration.epoch.length.as_ref()?;
        Some(text.parse().expect("the file was checked when it was read"))
    }
}

/// `whole`, `auto`, or a length of time.
#[derive(Clone, Copy, Debug)]
pub(crate) enum SeriesLength {
    Cut(EpochRule),
    /// As many epochs as a person wants to look at.
    Auto,
}

impl FromStr for SeriesLength {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "auto" => Ok(Self::Auto),
            _ => text.parse().map(|EpochLength(rule)| Self::Cut(rule)),
        }
    }
}

/// What ends an epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Cut {
    /// The time of each packet
    #[default]
    Time,
    /// Markers among the packets, on segments that keep their order
    Markers,
}

impl Cut {
    /// As a meter takes it; `upstream` is the point that sends the markers.
    pub(crate) fn cutting(
        self,
        rule: EpochRule,
        split: Split,
        upstream: &str,
    ) -> anyhow::Result<Cutting> {
        match self {
            Self::Time => Ok(Cutting::Timed),
            Self::Markers if rule == EpochRule::WHOLE => {
                Err(usage("--cut markers needs --epoch: the epoch length of the markers"))
            }
            Self::Markers if matches!(split, Split::Class | Split::Dscp) => Err(usage(
                "markers are not sent by class: --cut markers cannot be combined with \
                     --by class",
            )),
            Self::Markers => Ok(Cutting::FollowMarkers { upstream: PointId(upstream.to_owned()) }),
        }
    }
}

/// What is done about the clocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ClockArg {
    /// Report the difference, and leave delays as they were measured
    #[default]
    Report,
    /// Correct delays for known clock errors: skew, steps, and with both directions the offset
    Correct,
}

impl From<ClockArg> for ClockUse {
    fn from(arg: ClockArg) -> Self {
        match arg {
            ClockArg::Report => Self::Report,
            ClockArg::Correct => Self::Correct,
        }
    }
}

/// Reads a size such as `1MiB`, for clap.
pub(crate) fn bytes(text: &str) -> Result<u64, String> {
    text.parse::<ByteCount>().map(|count| count.0).map_err(|error| error.to_string())
}
