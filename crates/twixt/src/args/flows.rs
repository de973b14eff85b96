//! Which flows to answer for, and what is known of their sizes.

use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::Context;
use clap::{Args, ValueEnum};
use twixt_model::{ClassId, FlowKey};
use twixt_synopsis::KnownFlow;
use twixt_wire::Digester;

use crate::exit::usage;

/// Which flows to answer for, where the algorithm keeps no flow keys of its own.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Flows, for algorithms that keep no flow keys")]
pub(crate) struct FlowsArgs {
    /// Flows to answer for: all that pass, or a file with one on each line
    ///
    /// The file may also be CSV with a column `scope`, and one `packets` for sizes, such as
    /// truth.csv of `twixt simulate`.
    #[arg(long, value_name = "all|FILE", default_value = "all")]
    flows: FlowSource,
    /// Whether flow sizes are taken as known, or estimated from the synopsis alone
    #[arg(long, value_enum)]
    sizes: Option<Sizes>,
}

#[derive(Clone, Debug)]
enum FlowSource {
    All,
    File(PathBuf),
}

impl FromStr for FlowSource {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(if text == "all" { Self::All } else { Self::File(text.into()) })
    }
}

/// Whether flow sizes are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Sizes {
    /// Counted, or given in the file
    Known,
    /// Estimated from the synopsis alone
    Estimated,
}

/// A flow, and how many packets it has if the file says so.
type Named = (FlowKey, Option<u64>);

/// What the user said about flows.
pub(crate) struct FlowList {
    /// Those of a file; all that pass if `None`.
    named: Option<Vec<Named>>,
    pub(crate) sizes: Sizes,
}

impl FlowsArgs {
    /// Reads the file, if there is one. `sizes` counts where the user said nothing.
    pub(crate) fn list(&self, sizes: Sizes) -> anyhow::Result<FlowList> {
        let named = match &self.flows {
            FlowSource::All => None,
            FlowSource::File(path) => Some(read(path)?),
        };
        Ok(FlowList { named, sizes: self.sizes.unwrap_or(sizes) })
    }
}

impl FlowList {
    /// No flow is asked about.
    pub(crate) const fn none() -> Self {
        Self { named: Some(Vec::new()), sizes: Sizes::Estimated }
    }

    /// Whether the flows that pass are to be noted.
    pub(crate) const fn is_all(&self) -> bool {
        self.named.is_none()
    }

    /// The flows of the file, under the hashes that observations have.
    pub(crate) fn known(&self, digester: &Digester) -> Vec<KnownFlow> {
        let known = |&(key, packets): &Named| KnownFlow {
            hash: digester.flow_hash(&key),
            key,
            packets: packets.filter(|_| self.sizes == Sizes::Known),
            class: ClassId::default(),
        };
        self.named.iter().flatten().map(known).collect()
    }
}

fn read(path: &Path) -> anyhow::Result<Vec<Named>> {
    let shown = path.display();
    let text =
        std::fs::read_to_string(path).with_context(|| format!("cannot read flows from {shown}"))?;
    parse(&text).map_err(|(line, problem)| usage(format!("{shown}, line {line}: {problem}")))
}

/// One flow a line, or CSV whose heading names the columns.
fn parse(text: &str) -> Result<Vec<Named>, (usize, String)> {
    let mut lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()).peekable();
    let heading = lines.next_if(|(_, line)| line.split(',').any(|column| column == "scope"));
    let column = |name: &str| heading?.1.split(',').position(|column| column == name);
    let (scope_at, packets_at) = (column("scope").unwrap_or(0), column("packets"));
    let flow = |(index, line): (usize, &str)| {
        let fields: Vec<&str> = line.split(',').collect();
        let at = |column: usize| fields.get(column).copied().unwrap_or_default().trim();
        let wrong = |problem: String| (index + 1, problem);
        let key = at(scope_at)
            .parse()
            .map_err(|error: twixt_model::ParseFlowKeyError| wrong(error.to_string()))?;
        let packets = match packets_at.map(at) {
            Some("") | None => None,
            Some(number) => Some(
                number.parse().map_err(|_| wrong(format!("{number:?} is no number of packets")))?,
            ),
        };
        Ok((key, packets))
    };
    lines.map(flow).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flows_are_read_from_lines_and_from_csv() {
        let plain = parse("tcp 10.0.0.1:1 > 10.0.0.2:2\n\nudp 10.0.0.1:1 > 10.0.0.2:2\n").unwrap();
        assert_eq!(plain.len(), 2);
        assert_eq!(plain[0].1, None);
        let table = parse("scope,packets,lost\ntcp 10.0.0.1:1 > 10.0.0.2:2,17,3\n").unwrap();
        assert_eq!(table[0].1, Some(17));
        assert_eq!(table[0].0, plain[0].0);
    }

    #[test]
    fn a_line_that_is_no_flow_is_named() {
        assert_eq!(parse("tcp 10.0.0.1:1 > 10.0.0.2:2\nnonsense\n").unwrap_err().0, 2);
        assert_eq!(parse("scope,packets\ntcp 10.0.0.1:1 > 10.0.0.2:2,x\n").unwrap_err().0, 2);
    }
}
