//! `twixt plan upgrade`: which routers to upgrade first, and what each upgrade gains.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::ValueEnum;
use serde::Serialize;
use twixt_network::{
    FILE_BYTES_MAX, ShortestPaths, Strategy, Topology, UpgradePlan, UpgradeStep, import,
};
use twixt_offline::is_standard_input;

use crate::exit::{Exit, note};
use crate::output::{self, Format, Table, units};
use crate::plot::{Axis, Colour, Layer, Panel, Picture, PlotFile, Quantity, Shape};

/// The gain is flat where an upgrade saves less than this share of the hops before any.
const FLAT_SHARE: f64 = 0.01;
/// Shares of all that can be saved, for which the report says how many upgrades they take.
const GOALS: [f64; 3] = [0.5, 0.9, 0.99];

/// Routers to upgrade first, to minimise probing between them
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Routers and links: Rocketfuel weights, GML, GraphML or JSON; - is standard input
    #[arg(long, value_name = "FILE")]
    topology: PathBuf,
    /// Number of routers to upgrade
    #[arg(long, value_name = "N")]
    count: usize,
    /// How to choose them
    #[arg(long, value_enum, default_value_t)]
    strategy: StrategyName,
    /// Seed of random choices
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Draw hops by upgraded routers into a file: .svg, .png or .html
    #[arg(long, value_name = "FILE")]
    plot: Option<PlotFile>,
    /// Output format
    #[arg(short = 'F', long = "format", value_enum, default_value_t)]
    format: Format,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
enum StrategyName {
    /// Always the router that saves most
    #[default]
    Greedy,
    /// Any router, to compare with
    Random,
}

pub(super) fn run(args: &Args) -> anyhow::Result<Exit> {
    let shown = args.topology.display();
    let topology = import(&read(&args.topology)?).with_context(|| shown.to_string())?;
    let paths = ShortestPaths::of(&topology).with_context(|| shown.to_string())?;
    say_remarks(&topology, &paths);
    if args.count > topology.routers() {
        note(format_args!("there are only {} routers: all are upgraded", topology.routers()));
    }
    let plan = UpgradePlan::new(&paths, args.strategy(), args.count);
    if let Some(file) = &args.plot {
        file.write_any(picture(&plan))?;
    }
    let document = Document::new(args, &topology, &paths, &plan);
    match args.format {
        Format::Human => output::text(&document.report(&args.topology, &plan))?,
        Format::Json => output::json(&document)?,
        Format::Jsonl => output::jsonl(&document.steps)?,
        Format::Csv => output::csv(&document.steps)?,
    }
    Ok(Exit::Done)
}

impl Args {
    fn strategy(&self) -> Strategy {
        match self.strategy {
            StrategyName::Greedy => Strategy::Greedy,
            StrategyName::Random => Strategy::Random { seed: self.seed },
        }
    }
}

/// What is left to be probed, by upgraded routers.
fn picture(plan: &UpgradePlan) -> Option<Picture> {
    let line = |index, label: &str, of: fn(&UpgradeStep) -> Option<f64>| {
        let steps = plan.steps().iter().filter_map(|step| Some((step.upgraded as f64, of(step)?)));
        // By powers of ten there is no 0.
        let points: Vec<(f64, f64)> = steps.filter(|&(_, hops)| hops > 0.0).collect();
        Layer::new(label, Colour::Series(index), Shape::Line(points))
    };
    let layers = vec![
        line(0, "all segments", |step| Some(step.segments.hops as f64)),
        line(1, "a segment, mean", |step| step.segments.mean_hops()),
        line(2, "saved by the upgrade", |step| step.saved_hops.map(|hops| hops as f64)),
    ];
    let drawn = layers.iter().filter_map(|layer| match &layer.shape {
        Shape::Line(points) => Some(points),
        _ => None,
    });
    let hops = drawn.flatten().map(|point| point.1);
    let (low, high) = (hops.clone().reduce(f64::min)?, hops.reduce(f64::max)?);
    let last = plan.steps().last()?.upgraded as f64;
    Some(Picture {
        title: "What is left to be probed, by upgraded routers".to_owned(),
        subtitle: String::new(),
        panels: vec![Panel {
            title: "Hops".to_owned(),
            height: 300.0,
            x: Axis::new("upgraded routers", Quantity::Count, 0.0, last),
            y: Axis::new("hops", Quantity::Count, low, high).logarithmic_if_wide(),
            layers,
        }],
    })
}

/// The file, or as much of it as is enough to refuse it.
fn read(path: &Path) -> anyhow::Result<Vec<u8>> {
    let shown = path.display();
    let source: Box<dyn Read> = if is_standard_input(path) {
        Box::new(io::stdin().lock())
    } else {
        Box::new(File::open(path).with_context(|| format!("cannot open {shown}"))?)
    };
    let mut bytes = Vec::new();
    let enough = FILE_BYTES_MAX as u64 + 1;
    source.take(enough).read_to_end(&mut bytes).with_context(|| format!("cannot read {shown}"))?;
    Ok(bytes)
}

/// Says what of the topology is not in the plan, or was made up for it.
fn say_remarks(topology: &Topology, paths: &ShortestPaths) {
    let remarks = topology.remarks();
    for (number, remark) in [
        (remarks.unweighted_links, "directed links without a weight count as 1"),
        (remarks.parallel_links, "directed links parallel to a cheaper or equal one ignored"),
        (remarks.self_links, "directed links from a router to itself ignored"),
        (paths.unreachable_pairs(), "ordered pairs of routers have no path between them"),
    ] {
        if number > 0 {
            note(format_args!("{} {remark}", units::count(number as u64)));
        }
    }
}

/// `twixt plan upgrade -F json`.
#[derive(Serialize)]
struct Document {
    routers: usize,
    links: usize,
    directed_links: usize,
    unreachable_pairs: usize,
    strategy: StrategyName,
    seed: Option<u64>,
    least_probe_hops: u64,
    flat_after: Option<usize>,
    steps: Vec<StepDocument>,
}

#[derive(Serialize)]
struct StepDocument {
    upgraded: usize,
    router: Option<String>,
    paths: u64,
    probe_hops: u64,
    saved_hops: Option<u64>,
    granularity_mean: Option<f64>,
    granularity_min: Option<u64>,
    granularity_max: Option<u64>,
}

impl StepDocument {
    fn new(step: &UpgradeStep, topology: &Topology) -> Self {
        let segments = &step.segments;
        Self {
            upgraded: step.upgraded,
            router: step.router.map(|router| topology.name(router).to_owned()),
            paths: segments.count,
            probe_hops: segments.hops,
            saved_hops: step.saved_hops,
            granularity_mean: segments.mean_hops(),
            granularity_min: segments.shortest_hops(),
            granularity_max: (segments.count > 0).then_some(segments.longest_hops),
        }
    }

    fn row(&self, hops_before: u64) -> Vec<String> {
        let unknown = || "–".to_owned();
        let share = |hops: u64| hops as f64 / hops_before.max(1) as f64;
        vec![
            self.upgraded.to_string(),
            self.router.clone().unwrap_or_else(unknown),
            units::count(self.paths),
            units::count(self.probe_hops),
            self.saved_hops.map_or_else(unknown, units::count),
            self.saved_hops.map_or_else(unknown, |saved| units::percent(share(saved))),
            self.granularity_mean.map_or_else(unknown, |mean| format!("{mean:.2}")),
            self.granularity_max.map_or_else(unknown, |longest| longest.to_string()),
        ]
    }
}

impl Document {
    fn new(args: &Args, topology: &Topology, paths: &ShortestPaths, plan: &UpgradePlan) -> Self {
        Self {
            routers: topology.routers(),
            links: topology.adjacent_pairs(),
            directed_links: topology.directed_links(),
            unreachable_pairs: paths.unreachable_pairs(),
            strategy: args.strategy,
            seed: (args.strategy == StrategyName::Random).then_some(args.seed),
            least_probe_hops: plan.least_hops(),
            flat_after: plan.flat_after(FLAT_SHARE),
            steps: plan.steps().iter().map(|step| StepDocument::new(step, topology)).collect(),
        }
    }

    fn report(&self, file: &Path, plan: &UpgradePlan) -> String {
        let strategy = match self.seed {
            Some(seed) => format!("random, seed {seed}"),
            None => "greedy".to_owned(),
        };
        let mut report = format!(
            "{}   ({} routers, {} links, {strategy})\n\n",
            file.display(),
            units::count(self.routers as u64),
            units::count(self.links as u64),
        );
        let headings =
            ["upgraded", "router", "paths", "probe hops", "saved", "share", "granularity", "max"];
        let mut table = Table::new(&headings);
        let hops_before = self.steps.first().map_or(0, |step| step.probe_hops);
        for step in &self.steps {
            table.row(step.row(hops_before));
        }
        report += &table.to_string();
        report += &format!("\ngain     {}\n", self.flatness());
        let goals: Vec<String> = GOALS.iter().map(|&goal| reached(plan, goal)).collect();
        report += &format!("savings  {} of what all routers would save\n", goals.join(", "));
        let least = units::count(self.least_probe_hops);
        report += &format!("least    {least} probe hops, with all routers upgraded\n");
        report
    }

    fn flatness(&self) -> String {
        let share = format!("{} of the hops before any", units::percent(FLAT_SHARE));
        match self.flat_after {
            Some(0) => format!("flat: every upgrade saves less than {share}"),
            Some(upgrades) => {
                format!("flat after {upgrades}: each later one saves less than {share}")
            }
            None => format!("not flat yet: the last upgrade still saves at least {share}"),
        }
    }
}

fn reached(plan: &UpgradePlan, share: f64) -> String {
    let share_shown = format!("{:.0} %", share * 100.0);
    match plan.reaches(share) {
        Some(upgrades) => format!("{share_shown} with {upgrades}"),
        None => format!("{share_shown} with more"),
    }
}
