//! What changed: epochs of a segment's class against that class's own past.
//!
//! | file | the question it answers |
//! |---|---|
//! | `baseline.rs` | How was it before, and how likely is this epoch if nothing changed? |
//! | `detector.rs` | Which series changed, and since which epoch? |
//! | `incident.rs` | Which changes are one incident, where is it, and of what kind? |
//!
//! # The test, and what it promises
//!
//! Two questions are asked of every epoch of every series: do packets take longer than before, and
//! are more of them lost? Each gives a probability that an epoch at least as unusual comes without a
//! change. There is an alarm when it is below `false_alarms / tests`, where `tests` is how many are
//! made: by Bonferroni's inequality the probability that any of them raises an alarm without a change is
//! then at most `false_alarms`, however the series depend on each other.
//!
//! **Delay** ([`Baseline::delay_probability`]). The means of earlier epochs are taken to exceed some
//! minimum by something that is exponential, or has a lighter tail (as the means of many packets behind a
//! queue that is not full have). Then the test is exact for exponential means and conservative for others. It
//! knows neither scale nor minimum, so a constant clock offset changes nothing.
//!
//! **Loss** ([`Baseline::loss_probability`]). Given how many packets were lost in all epochs together, the
//! number in the newest is binomial: exact if packets are lost independently. Bursts make counts vary
//! more; counts are divided by the factor that they varied by before.
//!
//! What it does not promise: epochs that depend on each other for a long time (a load that
//! grows over the day) are changes to it, since to an operator they are too.
//!
//! Pure: no clock, no file. Estimates are handed over epoch by epoch.

mod baseline;
mod detector;
mod incident;

pub use baseline::{Baseline, EpochEvidence};
pub use detector::{Change, ChangeKind, Detector, DetectorConfig, DetectorCounts, WatchedSeries};
pub use incident::{Incident, IncidentKind, incidents};
