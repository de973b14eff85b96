//! Runs trials on all cores, and keeps what they measured so that an interrupted run goes on.

use std::collections::VecDeque;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use anyhow::Context;
use indicatif::{ProgressBar, ProgressStyle};
use twixt_evaluate::{Experiment, Setting, Size, Summary, Trial};

use super::Evaluated;

/// Where trials are kept, within the folder for output.
const FOLDER: &str = "trials";

/// Every trial of the experiments, those that are kept without running them again.
pub(super) fn run(
    experiments: &[&'static Experiment],
    size: Size,
    seeds: Option<u64>,
    out: Option<&Path>,
) -> anyhow::Result<Vec<Evaluated>> {
    let kept = out.map(|folder| KeptTrials::open(&folder.join(FOLDER), size)).transpose()?;
    let seeds_of = |experiment: &Experiment| seeds.unwrap_or_else(|| experiment.seeds_of(size));
    let mut work: VecDeque<(usize, u64)> = VecDeque::new();
    for (index, experiment) in experiments.iter().enumerate() {
        work.extend((1..=seeds_of(experiment)).map(|seed| (index, seed)));
    }
    let bar = bar(work.len() as u64);
    let work = Mutex::new(work);
    let found: Mutex<Vec<(usize, u64, Trial)>> = Mutex::default();
    let next = || work.lock().expect("no worker panics with the lock").pop_front();
    let worker = || -> anyhow::Result<()> {
        while let Some((index, seed)) = next() {
            let trial = trial(experiments[index], Setting { seed, size, foreign }, kept.as_ref())?;
            found.lock().expect("no worker panics with the lock").push((index, seed, trial));
            bar.inc(1);
        }
        Ok(())
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(worker)).collect();
        workers.into_iter().try_for_each(|worker| worker.join().expect("trials do not panic"))
    })?;
    bar.finish_and_clear();
    let mut found = found.into_inner().expect("no worker panics with the lock");
    // The sum of floats depends on their order: that of the seeds, not that of the threads.
    found.sort_by_key(|&(index, seed, _)| (index, seed));
    let of_experiment = |(index, &experiment): (usize, &&'static Experiment)| {
        let trials = found.iter().filter(|(other, _, _)| *other == index);
        let trials: Vec<Trial> = trials.map(|(_, _, trial)| trial.clone()).collect();
        Evaluated { experiment, seeds: seeds_of(experiment), summary: Summary::of(&trials) }
    };
    Ok(experiments.iter().enumerate().map(of_experiment).collect())
}

fn trial(
    experiment: &Experiment,
    setting: Setting,
    kept: Option<&KeptTrials>,
) -> anyhow::Result<Trial> {
    if let Some(trial) = kept.and_then(|kept| kept.read(experiment, setting.seed)) {
        return Ok(trial);
    }
    let trial = (experiment.trial)(setting);
    if let Some(kept) = kept {
        kept.write(experiment, setting.seed, &trial)?;
    }
    Ok(trial)
}

/// Files of others: topologies of real networks, which are not ours to hand on.
fn foreign(path: &str) -> Option<Vec<u8>> {
    let folder = std::env::var_os("TWIXT_SHARED").unwrap_or_else(|| "../shared".into());
    fs::read(Path::new(&folder).join(path)).ok()
}

fn bar(trials: u64) -> ProgressBar {
    let style = ProgressStyle::with_template("{bar:40} {pos}/{len} trials {eta}");
    ProgressBar::new(trials).with_style(style.expect("the template is well-formed"))
}

/// Trials of earlier runs of this very program.
struct KeptTrials {
    folder: PathBuf,
    size: Size,
    /// Another program measures something else.
    program: String,
}

impl KeptTrials {
    fn open(folder: &Path, size: Size) -> anyhow::Result<Self> {
        fs::create_dir_all(folder)
            .with_context(|| format!("cannot create directory {}", folder.display()))?;
        let executable = std::env::current_exe().and_then(fs::metadata);
        let stamp = executable.and_then(|metadata| Ok((metadata.len(), metadata.modified()?)));
        let program = format!("{} {stamp:?}", env!("CARGO_PKG_VERSION"));
        Ok(Self { folder: folder.to_owned(), size, program })
    }

    fn path(&self, experiment: &Experiment, seed: u64) -> PathBuf {
        self.folder.join(format!("{}-{}-{seed}.json", experiment.name, self.size.name()))
    }

    /// What cannot be read is measured again.
    fn read(&self, experiment: &Experiment, seed: u64) -> Option<Trial> {
        let text = fs::read_to_string(self.path(experiment, seed)).ok()?;
        let (program, trial): (String, Trial) = serde_json::from_str(&text).ok()?;
        (program == self.program).then_some(trial)
    }

    fn write(&self, experiment: &Experiment, seed: u64, trial: &Trial) -> anyhow::Result<()> {
        let path = self.path(experiment, seed);
        let text = serde_json::to_string(&(&self.program, trial))?;
        fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
    }
}
