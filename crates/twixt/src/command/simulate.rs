//! `twixt simulate`: a pair of captures with known truth.
//!
//! What is simulated is the business of `twixt_sim`; here its options get names, and its packets
//! files.

mod arrivals;
mod hop;
mod markers;
mod output_files;

use std::path::{Path, PathBuf};

use serde::Serialize;
use twixt_model::EpochRule;
use twixt_model::quantity::{Nanoseconds, PacketRate};
use twixt_sim::{
    Burst, Clock, Config, DelayModel, FlowSize, Loss, PacketSize, Reorder, Reverse, Simulation,
    SimulationConfigError, Truth,
};

use crate::args::EpochLength;
use crate::exit::{Exit, usage};
use crate::output::{self, Format, units};
use arrivals::OwnTrace;
use output_files::{Frames, Written, write_all};

/// Write a pair of captures with known truth
///
/// Writes upstream.pcap and downstream.pcap as two observation points would have captured them
/// (nanosecond pcap, headers only), and truth.csv with the true delays and losses of every flow.
/// Everything is derived from the seed: the same command gives the same bytes, everywhere.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Directory to write to; created if missing, files of the same names are replaced
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Seed of everything random
    #[arg(long, value_name = "N", default_value_t = Config::default().seed)]
    seed: u64,
    /// Output format of the summary
    #[arg(short = 'F', long = "format", value_enum, default_value_t)]
    format: Format,
    #[command(flatten)]
    traffic: TrafficArgs,
    #[command(flatten)]
    segment: SegmentArgs,
}

/// What enters the segment.
#[derive(clap::Args)]
#[command(next_help_heading = "Traffic")]
struct TrafficArgs {
    /// Number of flows
    #[arg(long, value_name = "N", default_value_t = Config::default().flows)]
    flows: u32,
    /// Mean rate of all flows together: 800pps, 500kpps, 5Mpps
    #[arg(long, value_name = "RATE", default_value_t = Config::default().rate)]
    rate: PacketRate,
    /// Number of packets: flows are scaled up to it, or the trace is cut after it [default: the sum
    /// of flow sizes]
    #[arg(long, value_name = "N")]
    packets: Option<u64>,
    /// Packets of a flow
    ///
    /// One of: pareto:shape=1.05,min=2.53,max=200000; fixed:packets=100;
    /// zipf:exponent=1.2,max=100000
    #[arg(long, value_name = "MODEL", default_value_t = Config::default().flow_size)]
    flow_size: FlowSize,
    /// Bursts of a flow: mean length of a burst, mean gap within it
    #[arg(long, value_name = "BURST", default_value_t = Config::default().burst)]
    burst: Burst,
    /// Bytes of a packet
    ///
    /// One of: imix (40, 576 and 1500 bytes at 7:4:1); fixed:bytes=512
    #[arg(long, value_name = "MODEL", default_value_t = Config::default().packet_size)]
    packet_size: PacketSize,
    /// Return traffic, through its own delay model
    ///
    /// One of: none; any model of --delay. For every second delivered packet a small one comes
    /// back, like a TCP acknowledgement; it passes downstream first.
    #[arg(long, value_name = "MODEL", default_value_t = Config::default().reverse)]
    reverse: Reverse,
    /// A capture of your own instead of synthetic traffic
    ///
    /// All of its IP packets cross the segment from upstream to downstream, whatever their real
    /// direction; the rest is skipped. Frames are cut to 128 bytes, and the TTL is one lower
    /// downstream. - is standard input.
    #[arg(long, value_name = "FILE", conflicts_with_all = [
        "flows", "rate", "packets", "flow_size", "burst", "packet_size", "reverse",
    ])]
    arrivals: Option<PathBuf>,
}

/// What the segment does to it.
#[derive(clap::Args)]
#[command(next_help_heading = "Segment")]
struct SegmentArgs {
    /// How long packets take to cross
    ///
    /// Independent for each packet: constant:1ms; weibull:shape=0.6,scale=100us;
    /// pareto:shape=3,scale=133us.
    ///
    /// Around a mean of each flow: per-flow:median=1ms,spread=0.35,jitter=0.5;
    /// bimodal:fraction=0.6,first=200us,second=1500us,spread=0.35,jitter=0.5.
    ///
    /// Real queues, which lose packets when they are full (sizes in packets):
    /// droptail:drain=1gbit,queue=10000;
    /// red:drain=1gbit,queue=10000,min=4000,max=9000,weight=0.002,max-p=0.02.
    #[arg(long, value_name = "MODEL", default_value_t = Config::default().delay)]
    delay: DelayModel,
    /// Constant delay added to every packet
    #[arg(long, value_name = "DURATION", default_value_t = Config::default().propagation)]
    propagation: Nanoseconds,
    /// Which packets are lost
    ///
    /// One of: none; uniform:0.001; burst:rate=0.01,length=100
    #[arg(long, value_name = "MODEL", default_value_t = Config::default().loss)]
    loss: Loss,
    /// Which packets are reordered
    ///
    /// One of: none; uniform:rate=0.01,extent=1ms; prefixes:share=0.03,rate=0.05
    #[arg(long, value_name = "MODEL", default_value_t = Config::default().reorder)]
    reorder: Reorder,
    /// Error of the downstream clock
    ///
    /// Such as offset=-3ms,skew=20ppm. Delays in truth.csv include it.
    #[arg(long, value_name = "ERROR", default_value_t = Config::default().clock)]
    clock: Clock,
    /// Send a marker at the end of every epoch of this length, for `delay --cut markers`
    #[arg(long, value_name = "DURATION", conflicts_with = "arrivals")]
    markers: Option<EpochLength>,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Exit> {
    let config = args.config();
    let made = match &args.traffic.arrivals {
        Some(path) => OwnTrace::read(path)?.simulate(&config, path)?,
        None => Made {
            simulation: Simulation::run(&config).map_err(|error| refused(&error))?,
            frames: Frames::Synthetic,
            markers: args.segment.markers.map(|epoch| epoch.0),
            partial: false,
        },
    };
    let truth = made.simulation.truth();
    let written = write_all(&args.out, &made, &truth)?;
    args.print(&written, &truth)?;
    Ok(Exit::Done.or_partial(made.partial))
}

/// What was simulated, and with which frames.
struct Made {
    simulation: Simulation,
    frames: Frames,
    /// How often markers are sent, if at all.
    markers: Option<EpochRule>,
    /// Whether a part of the user's trace was unusable.
    partial: bool,
}

/// A configuration that makes no sense is the user's to mend.
fn refused(error: &SimulationConfigError) -> anyhow::Error {
    usage(error.to_string())
}

impl Args {
    fn config(&self) -> Config {
        let Self { traffic, segment, .. } = self;
        Config {
            seed: self.seed,
            start: Config::default().start,
            flows: traffic.flows,
            rate: traffic.rate,
            packets: traffic.packets,
            flow_size: traffic.flow_size,
            burst: traffic.burst,
            packet_size: traffic.packet_size,
            delay: segment.delay,
            propagation: segment.propagation,
            loss: segment.loss,
            reorder: segment.reorder,
            clock: segment.clock,
            reverse: traffic.reverse,
        }
    }

    fn print(&self, written: &Written, truth: &Truth) -> anyhow::Result<()> {
        let document = Document::new(self.seed, written, truth);
        match self.format {
            Format::Human => output::text(&summary(written, truth)),
            Format::Json => output::json(&document),
            Format::Jsonl => output::jsonl([document]),
            Format::Csv => output::csv([document]),
        }
    }
}

/// What was written, for programs.
#[derive(Serialize)]
struct Document<'a> {
    upstream: &'a Path,
    downstream: &'a Path,
    truth: &'a Path,
    packets: u64,
    flows: usize,
    lost: Option<u64>,
    seed: u64,
}

impl<'a> Document<'a> {
    fn new(seed: u64, written: &'a Written, truth: &Truth) -> Self {
        Self {
            upstream: &written.upstream,
            downstream: &written.downstream,
            truth: &written.truth,
            packets: truth.all.evidence.packets,
            flows: written.flows,
            lost: truth.all.evidence.lost,
            seed,
        }
    }
}

/// What was written, for people.
fn summary(written: &Written, truth: &Truth) -> String {
    let all = &truth.all;
    let evidence = &all.evidence;
    let lasted = units::duration((all.span.end - all.span.start).as_nanos() as f64);
    let mut lines = vec![format!(
        "packets   {} of {} flows in {lasted}",
        units::count(evidence.packets),
        units::count(written.flows as u64),
    )];
    if let Some(lost) = evidence.lost {
        let share = units::percent(lost as f64 / evidence.packets.max(1) as f64);
        lines.push(format!("lost      {} ({share})", units::count(lost)));
    }
    lines.push(format!("delay     {}", delay_words(all.delay.as_ref())));
    if let Some(returning) = &truth.returning {
        let packets = units::count(returning.evidence.packets);
        lines.push(format!(
            "return    {packets} packets, {}",
            delay_words(returning.delay.as_ref())
        ));
    }
    for (label, path) in
        [("wrote", &written.upstream), ("", &written.downstream), ("", &written.truth)]
    {
        lines.push(format!("{label:<9} {}", path.display()));
    }
    lines.join("\n") + "\n"
}

fn delay_words(delay: Option<&twixt_model::DelayEstimate>) -> String {
    let Some(delay) = delay else { return "– every packet was lost".to_owned() };
    let mut words = format!("mean {}", units::duration(delay.mean_ns()));
    if let Some(deviation_ns) = delay.deviation_ns {
        words += &format!(", deviation {}", units::duration(deviation_ns));
    }
    if let Some(order) = delay.order {
        words += &format!(", p99 {}", units::duration(order.p99.as_nanos() as f64));
    }
    words
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        args: Args,
    }

    fn parse(line: &str) -> Result<Args, clap::Error> {
        let words = ["simulate", "--out", "directory"].into_iter().chain(line.split_whitespace());
        Command::try_parse_from(words).map(|command| command.args)
    }

    #[track_caller]
    fn check_refused(line: &str, expected: &str) {
        let error = parse(line).err().expect("it makes no sense");
        assert_eq!(error.exit_code(), 2);
        assert!(error.to_string().contains(expected), "{error}");
    }

    #[test]
    fn nothing_said_means_the_defaults() {
        assert_eq!(parse("").unwrap().config(), Config::default());
    }

    #[test]
    fn every_option_reaches_the_simulation() {
        let line = "--seed 2 --flows 3 --rate 4pps --packets 5 --flow-size fixed:packets=6 \
                    --burst length=7,gap=8us --packet-size fixed:bytes=99 --delay constant:10us \
                    --propagation 11us --loss uniform:0.12 --reorder uniform:rate=0.13,extent=14us \
                    --clock offset=15us,skew=16ppm --reverse constant:17us";
        let config = Config {
            seed: 2,
            start: Config::default().start,
            flows: 3,
            rate: PacketRate(4),
            packets: Some(5),
            flow_size: "fixed:packets=6".parse().unwrap(),
            burst: Burst { length: 7.0, gap: Nanoseconds(8_000) },
            packet_size: "fixed:bytes=99".parse().unwrap(),
            delay: DelayModel::Constant { delay: Nanoseconds(10_000) },
            propagation: Nanoseconds(11_000),
            loss: "uniform:0.12".parse().unwrap(),
            reorder: "uniform:rate=0.13,extent=14us".parse().unwrap(),
            clock: "offset=15us,skew=16ppm".parse().unwrap(),
            reverse: "constant:17us".parse().unwrap(),
        };
        assert_eq!(parse(line).unwrap().config(), config);
    }

    #[test]
    fn what_makes_no_sense_is_a_usage_error() {
        check_refused("--delay gaussian:1ms", "unknown model \"gaussian\"; known are");
        check_refused("--delay droptail:drain=1gbit", "queue is missing");
        check_refused("--loss uniform:2", "between 0 and 1");
        check_refused("--rate 5", "no known unit");
        check_refused("--arrivals real.pcap --flows 7", "cannot be used with");
    }
}
