//! Shapes that are drawn with letters.

use twixt_model::Crossing;

use super::units;

const BARS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// Columns of a distribution.
const COLUMNS: usize = 40;
/// Letters of a course over time.
const LETTERS: usize = 12;

/// Where values lie between the smallest and the largest: on a scale of equal ratios if all are
/// positive, else of equal steps. `cdf` has values, ascending, each with the share up to it. `None`
/// if they do not differ.
pub(super) fn distribution(cdf: &[(i64, f64)], low_ns: i64, high_ns: i64) -> Option<String> {
    if high_ns <= low_ns {
        return None;
    }
    let place = |ns: i64| match low_ns > 0 {
        true => (ns as f64 / low_ns as f64).ln() / (high_ns as f64 / low_ns as f64).ln(),
        false => (ns - low_ns) as f64 / (high_ns - low_ns) as f64,
    };
    let column = |ns: i64| ((place(ns) * COLUMNS as f64) as usize).min(COLUMNS - 1);
    let mut shares = [0.0; COLUMNS];
    let mut before = 0.0;
    for &(ns, up_to) in cdf {
        shares[column(ns)] += up_to - before;
        before = up_to;
    }
    let most = shares.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
    let bar = |share: &f64| BARS[(share / most * 8.0).ceil().min(8.0) as usize];
    let (low, high) = (units::duration(low_ns as f64), units::duration(high_ns as f64));
    Some(format!("{low:>10} {} {high}", shares.iter().map(bar).collect::<String>()))
}

/// The mean delay over time, from the smallest (▁) to the largest (█); a space where no packet was
/// measured, and × where all were lost.
pub(super) fn course(packets: &[Crossing]) -> String {
    let (Some(first), Some(last)) = (packets.first(), packets.last()) else { return String::new() };
    let start = first.sent.as_nanos();
    let length = (last.sent - first.sent).as_nanos().saturating_add(1);
    let mut parts = [(0.0, 0_u64, 0_u64); LETTERS];
    for packet in packets {
        let since = i128::from(packet.sent.as_nanos().saturating_sub(start).max(0));
        let part = (since * LETTERS as i128 / i128::from(length)) as usize;
        let (sum_ns, measured, lost) = &mut parts[part.min(LETTERS - 1)];
        *lost += u64::from(packet.is_lost());
        if let Some(delay) = packet.delay() {
            *sum_ns += delay.as_nanos() as f64;
            *measured += 1;
        }
    }
    let means = parts.map(|(sum_ns, measured, _)| (measured > 0).then(|| sum_ns / measured as f64));
    let known = || means.iter().flatten().copied();
    let (low, high) = (known().fold(f64::MAX, f64::min), known().fold(f64::MIN, f64::max));
    let letter = |(mean, (_, _, lost)): (Option<f64>, (f64, u64, u64))| match mean {
        Some(mean) if high > low => BARS[1 + ((mean - low) / (high - low) * 7.0).round() as usize],
        Some(_) => BARS[4],
        None if lost > 0 => '×',
        None => ' ',
    };
    means.into_iter().zip(parts).map(letter).collect()
}

#[cfg(test)]
mod tests {
    use twixt_model::{CrossingFate, Delay, FlowHash, Timestamp};

    use super::*;

    fn packet(sent: i64, delay: Option<i64>) -> Crossing {
        let fate = delay.map_or(CrossingFate::Lost, |ns| CrossingFate::Took(Delay::from_nanos(ns)));
        Crossing { sent: Timestamp::from_nanos(sent), flow: FlowHash(0), length: 1, fate }
    }

    #[test]
    fn a_course_rises_from_the_smallest_to_the_largest() {
        let rising: Vec<Crossing> = (0..1200).map(|at| packet(at, Some(at))).collect();
        assert_eq!(course(&rising), "▁▂▂▃▄▄▅▅▆▇▇█");
        let level: Vec<Crossing> = (0..12).map(|at| packet(at, Some(5))).collect();
        assert_eq!(course(&level), "▄▄▄▄▄▄▄▄▄▄▄▄");
    }

    #[test]
    fn what_is_lost_and_what_is_not_there_differ() {
        let packets: Vec<Crossing> =
            [(0, Some(1)), (10, None), (119, Some(9))].map(|(sent, ns)| packet(sent, ns)).to_vec();
        assert_eq!(course(&packets), "▁×         █");
        assert_eq!(course(&[]), "");
    }

    #[test]
    fn a_distribution_is_by_ratio_if_all_are_positive() {
        let drawn = distribution(&[(1_000, 0.5), (1_000_000, 1.0)], 1_000, 1_000_000).unwrap();
        assert_eq!(drawn, format!("  1.000 µs █{}█ 1.000 ms", " ".repeat(38)));
        let negative = distribution(&[(-10, 0.5), (0, 0.75), (10, 1.0)], -10, 10).unwrap();
        assert_eq!(negative, format!("    -10 ns █{0}▄{1}▄ 10 ns", " ".repeat(19), " ".repeat(18)));
        assert_eq!(distribution(&[(5, 1.0)], 5, 5), None);
    }
}
