//! A line as Nagios reads it: state, text, and behind a bar values with their thresholds
//! (`'label'=value[unit];[warn];[crit]`).

use twixt_model::Segment;

use super::judging::{Finding, State};
use crate::output::{UNKNOWN, units};

/// The line, with its end.
pub(super) fn of(state: State, segment: &Segment, findings: &[Finding]) -> String {
    let state = match state {
        State::Ok => "OK",
        State::Unknown => "UNKNOWN",
        State::Critical => "CRITICAL",
    };
    let segment = format!("{}:{}", segment.upstream, segment.downstream);
    let described: Vec<String> = findings.iter().map(described).collect();
    let values: Vec<String> = findings.iter().map(performance).collect();
    // A bar would end the text, and a line break the line.
    let text = format!("{segment} {}", described.join(", ")).replace(['|', '\n', '\r'], " ");
    format!("TWIXT {state} - {text} | {}\n", values.join(" "))
}

fn described(finding: &Finding) -> String {
    let Finding { measure, fail_above, .. } = finding;
    let shown = |value: f64| match finding.unit {
        "ns" => units::duration(value),
        _ => units::percent(value),
    };
    let class = match finding.class.as_str() {
        "" => String::new(),
        class => format!("{class} "),
    };
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

/// Times in seconds, shares in percent; `U` for unknown.
fn performance(finding: &Finding) -> String {
    let (scale, unit) = if finding.unit == "ns" { (1e-9, "s") } else { (100.0, "%") };
    // Nine digits are nanoseconds, and hide the rounding of floats.
    let number = |value: f64| {
        let text = format!("{:.9}", value * scale);
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    };
    let measure = finding.measure;
    let label = match finding.class.as_str() {
        "" => measure.to_owned(),
        // Quotes and equal signs would end the label.
        class => format!("'{} {measure}'", class.replace(['\'', '=', '|', '\n', '\r'], "_")),
    };
    let value = finding.value.map_or_else(|| "U".to_owned(), |value| number(value) + unit);
    format!("{label}={value};;{}", number(finding.fail_above))
}

#[cfg(test)]
mod tests {
    use twixt_model::PointId;

    use super::*;

    fn finding(class: &str, measure: &'static str, value: Option<f64>, above: f64) -> Finding {
        Finding {
            state: match value {
                None => State::Unknown,
                Some(value) if value > above => State::Critical,
                Some(_) => State::Ok,
            },
            class: class.to_owned(),
            algorithm: None,
            measure,
            unit: if measure == "loss" { "share" } else { "ns" },
            value,
            fail_above: above,
            packets: None,
            reason: value.is_none().then(|| "too few | packets".to_owned()),
        }
    }

    #[track_caller]
    fn check(findings: &[Finding], expected: &str) {
        let point = |name: &str| PointId(name.to_owned());
        let segment = Segment { upstream: point("a"), downstream: point("b") };
        let state = findings.iter().map(|finding| finding.state).max().unwrap();
        assert_eq!(of(state, &segment, findings), expected);
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
