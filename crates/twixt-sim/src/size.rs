//! How many packets a flow has, and how many bytes a packet.

use std::fmt;
use std::str::FromStr;

use crate::config::PACKETS_MAX;
use crate::random::Stream;
use crate::spec::{Form, RangeError, Spec, SpecError, require, require_positive};

/// How many packets a flow has.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FlowSize {
    /// Pareto between two bounds: the distribution conditional on not exceeding `max`, as if
    /// larger values were drawn again. Rounded to the nearest whole number, at least 1.
    Pareto {
        /// The tail falls as size to the power of minus this.
        shape: f64,
        /// Smallest, before rounding.
        min: f64,
        /// Largest.
        max: f64,
    },
    /// All alike.
    Fixed {
        /// Packets of every flow.
        packets: u64,
    },
    /// Size k has a probability in proportion to k to the power of minus `exponent`.
    Zipf {
        /// How fast the probability falls.
        exponent: f64,
        /// Largest.
        max: u64,
    },
}

const FLOW_SIZES: &[Form] = &[
    Form::new("pareto", "shape=1.05,min=2.53,max=200000"),
    Form::new("fixed", "packets=100"),
    Form::new("zipf", "exponent=1.1,max=100000"),
];

impl FlowSize {
    pub(crate) fn validate(&self) -> Result<(), RangeError> {
        let in_range = |size: u64| (1..=PACKETS_MAX).contains(&size);
        match *self {
            Self::Pareto { shape, min, max } => {
                require_positive("shape of the flow sizes", shape)?;
                require_positive("min of the flow sizes", min)?;
                let good = max > min && max <= PACKETS_MAX as f64;
                require(good, "max of the flow sizes", max, "above min and at most 134217728")
            }
            Self::Fixed { packets } => {
                require(in_range(packets), "packets of a flow", packets, "1 to 134217728")
            }
            Self::Zipf { exponent, max } => {
                require_positive("exponent of the flow sizes", exponent)?;
                require(in_range(max), "max of the flow sizes", max, "1 to 134217728")
            }
        }
    }

    /// Packets of the next flow.
    pub(crate) fn draw(&self, stream: &mut Stream) -> u64 {
        match *self {
            Self::Pareto { shape, min, max } => {
                // Inversion of the truncated distribution function.
                let beyond = libm::pow(min / max, shape);
                let tail = 1.0 - stream.unit() * (1.0 - beyond);
                let size = min * libm::pow(tail, -1.0 / shape);
                size.min(max).round().max(1.0) as u64
            }
            Self::Fixed { packets } => packets,
            Self::Zipf { exponent, max } => Zipf { exponent, max }.draw(stream),
        }
    }
}

impl FromStr for FlowSize {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        let spec = Spec::parse("flow size", FLOW_SIZES, text)?;
        let model = match spec.name() {
            "pareto" => Self::Pareto {
                shape: spec.key("shape")?,
                min: spec.key("min")?,
                max: spec.key("max")?,
            },
            "fixed" => Self::Fixed { packets: spec.key("packets")? },
            _ => Self::Zipf { exponent: spec.key("exponent")?, max: spec.key("max")? },
        };
        model.validate()?;
        Ok(model)
    }
}

impl fmt::Display for FlowSize {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pareto { shape, min, max } => {
                write!(formatter, "pareto:shape={shape},min={min},max={max}")
            }
            Self::Fixed { packets } => write!(formatter, "fixed:packets={packets}"),
            Self::Zipf { exponent, max } => write!(formatter, "zipf:exponent={exponent},max={max}"),
        }
    }
}

/// Rejection-inversion after Hörmann and Derflinger, "Rejection-inversion to generate variates
/// from monotone discrete distributions", ACM TOMACS 6(3), 1996: constant time for any `max`.
struct Zipf {
    exponent: f64,
    max: u64,
}

impl Zipf {
    fn draw(&self, stream: &mut Stream) -> u64 {
        let low = self.integral(1.5) - 1.0;
        let high = self.integral(self.max as f64 + 0.5);
        let always = 2.0 - self.inverse(self.integral(2.5) - self.density(2.0));
        loop {
            let area = high + stream.unit() * (low - high);
            let x = self.inverse(area);
            let size = x.round().clamp(1.0, self.max as f64);
            if size - x <= always || area >= self.integral(size + 0.5) - self.density(size) {
                return size as u64;
            }
        }
    }

    fn density(&self, x: f64) -> f64 {
        libm::exp(-self.exponent * libm::log(x))
    }

    /// Integral of the density from 1 to x, in a form that also holds for an exponent of 1.
    fn integral(&self, x: f64) -> f64 {
        let logarithm = libm::log(x);
        let power = (1.0 - self.exponent) * logarithm;
        let ratio = if power.abs() > 1e-8 { libm::expm1(power) / power } else { 1.0 + power / 2.0 };
        ratio * logarithm
    }

    fn inverse(&self, area: f64) -> f64 {
        let scaled = (area * (1.0 - self.exponent)).max(-1.0);
        let ratio =
            if scaled.abs() > 1e-8 { libm::log1p(scaled) / scaled } else { 1.0 - scaled / 2.0 };
        libm::exp(ratio * area)
    }
}

/// How many bytes an IP packet has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketSize {
    /// 40, 576 and 1500 bytes at 7:4:1.
    Imix,
    /// All alike. Packets cannot be smaller than their headers; smaller sizes are raised.
    Fixed {
        /// Bytes of every packet.
        bytes: u32,
    },
}

const PACKET_SIZES: &[Form] = &[Form::new("imix", ""), Form::new("fixed", "bytes=512")];

impl PacketSize {
    pub(crate) fn validate(&self) -> Result<(), RangeError> {
        match *self {
            Self::Imix => Ok(()),
            Self::Fixed { bytes } => {
                let good = (1..=u32::from(u16::MAX)).contains(&bytes);
                require(good, "bytes of a packet", bytes, "1 to 65535")
            }
        }
    }

    /// Bytes of the next packet.
    pub(crate) fn draw(&self, stream: &mut Stream) -> u32 {
        match *self {
            Self::Fixed { bytes } => bytes,
            Self::Imix => match stream.below(12) {
                0..7 => 40,
                7..11 => 576,
                _ => 1500,
            },
        }
    }
}

impl FromStr for PacketSize {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        let spec = Spec::parse("packet size", PACKET_SIZES, text)?;
        let model = match spec.name() {
            "imix" => Self::Imix,
            _ => Self::Fixed { bytes: spec.key("bytes")? },
        };
        model.validate()?;
        Ok(model)
    }
}

impl fmt::Display for PacketSize {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Imix => formatter.write_str("imix"),
            Self::Fixed { bytes } => write!(formatter, "fixed:bytes={bytes}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Purpose;

    const DRAWS: usize = 200_000;

    fn draws(text: &str) -> Vec<u64> {
        let mut stream = Stream::new(3, Purpose::FlowSize);
        let model: FlowSize = text.parse().unwrap();
        (0..DRAWS).map(|_| model.draw(&mut stream)).collect()
    }

    /// The share of flows of at most `size` packets is `expected`, within five standard errors.
    #[track_caller]
    fn check(draws: &[u64], size: u64, expected: f64) {
        let n = draws.len() as f64;
        let share = draws.iter().filter(|&&draw| draw <= size).count() as f64 / n;
        let error = (expected * (1.0 - expected) / n).sqrt();
        assert!((share - expected).abs() <= 5.0 * error, "{size}: {share}, not {expected}");
    }

    #[test]
    fn pareto_sizes_follow_the_truncated_distribution() {
        let draws = draws("pareto:shape=1.05,min=2.53,max=200000");
        let beyond = (2.53_f64 / 200_000.0).powf(1.05);
        for size in [3_u64, 10, 100, 1000] {
            // Rounding to nearest puts everything below size + 1/2 there.
            let raw = 1.0 - (2.53 / (size as f64 + 0.5)).powf(1.05);
            check(&draws, size, raw / (1.0 - beyond));
        }
        assert!(draws.iter().all(|size| (3..=200_000).contains(size)));
    }

    #[test]
    fn zipf_sizes_follow_the_law() {
        for exponent in [0.5, 1.0, 1.7] {
            let draws = draws(&format!("zipf:exponent={exponent},max=1000"));
            let weights: Vec<f64> = (1..=1000).map(|k| f64::from(k).powf(-exponent)).collect();
            let total: f64 = weights.iter().sum();
            for size in [1, 2, 5, 100, 999] {
                check(&draws, size as u64, weights[..size].iter().sum::<f64>() / total);
            }
        }
        assert!(draws("zipf:exponent=2,max=1").iter().all(|&size| size == 1));
    }

    #[test]
    fn imix_has_its_mean() {
        let mut stream = Stream::new(3, Purpose::PacketSize);
        let sum: u64 = (0..DRAWS).map(|_| u64::from(PacketSize::Imix.draw(&mut stream))).sum();
        // Variance of 40, 576, 1500 at 7:4:1 is 183 204, mean 340.33.
        let (mean, error) = (sum as f64 / DRAWS as f64, (183_204.0 / DRAWS as f64).sqrt());
        assert!((mean - 340.333).abs() <= 5.0 * error, "{mean}");
    }
}
