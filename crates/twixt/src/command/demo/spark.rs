//! Values over time in one line of a terminal.

const LEVELS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// A column for each value, from the smallest to the largest of them; a space where nothing is known.
pub(super) fn spark(values: &[Option<i64>]) -> String {
    let known = || values.iter().flatten().copied();
    let (Some(smallest), Some(largest)) = (known().min(), known().max()) else {
        return " ".repeat(values.len());
    };
    let range = largest.saturating_sub(smallest).max(1) as f64;
    let level = |value: i64| {
        let share = value.saturating_sub(smallest) as f64 / range;
        LEVELS[(share * (LEVELS.len() - 1) as f64).round() as usize]
    };
    values.iter().map(|value| value.map_or(' ', level)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(values: &[Option<i64>], expected: &str) {
        assert_eq!(spark(values), expected);
    }

    #[test]
    fn columns_are_in_proportion() {
        check(&[Some(10), Some(80), Some(45)], "▁█▅");
        check(&[Some(-7), None, Some(0)], "▁ █");
        check(&[Some(5), Some(5)], "▁▁");
        check(&[None, None], "  ");
        check(&[], "");
        check(&[Some(i64::MIN), Some(i64::MAX)], "▁█");
    }
}
