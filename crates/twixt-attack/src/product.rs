//! The product, run as users run it: `twixt delay` on two capture files, answers in JSON.
//!
//! Running the program, and not its libraries, attacks all of it: reading files, direction, overlap,
//! pairing, estimating and rounding. And the judge cannot share a mistake with what it judges. A run takes
//! some 50 ms of a processor, which is fast enough.

use std::ffi::OsStr;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::Context;
use serde::Deserialize;

/// The two captures.
pub(crate) struct Captures {
    pub(crate) upstream: PathBuf,
    pub(crate) downstream: PathBuf,
}

/// What the program answered.
#[derive(Debug)]
pub(crate) enum Answer {
    /// A document.
    Document(Document),
    /// There is not enough to answer, and this is why.
    Unknown(String),
    /// It failed.
    Failed(String),
}

/// The part of a document that is judged.
#[derive(Debug, Deserialize)]
pub(crate) struct Document {
    stretch: Option<TimeSpan>,
    pub(crate) estimates: Vec<Estimated>,
}

#[derive(Debug, Deserialize)]
struct TimeSpan {
    start_ns: Option<i64>,
    end_ns: Option<i64>,
}

/// One estimate. Keys that the product may not have yet are optional.
#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct Estimated {
    pub(crate) scope: String,
    pub(crate) mean_ns: Option<i64>,
    pub(crate) ci95_low_ns: Option<i64>,
    pub(crate) ci95_high_ns: Option<i64>,
    pub(crate) lost: Option<u64>,
    pub(crate) lost_min: Option<u64>,
    pub(crate) lost_max: Option<u64>,
    #[serde(default)]
    pub(crate) strays: Option<u64>,
    pub(crate) reason: Option<String>,
    pub(crate) p50_low_ns: Option<i64>,
    pub(crate) p50_high_ns: Option<i64>,
    pub(crate) p95_low_ns: Option<i64>,
    pub(crate) p95_high_ns: Option<i64>,
    pub(crate) p99_low_ns: Option<i64>,
    pub(crate) p99_high_ns: Option<i64>,
}

/// Exit code: finished, but some input was unusable.
const PARTLY: i32 = 3;
/// Exit code: not enough data to answer.
const NO_ANSWER: i32 = 4;

/// Asks the program.
pub(crate) fn ask(
    program: &OsStr,
    captures: &Captures,
    options: &[String],
) -> anyhow::Result<Answer> {
    let output = Command::new(program)
        .arg("delay")
        .args([&captures.upstream, &captures.downstream])
        .args(options)
        .arg("--format=json")
        // A user's configuration must not decide what is attacked.
        .env_remove("TWIXT_CONFIG")
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("cannot run {}", Path::new(program).display()))?;
    let noted = String::from_utf8_lossy(&output.stderr);
    let last =
        noted.lines().last().unwrap_or("no message").trim_start_matches("twixt: ").to_owned();
    Ok(match (output.status.code(), serde_json::from_slice(&output.stdout)) {
        (Some(NO_ANSWER), Ok(Document { estimates, .. })) if estimates.is_empty() => {
            Answer::Unknown(last)
        }
        (Some(NO_ANSWER), Err(_)) => Answer::Unknown(last),
        (Some(0 | PARTLY | NO_ANSWER), Ok(document)) => Answer::Document(document),
        (Some(0 | PARTLY), Err(error)) => Answer::Failed(error.to_string()),
        (code, _) => Answer::Failed(format!("exit code {code:?}: {last}")),
    })
}

impl Document {
    /// The time it is about; everything, if it does not say.
    pub(crate) fn time_ns(&self) -> RangeInclusive<i64> {
        let span = self.stretch.as_ref();
        let start_ns = span.and_then(|span| span.start_ns).unwrap_or(i64::MIN);
        start_ns..=span.and_then(|span| span.end_ns).unwrap_or(i64::MAX)
    }
}

impl Estimated {
    /// The interval of the mean.
    pub(crate) fn interval_ns(&self) -> Option<RangeInclusive<i64>> {
        Some(self.ci95_low_ns?..=self.ci95_high_ns?)
    }

    /// Intervals of percentiles, each with the share of packets below.
    pub(crate) fn percentiles(&self) -> impl Iterator<Item = (f64, RangeInclusive<i64>)> {
        let all = [
            (0.5, self.p50_low_ns, self.p50_high_ns),
            (0.95, self.p95_low_ns, self.p95_high_ns),
            (0.99, self.p99_low_ns, self.p99_high_ns),
        ];
        all.into_iter().filter_map(|(share, low, high)| Some((share, low?..=high?)))
    }

    /// What is claimed of the number of lost packets.
    pub(crate) fn lost_range(&self) -> Option<RangeInclusive<u64>> {
        let claimed = self.lost.map(|lost| lost..=lost);
        claimed.or_else(|| Some(self.lost_min?..=self.lost_max?))
    }
}

#[cfg(test)]
impl Document {
    /// One that is about everything.
    pub(crate) fn of(estimates: Vec<Estimated>) -> Self {
        Self { stretch: None, estimates }
    }
}
