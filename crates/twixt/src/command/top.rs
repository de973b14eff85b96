//! `twixt top`: a collector, an interface or a capture on a terminal, until the user quits.

mod answers;
mod asking;
mod terminal;
mod watching;

use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender, TryRecvError, channel, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::bail;
use twixt_model::quantity::Nanoseconds;
use twixt_offline::is_standard_input;
use twixt_top::{News, Palette, TopState, Wanted};

use super::query::estimates::CollectorArgs;
use crate::args::TrafficArgs;
use crate::exit::{Exit, usage};
use crate::frame_input::{FrameSource, LiveArgs, SourceArgs};
use crate::signals::{SecondSignal, Signals};
use terminal::{Pressed, Screen};

/// Segments of a collector, or one point, on a terminal
///
/// Of a collector (--collector): segments with delay, percentiles, loss, their course over time and a
/// heat map; Enter shows the flows of a segment. Of an interface (-i) or a capture (-r): round trips
/// by kind, and the largest flows. ? shows the keys, q quits. Scripts use `twixt query`.
#[derive(clap::Args)]
#[command(group = clap::ArgGroup::new("source").required(true).args(["read", "interface"]))]
pub(crate) struct Args {
    #[command(flatten)]
    source: CollectorArgs,
    /// Capture to read; several times: one capture in several files
    #[arg(short = 'r', long = "read", value_name = "FILE")]
    read: Vec<PathBuf>,
    /// Time that is shown, up to now [default: 60 epochs, at least 1m]
    #[arg(long, value_name = "DURATION", requires = "collector")]
    window: Option<Nanoseconds>,
    /// Time between two questions to the collector
    #[arg(long, value_name = "DURATION", default_value = "2s")]
    interval: Nanoseconds,
    #[command(flatten)]
    live: LiveArgs,
    /// Measure only these packets: host, net, port, portrange, proto, vlan, dscp, and, or, not
    #[arg(value_name = "FILTER", conflicts_with = "collector")]
    filter: Vec<String>,
}

/// Answers that wait for being drawn.
const WAITING_NEWS_MAX: usize = 16;
/// How soon keys and signals are noticed.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// How often the picture is renewed though nothing came: it shows the time.
const DRAW_EVERY: Duration = Duration::from_secs(1);
/// How long the end of a source is waited for.
const END_PATIENCE: Duration = Duration::from_secs(1);
/// Collectors are not asked more often.
const INTERVAL_MIN_NS: i64 = 200_000_000;

pub(crate) fn run(args: Args) -> anyhow::Result<Exit> {
    if !io::stdout().is_terminal() || !io::stdin().is_terminal() {
        return Err(usage(
            "top needs a terminal: use `twixt query --collector URL`, or `twixt rtt` and \
             `twixt heavy` with -i or -r",
        ));
    }
    if args.read.iter().any(|path| is_standard_input(path)) {
        return Err(usage("top reads keys from standard input: -r needs the name of a file"));
    }
    if args.interval.0 < INTERVAL_MIN_NS {
        return Err(usage("--interval must be at least 200ms"));
    }
    let signals = Signals::watch(SecondSignal::Waits)?;
    let (news, came) = sync_channel(WAITING_NEWS_MAX);
    let (wants, wanted) = channel();
    let (state, reading) = start(args, news, wanted)?;
    let exit = show(state, &came, &wants, &signals)?;
    drop(came);
    Ok(reading.map_or(exit, |reading| reading.conclude(exit)))
}

/// A point that is read in a thread of its own.
struct Reading {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<FrameSource>,
}

impl Reading {
    /// Ends it, and reports what is wrong with what was read. What waits for a pipe that is silent ends
    /// with the process.
    fn conclude(self, exit: Exit) -> Exit {
        self.stop.store(true, Ordering::Relaxed);
        let asked = Instant::now();
        while !self.thread.is_finished() && asked.elapsed() < END_PATIENCE {
            thread::sleep(LOOK_EVERY);
        }
        match self.thread.is_finished().then(|| self.thread.join()) {
            Some(Ok(source)) => source.conclude(exit),
            Some(Err(_)) => Exit::Failed,
            None => exit,
        }
    }
}

/// Starts what asks or reads.
fn start(
    args: Args,
    news: SyncSender<News>,
    wanted: Receiver<Wanted>,
) -> anyhow::Result<(TopState, Option<Reading>)> {
    let interval = Duration::from_nanos(args.interval.0.unsigned_abs());
    if let Some(url) = args.source.collector.clone() {
        args.live.check_unused()?;
        let mut asking = asking::Asking::new(&url, &args.source, args.window)?;
        thread::spawn(move || asking.run(interval, &news, &wanted));
        return Ok((TopState::of_collector(url), None));
    }
    let source = SourceArgs::of(args.read, args.live);
    let watching = watching::Point::open(&source, &TrafficArgs::of_filter(args.filter))?;
    let name = watching.name();
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = Arc::clone(&stop);
    let thread = thread::spawn(move || watching.run(interval, &news, &stopped));
    Ok((TopState::of_point(name), Some(Reading { stop, thread })))
}

/// Draws news and takes keys until the user ends it.
fn show(
    mut state: TopState,
    came: &Receiver<News>,
    wants: &Sender<Wanted>,
    signals: &Signals,
) -> anyhow::Result<Exit> {
    let mut screen = Screen::enter()?;
    let palette = match std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty()) {
        true => Palette::Plain,
        false => Palette::Colours,
    };
    let mut wanted = Wanted::default();
    let mut is_over = false;
    loop {
        screen.draw(|frame| twixt_top::draw(frame, &state, now_ns(), palette))?;
        let mut waited = Duration::ZERO;
        let mut is_changed = false;
        while waited < DRAW_EVERY && !is_changed {
            is_changed |= take_news(&mut state, came, &mut is_over)?;
            if signals.came() {
                return Ok(Exit::Interrupted);
            }
            for pressed in screen.pressed(LOOK_EVERY)? {
                is_changed = true;
                match pressed {
                    Pressed::Key(key) if !state.press(key) => return Ok(Exit::Done),
                    Pressed::Key(_) | Pressed::Resized => {}
                    Pressed::Interrupt => return Ok(Exit::Interrupted),
                }
            }
            waited += LOOK_EVERY;
            if state.wanted() != wanted {
                wanted = state.wanted();
                // Whoever reads a point wants nothing.
                let _ = wants.send(wanted.clone());
            }
        }
    }
}

/// Takes what came; whether anything did. What asks ends only if it panics; what reads a point, at the
/// end of it.
fn take_news(
    state: &mut TopState,
    came: &Receiver<News>,
    is_over: &mut bool,
) -> anyhow::Result<bool> {
    let mut is_changed = false;
    while !*is_over {
        match came.try_recv() {
            Ok(news) => {
                *is_over = matches!(&news, News::Point(seen) if seen.ended.is_some());
                state.apply(news, now_ns());
                is_changed = true;
            }
            Err(TryRecvError::Empty) => break,
            Err(TryRecvError::Disconnected) => bail!("nothing is read any more"),
        }
    }
    Ok(is_changed)
}

fn now_ns() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.ok().and_then(|since| i64::try_from(since.as_nanos()).ok()).unwrap_or(0)
}

/// What is said of an error in one line.
fn reason(error: &anyhow::Error) -> String {
    crate::exit::explained(error).replace('\n', " ")
}
