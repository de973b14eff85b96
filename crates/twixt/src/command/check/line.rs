//! A line as Nagios reads it: state, text, and behind a bar values with their thresholds
//! (`'label'=value[unit];[warn];[crit]`).

use super::judging::{Finding, State};
use crate::output::{UNKNOWN, units};

/// The line, with its end.
pub(super) fn of(state: State, name: &str, findings: &[Finding]) -> String {
    let state = match state {
        State::Ok => "OK",
        State::Unknown => "UNKNOWN",
        State::Critical => "CRITICAL",
    };
    let described: Vec<String> = findings.iter().map(described).collect();
    let values: Vec<String> = findings.iter().map(performance).collect();
    // A bar would end the text, and a line break the line.
    let text = format!("{name} {}", described.join(", ")).replace(['|', '\n', '\r'], " ");
    format!("TWIXT {state} - {text} | {}\n", values.join(" "))
}

fn described(finding: &Finding) -> String {
    let Finding { measure, fail_above, .. } = finding;
    let shown = |value: f64| match finding.unit {
        "ns" => units::duration(value),
        _ => units::percent(value),
    };
    let class = label_of(finding).map(|label| format!("{label} ")).unwrap_or_default();
    match (finding.value, finding.state) {
        (Some(value), State::Critical) => {
            format!("{class}{measure} {} (above {})", shown(value), shown(*fail_above))
        }
        (Some(value), _) => format!("{class}{measure} {}", shown(value)),
        (None, _) => {
            let reason = finding.reason.as_deref().unwrap_or_default();
            format!("{class}{measure} {UNKNOWN} ({reason})")
        }
    }
}

/// Class and kind, where there are any.
fn label_of(finding: &Finding) -> Option<String> {
    let class = Some(finding.class.clone()).filter(|class| !class.is_empty());
    let label: Vec<String> = class.into_iter().chain(finding.kind.clone()).collect();
    (!label.is_empty()).then(|| label.join(" "))
}

/// Times in seconds, shares in percent; `U` for unknown.
fn performance(finding: &Finding) -> String {
    let (scale, unit) = if finding.unit == "ns" { (1e-9, "s") } else { (100.0, "%") };
    // Nine digits are nanoseconds, and hide the rounding of floats.
    let number = |value: f64| {
        let text = format!("{:.9}", value * scale);
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    };
    let measure = &finding.measure;
    let label = match label_of(finding) {
        None => measure.clone(),
        // Quotes and equal signs would end the label.
        Some(label) => {
            format!("'{} {measure}'", label.replace(['\'', '=', '|', '\n', '\r'], "_"))
        }
    };
    let value = finding.value.map_or_else(|| "U".to_owned(), |value| number(value) + unit);
    format!("{label}={value};;{}", number(finding.fail_above))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(class: &str, measure: &'static str, value: Option<f64>, above: f64) -> Finding {
        Finding {
            state: match value {
                None => State::Unknown,
                Some(value) if value > above => State::Critical,
                Some(_) => State::Ok,
            },
            class: class.to_owned(),
            kind: None,
            algorithm: None,
            measure: measure.to_owned(),
            unit: if measure == "loss" { "share" } else { "ns" },
            value,
            interval: None,
            fail_above: above,
            packets: None,
            reason: value.is_none().then(|| "too few | packets".to_owned()),
        }
    }

    #[track_caller]
    fn check(findings: &[Finding], expected: &str) {
        let state = findings.iter().map(|finding| finding.state).max().unwrap();
        assert_eq!(of(state, "a:b", findings), expected);
    }

    #[test]
    fn a_line_is_what_nagios_reads() {
        let fine = [finding("", "mean", Some(1e6), 5e6), finding("", "loss", Some(0.0), 0.001)];
        check(&fine, "TWIXT OK - a:b mean 1.000 ms, loss 0 % | mean=0.001s;;0.005 loss=0%;;0.1\n");
        let broken = [finding("to-b", "p99", Some(6e6), 5e6)];
        check(
            &broken,
            "TWIXT CRITICAL - a:b to-b p99 6.000 ms (above 5.000 ms) | 'to-b p99'=0.006s;;0.005\n",
        );
        let unknown = [finding("", "mean", None, 5e6)];
        check(&unknown, "TWIXT UNKNOWN - a:b mean – (too few   packets) | mean=U;;0.005\n");
    }
}
