//! How long round trips took: all of them, or a histogram.

use twixt_model::{Bucket, Histogram, HistogramState, Percentile, RoundTripTimes};

use crate::codec::{DecodeError, Reader, Writer};

/// Measured times.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Times {
    /// Every one, in no particular order; memory grows.
    All(Vec<i64>),
    /// In buckets, with what each time stands for.
    Weighted(Histogram),
}

/// Points of a distribution function that are reported at most.
const CDF_POINTS_MAX: usize = 100;

impl Times {
    pub(super) fn new(buckets: Option<u32>) -> Self {
        match buckets {
            Some(buckets) => Self::Weighted(Histogram::new(buckets as usize)),
            None => Self::All(Vec::new()),
        }
    }

    #[inline]
    pub(super) fn add(&mut self, rtt_ns: i64, weight: f64) {
        match self {
            Self::All(times) => times.push(rtt_ns),
            Self::Weighted(histogram) => histogram.add(rtt_ns, weight),
        }
    }

    /// Callers have checked that both are of one sort.
    pub(super) fn merge(&mut self, other: &Self) {
        match (self, other) {
            (Self::All(times), Self::All(others)) => times.extend(others),
            (Self::Weighted(histogram), Self::Weighted(other)) => histogram.merge(other),
            (Self::All(_), Self::Weighted(_)) | (Self::Weighted(_), Self::All(_)) => {}
        }
    }

    pub(super) fn count(&self) -> u64 {
        match self {
            Self::All(times) => times.len() as u64,
            Self::Weighted(histogram) => histogram.count(),
        }
    }

    pub(super) fn weight(&self) -> f64 {
        match self {
            Self::All(times) => times.len() as f64,
            Self::Weighted(histogram) => histogram.weight(),
        }
    }

    pub(super) fn summary(&self) -> Option<RoundTripTimes> {
        match self {
            Self::All(times) => summary_of(times),
            Self::Weighted(histogram) => histogram.times(),
        }
    }

    /// All of them in buckets.
    pub(super) fn histogram(&self) -> Histogram {
        match self {
            Self::All(times) => {
                let mut histogram = Histogram::new(Histogram::BUCKETS_DEFAULT);
                times.iter().for_each(|&time_ns| histogram.add(time_ns, 1.0));
                histogram
            }
            Self::Weighted(histogram) => histogram.clone(),
        }
    }

    pub(super) fn state_bytes(&self) -> u64 {
        match self {
            Self::All(times) => (times.len() * size_of::<i64>()) as u64,
            Self::Weighted(histogram) => histogram.state_bytes(),
        }
    }

    pub(super) fn encode(&self, out: &mut Writer) {
        match self {
            Self::All(times) => {
                let mut sorted = times.clone();
                sorted.sort_unstable();
                out.u64(sorted.len() as u64);
                sorted.into_iter().for_each(|time| out.i64(time));
            }
            Self::Weighted(histogram) => write_histogram(out, &histogram.state()),
        }
    }

    pub(super) fn decode(
        input: &mut Reader<'_>,
        buckets: Option<u32>,
    ) -> Result<Self, DecodeError> {
        match buckets {
            None => {
                let count = input.count("times", size_of::<i64>())?;
                let times = (0..count).map(|_| input.i64("time"));
                Ok(Self::All(times.collect::<Result<_, _>>()?))
            }
            Some(buckets) => read_histogram(input, buckets).map(Self::Weighted),
        }
    }
}

fn summary_of(times: &[i64]) -> Option<RoundTripTimes> {
    let mut sorted = times.to_vec();
    sorted.sort_unstable();
    let (&min_ns, &max_ns) = (sorted.first()?, sorted.last()?);
    let count = sorted.len() as f64;
    let mean_ns = sorted.iter().map(|&time| i128::from(time)).sum::<i128>() as f64 / count;
    let squares: f64 = sorted.iter().map(|&time| (time as f64 - mean_ns).powi(2)).sum();
    let at = |share: f64| sorted[((share * count) as usize).min(sorted.len() - 1)];
    let percentile = |share: f64| {
        let time_ns = at(share);
        Percentile { share, time_ns, low_ns: time_ns, high_ns: time_ns }
    };
    Some(RoundTripTimes {
        mean_ns,
        half_width_ns: Some(0.0),
        deviation_ns: (squares / count).sqrt(),
        min_ns,
        max_ns,
        percentiles: Percentile::SHARES.map(percentile).to_vec(),
        cdf: cdf_of(&sorted),
    })
}

fn cdf_of(sorted: &[i64]) -> Vec<(i64, f64)> {
    let points = sorted.len().min(CDF_POINTS_MAX);
    let mut cdf: Vec<(i64, f64)> = (1..=points)
        .map(|point| {
            let time = sorted[point * sorted.len() / points - 1];
            let up_to = sorted.partition_point(|&other| other <= time);
            (time, up_to as f64 / sorted.len() as f64)
        })
        .collect();
    cdf.dedup_by_key(|point| point.0);
    cdf
}

fn write_bucket(out: &mut Writer, bucket: Bucket) {
    out.f64(bucket.weight);
    out.f64(bucket.variance);
}

fn read_bucket(input: &mut Reader<'_>) -> Result<Bucket, DecodeError> {
    Ok(Bucket { weight: input.f64("weight")?, variance: input.f64("variance")? })
}

fn write_histogram(out: &mut Writer, state: &HistogramState) {
    out.u8(state.scale);
    out.u32(state.first as u32);
    out.u64(state.buckets.len() as u64);
    state.buckets.iter().for_each(|&bucket| write_bucket(out, bucket));
    write_bucket(out, state.nothing);
    out.u64(state.count);
    out.i64(state.min);
    out.i64(state.max);
    state.sums.iter().for_each(|&sum| write_bucket(out, sum));
}

fn read_histogram(input: &mut Reader<'_>, buckets_max: u32) -> Result<Histogram, DecodeError> {
    let scale = input.u8("scale")?;
    let first = input.u32("first bucket")? as i32;
    let buckets = input.count("buckets", size_of::<Bucket>())?;
    let buckets = (0..buckets).map(|_| read_bucket(input)).collect::<Result<_, _>>()?;
    let nothing = read_bucket(input)?;
    let count = input.u64("count")?;
    let (min, max) = (input.i64("shortest")?, input.i64("longest")?);
    let sums = [read_bucket(input)?, read_bucket(input)?, read_bucket(input)?];
    let state =
        HistogramState { scale, buckets_max, first, buckets, nothing, count, min, max, sums };
    Histogram::from_state(state).map_err(|problem| DecodeError::invalid("histogram", problem))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(buckets: Option<u32>) {
        let mut times = Times::new(buckets);
        (0..1000).for_each(|n| times.add((n * 7_919) % 1000 * 1000, 2.0));
        let mut out = Writer::new();
        times.encode(&mut out);
        let read = Times::decode(&mut Reader::new(out.as_slice()), buckets).unwrap();
        assert_eq!(read.summary(), times.summary());
        assert_eq!(read.histogram().count(), times.count());
        assert_eq!(read.histogram().weight(), times.weight());
        let mut twice = times.clone();
        twice.merge(&times);
        assert_eq!(twice.count(), 2000);
    }

    #[test]
    fn times_read_back_and_add_up() {
        check(None);
        check(Some(64));
        check(Some(1600));
    }

    #[test]
    fn all_times_give_exact_percentiles() {
        let times = Times::All((1..=1000).rev().collect());
        let summary = times.summary().unwrap();
        let found: Vec<i64> = summary.percentiles.iter().map(|p| p.time_ns).collect();
        assert_eq!(found, [501, 901, 951, 991, 1000]);
        assert_eq!((summary.mean_ns, summary.half_width_ns), (500.5, Some(0.0)));
        assert_eq!((summary.cdf[0], summary.cdf.len()), ((10, 0.01), 100));
    }
}
