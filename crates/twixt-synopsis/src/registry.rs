//! Every algorithm we ship, and the only list of them.

use twixt_model::{
    Estimate, HeavyFlow, Observation, ReorderEstimate, RoundTripEstimate, RoundTripSample,
};

use crate::any::{AnySynopsis, Mismatch, same_config, typed, typed_mut};
use crate::cnf::Cnf;
use crate::codec::{DecodeError, Reader};
use crate::colate::Colate;
use crate::exact::Exact;
use crate::heavy::{
    ExactTable, HashPipeTable, Heavy, PrecisionTable, RapTable, RapWayTable, SpaceSavingTable,
};
use crate::lda::Lda;
use crate::lds::Lds;
use crate::question::Question;
use crate::reorder::{ReorderExact, ReorderHybrid, ReorderSampled};
use crate::rtt::{ExactRoundTrips, Fridge, Fridges, RoundTrips, SimpleRoundTrips};
use crate::sample::Sample;
use crate::sds::Sds;
use crate::synopsis::{
    ConfigOption, Needs, OnePoint, Pair, Reading, SplitMerge, Synopsis, TwoPoint,
};

/// Every algorithm we ship. Configuration, decoding, command-line help, the documentation's
/// index, the law tests, the accuracy table and the benches all walk it. An entry answers one
/// question under one name; (purpose, name) is the key, so `exact` may exist for each.
pub static ALGORITHMS: &[Algorithm] = &[
    Algorithm::two_point::<Exact>(Purpose::Delay),
    Algorithm::two_point::<Lda>(Purpose::Delay),
    Algorithm::two_point::<Lds>(Purpose::Delay),
    Algorithm::two_point::<Sds>(Purpose::Delay),
    Algorithm::two_point::<Colate>(Purpose::Delay),
    Algorithm::two_point::<Cnf>(Purpose::Delay),
    Algorithm::two_point::<Sample>(Purpose::Delay),
    Algorithm::round_trip::<ExactRoundTrips>(),
    Algorithm::round_trip::<SimpleRoundTrips>(),
    Algorithm::round_trip::<Fridge>(),
    Algorithm::round_trip::<Fridges>(),
    Algorithm::reorder::<ReorderExact>(),
    Algorithm::reorder::<ReorderSampled>(),
    Algorithm::reorder::<ReorderHybrid>(),
    Algorithm::heavy::<Heavy<ExactTable>>(),
    Algorithm::heavy::<Heavy<SpaceSavingTable>>(),
    Algorithm::heavy::<Heavy<RapTable>>(),
    Algorithm::heavy::<Heavy<RapWayTable>>(),
    Algorithm::heavy::<Heavy<HashPipeTable>>(),
    Algorithm::heavy::<Heavy<PrecisionTable>>(),
];

/// What an algorithm is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// One-way delay between two points.
    Delay,
    /// Round-trip times at one point.
    RoundTrip,
    /// Reordering at one point.
    Reorder,
    /// Large flows at one point.
    Heavy,
}

impl Purpose {
    /// The command that asks.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Delay => "delay",
            Self::RoundTrip => "rtt",
            Self::Reorder => "reorder",
            Self::Heavy => "heavy",
        }
    }
}

/// An algorithm with its type erased: what the rest of the program may do with it, and no more.
#[derive(Debug)]
pub struct Algorithm {
    /// What it is asked for.
    pub purpose: Purpose,
    /// Its name, unique within its purpose.
    pub name: &'static str,
    /// Identifies it in encoded form.
    pub tag: u16,
    /// Newest version of its encoded form.
    pub version: u8,
    /// What it is, in one line.
    pub summary: &'static str,
    /// The page of the documentation that describes it.
    pub page: &'static str,
    /// What of a packet it reads at least; see [`AnySynopsis::needs`].
    pub needs: Needs,
    /// The settings a user may give.
    pub options: &'static [ConfigOption],
    /// Whether splitting and merging is exact.
    pub split_merge: SplitMerge,
    /// Names of its estimators, default first; empty if there is but one way.
    pub estimators: &'static [&'static str],
    /// Whether it can distinguish flows.
    pub per_flow: bool,
    /// An empty synopsis with these settings; those not given have their defaults.
    pub start: fn(&toml::Table) -> Result<Box<dyn AnySynopsis>, ConfigError>,
    /// The settings that make the best of so many bytes; `None` if it cannot be sized so.
    pub sized: fn(u64) -> Option<toml::Table>,
    /// See [`Synopsis::decoded_bytes`].
    pub decoded_bytes: fn(&mut Reader<'_>) -> Result<u64, DecodeError>,
    /// Reads configuration and state.
    pub decode: Decode,
    /// How it concludes.
    pub estimator: Estimator,
}

/// Reads configuration and state, or of these what is needed.
pub type Decode = fn(&mut Reader<'_>, Reading<'_>) -> Result<Box<dyn AnySynopsis>, DecodeError>;

/// How an algorithm concludes: checks algorithm and configuration, then calls the typed code.
#[derive(Debug)]
pub enum Estimator {
    /// From two points.
    TwoPoint {
        /// The combined result of the two.
        estimate: EstimateTwoPoint,
        /// Takes a packet out of a synopsis again.
        remove: fn(&mut dyn AnySynopsis, &Observation) -> Result<(), Mismatch>,
        /// See [`TwoPoint::MATCHES_PACKETS`].
        matches_packets: bool,
    },
    /// Round trips, from one point.
    RoundTrip {
        /// How it concludes.
        conclude: Conclude<RoundTripEstimate>,
        /// Hands over single round trips; see [`RoundTrips::take_samples`].
        samples: TakeSamples,
    },
    /// Reordering, from one point.
    Reorder(Conclude<ReorderEstimate>),
    /// Large flows, from one point.
    Heavy(Conclude<HeavyFlow>),
}

/// How a one-point algorithm concludes.
#[derive(Debug)]
pub struct Conclude<C> {
    /// What the point tells.
    pub conclude: fn(&dyn AnySynopsis, &Question<'_>) -> Result<Vec<C>, Mismatch>,
    /// Ends an epoch; what goes on across the boundary stays.
    pub cut: CutOnePoint,
}

/// Hands over round trips that were found since the last time.
pub type TakeSamples = fn(&mut dyn AnySynopsis) -> Result<Vec<RoundTripSample>, Mismatch>;

/// Ends an epoch of a one-point synopsis.
pub type CutOnePoint = fn(&mut dyn AnySynopsis) -> Result<Box<dyn AnySynopsis>, Mismatch>;

/// The combined result of two synopses.
pub type EstimateTwoPoint =
    fn(Pair<'_, dyn AnySynopsis>, &Question<'_>) -> Result<Vec<Estimate>, Mismatch>;

/// Why settings are no configuration of an algorithm.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{algorithm}: {problem}")]
pub struct ConfigError {
    /// Name of the algorithm.
    pub algorithm: &'static str,
    /// What is wrong.
    pub problem: String,
}

/// Name of the estimators that are formulas as they were published, where these are known to be
/// wrong. To compare with, not to measure with.
pub const PRINTED_ESTIMATOR: &str = "printed";

impl Algorithm {
    /// Names of the estimators to measure with, default first.
    pub fn sound_estimators(&self) -> impl Iterator<Item = &'static str> + use<> {
        self.estimators.iter().copied().filter(|&name| name != PRINTED_ESTIMATOR)
    }

    /// Whether it matches packets; see [`TwoPoint::MATCHES_PACKETS`].
    #[must_use]
    pub const fn matches_packets(&self) -> bool {
        matches!(self.estimator, Estimator::TwoPoint { matches_packets: true, .. })
    }

    /// The entry of a two-point algorithm.
    #[must_use]
    pub const fn two_point<S: TwoPoint>(purpose: Purpose) -> Self {
        let estimator = Estimator::TwoPoint {
            estimate: estimate::<S>,
            remove: remove::<S>,
            matches_packets: S::MATCHES_PACKETS,
        };
        Self {
            estimators: S::ESTIMATORS,
            per_flow: S::PER_FLOW,
            ..Self::of::<S>(purpose, estimator)
        }
    }

    /// The entry of an algorithm for round trips.
    #[must_use]
    pub const fn round_trip<S: RoundTrips>() -> Self {
        let samples: TakeSamples = |synopsis| Ok(typed_mut::<S>(synopsis)?.take_samples());
        let conclude = Conclude::of::<S>();
        Self::of::<S>(Purpose::RoundTrip, Estimator::RoundTrip { conclude, samples })
    }

    /// The entry of an algorithm for reordering.
    #[must_use]
    pub const fn reorder<S: OnePoint<Conclusion = ReorderEstimate>>() -> Self {
        Self::of::<S>(Purpose::Reorder, Estimator::Reorder(Conclude::of::<S>()))
    }

    /// The entry of an algorithm for large flows.
    #[must_use]
    pub const fn heavy<S: OnePoint<Conclusion = HeavyFlow>>() -> Self {
        Self::of::<S>(Purpose::Heavy, Estimator::Heavy(Conclude::of::<S>()))
    }

    const fn of<S: Synopsis>(purpose: Purpose, estimator: Estimator) -> Self {
        Self {
            purpose,
            name: S::NAME,
            tag: S::TAG,
            version: S::VERSION,
            summary: S::SUMMARY,
            page: S::PAGE,
            needs: S::NEEDS,
            options: S::OPTIONS,
            split_merge: S::SPLIT_MERGE,
            estimators: &[],
            per_flow: false,
            start: start::<S>,
            sized: sized::<S>,
            decoded_bytes: S::decoded_bytes,
            decode: decode::<S>,
            estimator,
        }
    }
}

impl<C> Conclude<C> {
    /// That of a type.
    #[must_use]
    pub const fn of<S: OnePoint<Conclusion = C>>() -> Self {
        Self {
            conclude: |synopsis, question| Ok(typed::<S>(synopsis)?.conclude(question)),
            cut: |synopsis| Ok(Box::new(typed_mut::<S>(synopsis)?.cut())),
        }
    }
}

/// The algorithm of that name for that purpose.
#[must_use]
pub fn find(purpose: Purpose, name: &str) -> Option<&'static Algorithm> {
    ALGORITHMS.iter().find(|entry| entry.purpose == purpose && entry.name == name)
}

/// The algorithm with that tag, as files have it.
#[must_use]
pub fn by_tag(tag: u16) -> Option<&'static Algorithm> {
    ALGORITHMS.iter().find(|entry| entry.tag == tag)
}

fn start<S: Synopsis>(settings: &toml::Table) -> Result<Box<dyn AnySynopsis>, ConfigError> {
    let config: S::Config = settings.clone().try_into().map_err(|error: toml::de::Error| {
        ConfigError { algorithm: S::NAME, problem: error.message().to_owned() }
    })?;
    Ok(Box::new(S::new(&config)))
}

fn sized<S: Synopsis>(memory_bytes: u64) -> Option<toml::Table> {
    let config = S::sized(memory_bytes)?;
    Some(toml::Table::try_from(config).expect("configurations are plain tables"))
}

fn decode<S: Synopsis>(
    input: &mut Reader<'_>,
    reading: Reading<'_>,
) -> Result<Box<dyn AnySynopsis>, DecodeError> {
    Ok(Box::new(S::decode_for(input, reading)?))
}

fn estimate<S: TwoPoint>(
    pair: Pair<'_, dyn AnySynopsis>,
    question: &Question<'_>,
) -> Result<Vec<Estimate>, Mismatch> {
    let (upstream, downstream) = (typed::<S>(pair.upstream)?, typed::<S>(pair.downstream)?);
    let Err(differ) = same_config(upstream, downstream) else {
        return Ok(S::estimate(Pair { upstream, downstream }, question));
    };
    if let Some(upstream) = &upstream.fold_to(downstream.config()) {
        return Ok(S::estimate(Pair { upstream, downstream }, question));
    }
    let downstream = &downstream.fold_to(upstream.config()).ok_or(differ)?;
    Ok(S::estimate(Pair { upstream, downstream }, question))
}

fn remove<S: TwoPoint>(
    synopsis: &mut dyn AnySynopsis,
    observation: &Observation,
) -> Result<(), Mismatch> {
    typed_mut::<S>(synopsis)?.remove(observation);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_tags_are_unique() {
        for (index, one) in ALGORITHMS.iter().enumerate() {
            for other in &ALGORITHMS[index + 1..] {
                assert!(one.purpose != other.purpose || one.name != other.name);
                assert_ne!(one.tag, other.tag);
            }
            assert!(std::ptr::eq(find(one.purpose, one.name).unwrap(), one));
        }
        assert!(find(Purpose::Delay, "nonsense").is_none());
    }

    #[test]
    fn unknown_settings_are_refused_by_name() {
        for algorithm in ALGORITHMS {
            let settings = toml::Table::from_iter([("colour".to_owned(), toml::Value::from(1))]);
            let error = (algorithm.start)(&settings).unwrap_err();
            assert!(error.to_string().contains("colour"), "{error}");
        }
    }

    #[test]
    fn synopses_of_different_algorithms_or_settings_do_not_mix() {
        let start = |name: &str, rows: Option<i64>| {
            let settings = rows.map(|rows| ("rows".to_owned(), toml::Value::from(rows)));
            (find(Purpose::Delay, name).unwrap().start)(&settings.into_iter().collect()).unwrap()
        };
        let mut lda = start("lda", None);
        let other = start("lda", Some(512));
        let message = lda.try_merge(other.as_ref()).unwrap_err().to_string();
        assert!(message.contains("rows = 512"), "{message}");
        let message = lda.try_merge(start("exact", None).as_ref()).unwrap_err().to_string();
        assert_eq!(message, "one synopsis is lda, the other is exact");
    }
}
