//! Which packets count several times: a file of rules.

use std::path::Path;

use anyhow::Context;
use twixt_wire::Filter;

use crate::exit::usage;

/// Packets that this filter selects, unless a rule before it did, count so many times.
#[derive(Clone, Debug)]
pub(crate) struct WeightRule {
    pub(crate) filter: Filter,
    pub(crate) weight: u32,
}

/// Reads a file of lines `FILTER: WEIGHT`; `#` starts a comment line.
pub(crate) fn read(path: &Path) -> anyhow::Result<Vec<WeightRule>> {
    let shown = path.display();
    let text = std::fs::read_to_string(path)
        .with_context(|| format!("cannot read weights from {shown}"))?;
    let rules = parse(&text)
        .map_err(|(line, problem)| usage(format!("{shown}, line {line}: {problem}")))?;
    match rules.is_empty() {
        true => Err(usage(format!("{shown}: no rules"))),
        false => Ok(rules),
    }
}

fn parse(text: &str) -> Result<Vec<WeightRule>, (usize, String)> {
    let lines = text.lines().enumerate().map(|(index, line)| (index + 1, line.trim()));
    let lines = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    lines.map(|(number, line)| rule(line).map_err(|problem| (number, problem))).collect()
}

fn rule(line: &str) -> Result<WeightRule, String> {
    // The last colon: addresses of IPv6 have some, too.
    let (filter, weight) =
        line.rsplit_once(':').ok_or("write FILTER: WEIGHT, such as dst port 53: 25")?;
    let filter = filter.trim().parse::<Filter>().map_err(|error| error.to_string())?;
    let weight = weight.trim();
    let weight =
        weight.parse().map_err(|_| format!("{weight:?} is not a weight: use a whole number"))?;
    Ok(WeightRule { filter, weight })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_read_line_by_line() {
        let text = "# gold\nnet 2001:db8::/32: 100\n\n dst port 53 or dscp ef : 25\n";
        let rules = parse(text).unwrap();
        let weights: Vec<u32> = rules.iter().map(|rule| rule.weight).collect();
        assert_eq!(weights, [100, 25]);
        assert_eq!(rules[0].filter, "net 2001:db8::/32".parse().unwrap());
    }

    #[test]
    fn a_line_that_is_no_rule_is_named() {
        for text in ["tcp", "tcp: x", "tcp: 1.5", "tcp: -1", "nonsense here: 3"] {
            assert_eq!(parse(&format!("udp: 2\n{text}")).unwrap_err().0, 2, "{text}");
        }
    }
}
