//! Delays that are independent from packet to packet. Drawn by inversion.

use crate::random::Stream;

/// Distribution function 1 - exp(-(x / scale)^shape).
pub(super) fn weibull(shape: f64, scale: f64, stream: &mut Stream) -> f64 {
    scale * libm::pow(stream.exponential(), 1.0 / shape)
}

/// Distribution function 1 - (scale / x)^shape, for x of at least scale.
pub(super) fn pareto(shape: f64, scale: f64, stream: &mut Stream) -> f64 {
    scale * libm::pow(stream.positive_unit(), -1.0 / shape)
}
