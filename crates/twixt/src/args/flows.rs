//! Which flows to answer for, and what is known of their sizes.

use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::Context;
use clap::{Args, ValueEnum};
use twixt_flow::FlowReader;
use twixt_model::{ClassId, FlowKey, Span};
use twixt_offline::{FlowList, FlowSizes, NamedFlow, RecordedSizes};

use crate::exit::usage;
use crate::flow_record_input::{is_ipfix_file, note_troubles, read_records};

/// Which flows to answer for, where the algorithm keeps no flow keys of its own.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Flows, for algorithms that keep no flow keys")]
pub(crate) struct FlowsArgs {
    /// Flows to report: all, heavy (the large ones), or a file with one per line
    ///
    /// `heavy` reports the flows of the table kept beside the sketch. The file may also be CSV with
    /// a column `scope`, optionally `packets` for sizes, such as truth.csv of `twixt simulate`, and
    /// `class` with the number of the rule of --weights that a flow matches, from 1 on; or flow
    /// records (IPFIX), which give sizes by epoch.
    #[arg(long, value_name = "all|heavy|FILE", default_value = "all")]
    flows: FlowSource,
    /// A flow to report, such as 'tcp 10.0.0.1:40312 > 10.0.1.9:443'; repeatable
    #[arg(long, value_name = "FLOW", conflicts_with = "flows")]
    flow: Vec<FlowKey>,
    /// Whether flow sizes are known, or estimated from the synopsis alone
    #[arg(long, value_enum)]
    sizes: Option<SizesArg>,
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
enum SizesArg {
    /// Counted, or given in the file
    Known,
    /// Estimated from the synopsis alone
    Estimated,
}

impl FlowsArgs {
    /// Reads the file, if there is one. `sizes` is the default.
    pub(crate) fn list(&self, sizes: FlowSizes) -> anyhow::Result<FlowList> {
        let asked = self.sizes.map(|sizes| match sizes {
            SizesArg::Known => FlowSizes::Known,
            SizesArg::Estimated => FlowSizes::Estimated,
        });
        let sizes = asked.unwrap_or(sizes);
        let named = |&key: &FlowKey| NamedFlow { key, packets: None, class: None };
        Ok(match &self.flows {
            FlowSource::All if self.flow.is_empty() => FlowList::passing(sizes),
            FlowSource::All => FlowList::named(self.flow.iter().map(named).collect(), sizes),
            FlowSource::Heavy => FlowList::heavy(sizes),
            FlowSource::File(path) if is_ipfix_file(path) => {
                FlowList::recorded(read_sizes(path)?, asked.unwrap_or(FlowSizes::Known))
            }
            FlowSource::File(path) => FlowList::named(read(path)?, sizes),
        })
    }
}

/// Records that are held in memory at most.
const RECORDS_MAX: usize = 1 << 22;

fn read_sizes(path: &Path) -> anyhow::Result<RecordedSizes> {
    let mut reader = FlowReader::default();
    let (mut sizes, mut count) = (RecordedSizes::default(), 0);
    read_records(path, &mut reader, &mut |read| {
        count += 1;
        if count <= RECORDS_MAX {
            let span = Span { start: read.record.first, end: read.record.last };
            sizes.add(read.record.key, span, read.record.packets);
        }
    })?;
    let shown = path.display().to_string();
    note_troubles(&shown, &reader);
    match count {
        0 => Err(usage(format!("{shown}: no flow records"))),
        1..=RECORDS_MAX => Ok(sizes),
        _ => Err(usage(format!("{shown}: more than {RECORDS_MAX} flow records; split it"))),
    }
}

fn read(path: &Path) -> anyhow::Result<Vec<NamedFlow>> {
    let shown = path.display();
    let text =
        std::fs::read_to_string(path).with_context(|| format!("cannot read flows from {shown}"))?;
    parse(&text).map_err(|(line, problem)| usage(format!("{shown}, line {line}: {problem}")))
}

/// One flow a line, or CSV whose heading names the columns.
fn parse(text: &str) -> Result<Vec<NamedFlow>, (usize, String)> {
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
            Some(text) => text
                .parse::<u64>()
                .map(Some)
                .map_err(|_| wrong(format!("{text:?} is not a {what}"))),
        };
        let packets = number(packets_at, "number of packets")?;
        // Rules are numbered from 1; no rule is the class beyond all of them.
        let class = number(class_at, "number of a rule")?.unwrap_or(0);
        let class = u16::try_from(class).unwrap_or(0).wrapping_sub(1);
        Ok(NamedFlow { key, packets, class: class_at.map(|_| ClassId(class)) })
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
