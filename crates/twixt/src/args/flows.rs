//! Which flows to answer for, and what is known of their sizes.

mod records;

use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::Context;
use clap::{Args, ValueEnum};
use twixt_model::{ClassId, FlowKey, Span};
use twixt_synopsis::KnownFlow;
use twixt_wire::Digester;

use self::records::{Records, Within};
use crate::exit::usage;
use crate::flow_record_input::is_ipfix_file;

/// Which flows to answer for, where the algorithm keeps no flow keys of its own.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Flows, for algorithms that keep no flow keys")]
pub(crate) struct FlowsArgs {
    /// Flows to answer for: all that pass, the large ones, or a file with one on each line
    ///
    /// `heavy` asks for the flows of the table kept beside the sketch. The file may also be CSV
    /// with a column `scope`, one `packets` for sizes, such as truth.csv of `twixt simulate`, and
    /// one `class` with the number of the rule of --weights that a flow matches, from 1 on; or flow
    /// records (IPFIX), which tell sizes epoch by epoch.
    #[arg(long, value_name = "all|heavy|FILE", default_value = "all")]
    flows: FlowSource,
    /// A flow to answer for, such as 'tcp 10.0.0.1:40312 > 10.0.1.9:443'; repeatable
    #[arg(long, value_name = "FLOW", conflicts_with = "flows")]
    flow: Vec<FlowKey>,
    /// Whether flow sizes are taken as known, or estimated from the synopsis alone
    #[arg(long, value_enum)]
    sizes: Option<Sizes>,
}

#[derive(Clone, Debug)]
enum FlowSource {
    All,
    Heavy,
    File(PathBuf),
}

impl FromStr for FlowSource {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(match text {
            "all" => Self::All,
            "heavy" => Self::Heavy,
            path => Self::File(path.into()),
        })
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

/// A flow, with what else the file says of it.
#[derive(Clone, Copy, Debug)]
struct Named {
    key: FlowKey,
    packets: Option<u64>,
    class: Option<ClassId>,
}

/// What the user said about flows.
#[derive(Clone, Debug)]
pub(crate) struct FlowList {
    source: Listed,
    pub(crate) sizes: Sizes,
}

/// Where names of flows come from.
#[derive(Clone, Debug)]
enum Listed {
    Passing,
    Table,
    File(Vec<Named>),
    Records(Vec<Named>, Records),
}

impl FlowsArgs {
    /// Reads the file, if there is one. `sizes` counts where the user said nothing.
    pub(crate) fn list(&self, sizes: Sizes) -> anyhow::Result<FlowList> {
        let named = |&key: &FlowKey| Named { key, packets: None, class: None };
        let mut sizes = sizes;
        let source = match &self.flows {
            FlowSource::All if self.flow.is_empty() => Listed::Passing,
            FlowSource::All => Listed::File(self.flow.iter().map(named).collect()),
            FlowSource::Heavy => Listed::Table,
            FlowSource::File(path) if is_ipfix_file(path) => {
                let records = Records::read(path)?;
                sizes = Sizes::Known;
                let named = |(key, packets)| Named { key, packets: Some(packets), class: None };
                Listed::Records(records.totals().map(named).collect(), records)
            }
            FlowSource::File(path) => Listed::File(read(path)?),
        };
        Ok(FlowList { source, sizes: self.sizes.unwrap_or(sizes) })
    }
}

impl FlowList {
    /// No flow is asked about.
    pub(crate) const fn none() -> Self {
        Self { source: Listed::File(Vec::new()), sizes: Sizes::Estimated }
    }

    /// Whether the flows that pass are to be noted.
    pub(crate) const fn is_all(&self) -> bool {
        matches!(self.source, Listed::Passing)
    }

    /// Whether the synopses name them.
    pub(crate) const fn is_heavy(&self) -> bool {
        matches!(self.source, Listed::Table)
    }

    /// Whether classes of flows are known.
    pub(crate) fn has_classes(&self) -> bool {
        match &self.source {
            Listed::Passing => true,
            Listed::Table => false,
            Listed::File(named) | Listed::Records(named, _) => {
                named.iter().all(|named| named.class.is_some())
            }
        }
    }

    /// Whether a flow is asked about.
    pub(crate) fn asks_for(&self, flow: &FlowKey) -> bool {
        match &self.source {
            Listed::Passing | Listed::Table => true,
            Listed::File(named) | Listed::Records(named, _) => {
                named.iter().any(|named| named.key == *flow)
            }
        }
    }

    /// The named flows, under the hashes that observations have.
    pub(crate) fn known(&self, digester: &Digester) -> Vec<KnownFlow> {
        let known = |named: &Named| KnownFlow {
            hash: digester.flow_hash(&named.key),
            key: named.key,
            group: digester.group(&named.key),
            packets: named.packets.filter(|_| self.sizes == Sizes::Known),
            class: named.class.unwrap_or_default(),
        };
        match &self.source {
            Listed::File(named) | Listed::Records(named, _) => named.iter().map(known).collect(),
            Listed::Passing | Listed::Table => Vec::new(),
        }
    }

    /// The flows of one epoch with their sizes there; `None` where those are the same in all.
    /// Where a record goes on beyond the epoch, the size there is left to the synopses.
    pub(crate) fn known_within(&self, digester: &Digester, span: Span) -> Option<Vec<KnownFlow>> {
        let Listed::Records(_, records) = &self.source else { return None };
        let told = self.sizes == Sizes::Known;
        let flows = self.known(digester).into_iter();
        let sized = flows.filter_map(|flow| match records.within(&flow.key, span) {
            Within::Absent => None,
            Within::Packets(packets) if told => Some(KnownFlow { packets: Some(packets), ..flow }),
            Within::Packets(_) | Within::Unknown => Some(KnownFlow { packets: None, ..flow }),
        });
        Some(sized.collect())
    }

    /// Whether sizes are told for all time together, and not epoch by epoch.
    pub(crate) fn has_whole_sizes(&self) -> bool {
        let Listed::File(named) = &self.source else { return false };
        self.sizes == Sizes::Known && named.iter().any(|named| named.packets.is_some())
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
    let class_at = column("class");
    let flow = |(index, line): (usize, &str)| {
        let fields: Vec<&str> = line.split(',').collect();
        let at = |column: usize| fields.get(column).copied().unwrap_or_default().trim();
        let wrong = |problem: String| (index + 1, problem);
        let key = at(scope_at)
            .parse()
            .map_err(|error: twixt_model::ParseFlowKeyError| wrong(error.to_string()))?;
        let number = |column: Option<usize>, what: &str| match column.map(at) {
            Some("") | None => Ok(None),
            Some(text) => {
                text.parse::<u64>().map(Some).map_err(|_| wrong(format!("{text:?} is no {what}")))
            }
        };
        let packets = number(packets_at, "number of packets")?;
        // Rules are numbered from 1; no rule is the class beyond all of them.
        let class = number(class_at, "number of a rule")?.unwrap_or(0);
        let class = u16::try_from(class).unwrap_or(0).wrapping_sub(1);
        Ok(Named { key, packets, class: class_at.map(|_| ClassId(class)) })
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
        assert_eq!((plain[0].packets, plain[0].class), (None, None));
        let table = parse("scope,packets,lost\ntcp 10.0.0.1:1 > 10.0.0.2:2,17,3\n").unwrap();
        assert_eq!(table[0].packets, Some(17));
        assert_eq!(table[0].key, plain[0].key);
        let flow = "tcp 10.0.0.1:1 > 10.0.0.2:2";
        let classes = parse(&format!("class,scope\n1,{flow}\n,{flow}\n0,{flow}\n")).unwrap();
        let classes: Vec<_> = classes.iter().map(|named| named.class.unwrap().0).collect();
        assert_eq!(classes, [0, u16::MAX, u16::MAX]);
    }

    #[test]
    fn a_line_that_is_no_flow_is_named() {
        assert_eq!(parse("tcp 10.0.0.1:1 > 10.0.0.2:2\nnonsense\n").unwrap_err().0, 2);
        assert_eq!(parse("scope,packets\ntcp 10.0.0.1:1 > 10.0.0.2:2,x\n").unwrap_err().0, 2);
    }
}
