//! Ticks: round numbers of the unit that suits the axis.

use twixt_model::Timestamp;

use super::picture::{Axis, Quantity};
use crate::output::units;

/// A place on an axis, and what is written there.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Tick {
    pub(super) value: f64,
    pub(super) label: String,
}

const SECOND_NS: f64 = 1e9;
const MINUTE_NS: f64 = 60e9;
const HOUR_NS: f64 = 3600e9;
const DAY_NS: f64 = 86_400e9;

impl Axis {
    /// Some `wanted` ticks, seldom more than one and a half times as many.
    pub(super) fn ticks(&self, wanted: usize) -> Vec<Tick> {
        match &self.quantity {
            Quantity::Names(names) => names
                .iter()
                .zip(0..)
                .map(|(name, index)| Tick { value: f64::from(index) + 0.5, label: name.clone() })
                .collect(),
            Quantity::Duration if self.logarithmic => self.decades(short_duration),
            Quantity::Count if self.logarithmic => self.decades(counted),
            _ if self.logarithmic => self.decades(|value| plain(self.shown(value))),
            Quantity::Moment => self.moments(wanted),
            _ => self.linear(wanted),
        }
    }

    /// The label with the unit of the ticks.
    pub(super) fn title(&self) -> String {
        let label = &self.label;
        match &self.quantity {
            Quantity::Duration if !self.logarithmic => {
                format!("{label} ({})", duration_unit(self.low.abs().max(self.high.abs())).1)
            }
            Quantity::Share => format!("{label} (%)"),
            Quantity::Moment => {
                let day = units::moment(Timestamp::from_nanos(self.low as i64));
                format!("{label} (UTC, {})", &day[..day.find(' ').unwrap_or(day.len())])
            }
            _ => label.clone(),
        }
    }

    /// What a unit is in terms of the values.
    fn unit(&self) -> f64 {
        match self.quantity {
            Quantity::Duration => duration_unit(self.low.abs().max(self.high.abs())).0,
            Quantity::Share => 0.01,
            _ => 1.0,
        }
    }

    fn shown(&self, value: f64) -> f64 {
        value / self.unit()
    }

    fn linear(&self, wanted: usize) -> Vec<Tick> {
        const FEWEST: usize = 2;
        let unit = self.unit();
        let step_for = |wanted: usize| {
            let step = round_step((self.high - self.low) / unit / wanted as f64);
            // Half a packet is none.
            if self.quantity == Quantity::Count { step.max(1.0) } else { step }
        };
        let count = |step| multiples(self.low / unit, self.high / unit, step).count();
        // A step that is rounded up may leave a low panel with one tick.
        let tries = (wanted.max(1)..=4 * wanted.max(1)).map(step_for);
        let step = tries.clone().find(|&step| count(step) >= FEWEST);
        let step = step.unwrap_or_else(|| step_for(wanted.max(1)));
        let decimals = (-step.log10().floor()).max(0.0) as usize;
        let label = |number: f64| match self.quantity {
            Quantity::Count => units::count(number.max(0.0) as u64),
            // No "-0".
            _ => format!("{:.decimals$}", if number.abs() < step / 2.0 { 0.0 } else { number }),
        };
        multiples(self.low / unit, self.high / unit, step)
            .map(|number| Tick { value: number * unit, label: label(number) })
            .collect()
    }

    /// Powers of ten; twice and five times as much too, where there are few.
    fn decades(&self, label: impl Fn(f64) -> String) -> Vec<Tick> {
        let (low, high) = (self.low.log10(), self.high.log10());
        let factors: &[f64] = match high - low {
            ..2.1 => &[1.0, 2.0, 5.0],
            _ => &[1.0],
        };
        let powers = low.floor() as i32..=high.ceil() as i32;
        let values = powers.flat_map(|power| factors.iter().map(move |f| f * 10_f64.powi(power)));
        values
            .filter(|&value| value >= self.low * 0.999_999 && value <= self.high * 1.000_001)
            .map(|value| Tick { value, label: label(value) })
            .collect()
    }

    fn moments(&self, wanted: usize) -> Vec<Tick> {
        let step = moment_step((self.high - self.low) / wanted.max(1) as f64);
        let label = |ns: f64| {
            let text = units::moment(Timestamp::from_nanos(ns as i64));
            let time = text.split_once(' ').map_or(text.as_str(), |(_, time)| time).to_owned();
            match step {
                DAY_NS.. => text[..10].to_owned(),
                MINUTE_NS.. => time[..5].to_owned(),
                SECOND_NS.. => time[..8].to_owned(),
                _ => time.trim_end_matches('0').trim_end_matches('.').to_owned(),
            }
        };
        multiples(self.low, self.high, step)
            .map(|value| Tick { value, label: label(value) })
            .collect()
    }
}

/// Multiples of a step within two values. A tick for each hundredth at most.
fn multiples(low: f64, high: f64, step: f64) -> impl Iterator<Item = f64> {
    const TICKS_MAX: i64 = 100;
    let first = (low / step - 1e-6).ceil() as i64;
    let last = ((high / step + 1e-6).floor() as i64).min(first.saturating_add(TICKS_MAX));
    (first..=last).map(move |index| index as f64 * step)
}

/// 1, 2 or 5 times a power of ten, not less than this.
fn round_step(least: f64) -> f64 {
    let power = 10_f64.powf(least.max(f64::MIN_POSITIVE).log10().floor());
    let factors = [1.0, 2.0, 5.0, 10.0];
    let found = factors.into_iter().find(|factor| factor * power >= least * 0.999_999);
    found.unwrap_or(10.0) * power
}

/// Steps that clocks count in.
fn moment_step(least_ns: f64) -> f64 {
    const STEPS: [f64; 19] = [
        SECOND_NS,
        2.0 * SECOND_NS,
        5.0 * SECOND_NS,
        10.0 * SECOND_NS,
        15.0 * SECOND_NS,
        30.0 * SECOND_NS,
        MINUTE_NS,
        2.0 * MINUTE_NS,
        5.0 * MINUTE_NS,
        10.0 * MINUTE_NS,
        15.0 * MINUTE_NS,
        30.0 * MINUTE_NS,
        HOUR_NS,
        2.0 * HOUR_NS,
        3.0 * HOUR_NS,
        6.0 * HOUR_NS,
        12.0 * HOUR_NS,
        DAY_NS,
        2.0 * DAY_NS,
    ];
    match least_ns {
        ..0.5e9 => round_step(least_ns).max(1e6),
        _ => {
            let found = STEPS.into_iter().find(|step| *step >= least_ns * 0.999_999);
            found.unwrap_or_else(|| round_step(least_ns / DAY_NS) * DAY_NS)
        }
    }
}

/// The unit of an axis whose largest value this is, and its name.
fn duration_unit(largest_ns: f64) -> (f64, &'static str) {
    match largest_ns {
        DAY_NS.. => (DAY_NS, "days"),
        1e9.. => (SECOND_NS, "s"),
        1e6.. => (1e6, "ms"),
        1e3.. => (1e3, "µs"),
        _ => (1.0, "ns"),
    }
}

/// A round length of time with its unit: `20 ms`.
fn short_duration(ns: f64) -> String {
    let (scale, unit) = duration_unit(ns * 1.000_001);
    format!("{} {unit}", plain(ns / scale))
}

/// A whole number as the tables show it; a part of one by its digits.
fn counted(number: f64) -> String {
    if number >= 1.0 { units::count(number.round() as u64) } else { plain(number) }
}

/// A round number with as few digits as it needs.
fn plain(number: f64) -> String {
    let text = format!("{number:.6}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(axis: &Axis, title: &str, expected: &[&str]) {
        let labels: Vec<String> = axis.ticks(5).into_iter().map(|tick| tick.label).collect();
        assert_eq!(
            (axis.title().as_str(), labels),
            (title, expected.iter().map(|&label| label.to_owned()).collect())
        );
    }

    #[test]
    fn ticks_are_round_numbers_of_their_unit() {
        let delay = |low, high| Axis::new("delay", Quantity::Duration, low, high);
        check(&delay(0.0, 42.3e6), "delay (ms)", &["0", "10", "20", "30", "40"]);
        check(&delay(-3e6, 2e6), "delay (ms)", &["-3", "-2", "-1", "0", "1", "2"]);
        check(&delay(0.0, 900.0), "delay (ns)", &["0", "200", "400", "600", "800"]);
        check(
            &delay(13.1838e6, 13.1842e6),
            "delay (ms)",
            &["13.1838", "13.1839", "13.1840", "13.1841", "13.1842"],
        );
        let share = Axis::new("packets", Quantity::Share, 0.0, 1.0);
        check(&share, "packets (%)", &["0", "20", "40", "60", "80", "100"]);
        let low: Vec<String> = Axis::new("lost", Quantity::Share, 0.0, 0.6)
            .ticks(2)
            .into_iter()
            .map(|tick| tick.label)
            .collect();
        assert_eq!(low, ["0", "50"]);
        let few = Axis::new("routers", Quantity::Count, 0.0, 3.0);
        check(&few, "routers", &["0", "1", "2", "3"]);
    }

    #[test]
    fn powers_of_ten_have_their_units() {
        let axis = Axis::new("round trip", Quantity::Duration, 30e3, 2.1e9).logarithmic_if_wide();
        check(&axis, "round trip", &["100 µs", "1 ms", "10 ms", "100 ms", "1 s"]);
        let axis = Axis::new("round trip", Quantity::Duration, 1e6, 60e6).logarithmic_if_wide();
        check(&axis, "round trip", &["1 ms", "2 ms", "5 ms", "10 ms", "20 ms", "50 ms"]);
        assert!(
            !Axis::new("delay", Quantity::Duration, -1.0, 1e9).logarithmic_if_wide().logarithmic
        );
    }

    #[test]
    fn moments_are_those_of_a_clock() {
        const START: f64 = 1_704_067_200e9;
        let time = |low, high| Axis::new("time", Quantity::Moment, START + low, START + high);
        check(
            &time(0.0, 5e9),
            "time (UTC, 2024-01-01)",
            &["00:00:00", "00:00:01", "00:00:02", "00:00:03", "00:00:04", "00:00:05"],
        );
        check(
            &time(0.2e9, 1.1e9),
            "time (UTC, 2024-01-01)",
            &["00:00:00.2", "00:00:00.4", "00:00:00.6", "00:00:00.8", "00:00:01"],
        );
        check(
            &time(0.0, 3600e9),
            "time (UTC, 2024-01-01)",
            &["00:00", "00:15", "00:30", "00:45", "01:00"],
        );
    }

    #[test]
    fn names_stand_in_the_middle_of_their_lines() {
        let axis = Axis::names("segment", vec!["a".to_owned(), "b".to_owned()]);
        assert_eq!(axis.ticks(1)[1], Tick { value: 1.5, label: "b".to_owned() });
    }
}
