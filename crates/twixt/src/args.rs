//! Arguments that several commands share, and what they mean.

mod algorithm;
mod digest;
mod traffic;

pub(crate) use algorithm::{AlgorithmArgs, Chosen};
pub(crate) use digest::DigestArgs;
pub(crate) use traffic::{Split, TrafficArgs};

use std::str::FromStr;

use twixt_model::EpochRule;
use twixt_sim::quantity::{ByteCount, Nanoseconds};

use crate::settings::Settings;

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
    pub(crate) fn written(settings: &Settings) -> Option<Self> {
        let text = settings.epoch.length.as_ref()?;
        Some(text.parse().expect("the file was checked when it was read"))
    }
}

/// Reads a size such as `1MiB`, for clap.
pub(crate) fn bytes(text: &str) -> Result<u64, String> {
    text.parse::<ByteCount>().map(|count| count.0).map_err(|error| error.to_string())
}
