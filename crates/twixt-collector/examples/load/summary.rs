//! Times, summed up.

use std::time::Duration;

/// Median, 99th percentile and largest, in milliseconds.
pub(crate) fn times(mut times: Vec<Duration>) -> String {
    times.sort_unstable();
    let Some(largest) = times.last() else { return "none".to_owned() };
    let at = |share: f64| times[((share * times.len() as f64) as usize).min(times.len() - 1)];
    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    format!(
        "median {:.1} ms, p99 {:.1} ms, largest {:.1} ms, of {}",
        ms(at(0.5)),
        ms(at(0.99)),
        ms(*largest),
        times.len()
    )
}
