//! A disk in memory that fails on purpose: for tests and simulations. One seed, one story.
//!
//! What was not synced may be lost or torn when the machine crashes, names of files as well as
//! their content. The disk may fill up, turn read-only, refuse to open more files, read less than
//! asked for, fail with I/O errors and flip bits. After a failed sync the written bytes can be read
//! until the next crash but never reach the disk, and the next sync succeeds: so Linux behaves.
//!
//! Changes of the names in one folder reach the disk in their order, as journals of file systems
//! see to; a crash may cut them off at any of them.

mod mount;
mod tree;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use twixt_model::mix;

use super::SharedDisk;
use mount::Mount;
use tree::Tree;

/// Kinds of operations that can be made to fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Opening and listing.
    Open,
    /// Reading from a file.
    Read,
    /// Writing to a file, cutting it, renaming and deleting.
    Write,
    /// Syncing a file.
    Sync,
    /// Syncing a folder.
    SyncFolder,
}

impl Operation {
    /// Every kind.
    pub const ALL: [Self; 5] = [Self::Open, Self::Read, Self::Write, Self::Sync, Self::SyncFolder];
}

/// What goes wrong at present. By default nothing does.
#[derive(Clone, Debug, Default)]
pub struct Faults {
    /// Bytes that have room; `None`: any number.
    pub bytes_max: Option<u64>,
    /// Nothing can be changed.
    pub is_read_only: bool,
    /// Files that may be open at the same time; `None`: any number.
    pub open_files_max: Option<usize>,
    /// Reads give fewer bytes than asked for.
    pub has_short_reads: bool,
    /// Operations that fail with an I/O error: one in so many, drawn at random. 1: each.
    pub failing: Vec<(Operation, u64)>,
    /// After so many operations all others fail, as if the process had ended there.
    pub stops_after: Option<u64>,
}

/// A disk. Clones are the same disk.
#[derive(Clone, Debug)]
pub struct SimulatedDisk {
    state: Arc<Mutex<State>>,
}

#[derive(Debug)]
struct State {
    tree: Tree,
    faults: Faults,
    random: Random,
    /// Mounts of earlier boots are dead.
    boot: u64,
    open_files: usize,
    handles: u64,
    operations: u64,
}

/// A sequence of numbers that depends on the seed alone.
#[derive(Clone, Copy, Debug)]
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// Below a bound that is not 0.
    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }
}

impl SimulatedDisk {
    /// An empty disk. Whatever is random about it follows from the seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let state = State {
            tree: Tree::default(),
            faults: Faults::default(),
            random: Random(seed),
            boot: 0,
            open_files: 0,
            handles: 0,
            operations: 0,
        };
        Self { state: Arc::new(Mutex::new(state)) }
    }

    /// The disk as a process has it, until that is killed or the machine crashes.
    #[must_use]
    pub fn mount(&self) -> SharedDisk {
        let boot = self.lock().boot;
        Arc::new(Mount::new(Arc::clone(&self.state), boot))
    }

    /// The disk as it is at present, for whoever checks it: nothing goes wrong, and nothing of it
    /// counts as an operation.
    #[must_use]
    pub fn view(&self) -> SharedDisk {
        Arc::new(Mount::view(Arc::clone(&self.state)))
    }

    /// A copy of what is durable: what a crash leaves if it takes all that it may.
    #[must_use]
    pub fn durable_copy(&self) -> Self {
        let state = State {
            tree: self.lock().tree.durable_copy(),
            faults: Faults::default(),
            random: Random(0),
            boot: 0,
            open_files: 0,
            handles: 0,
            operations: 0,
        };
        Self { state: Arc::new(Mutex::new(state)) }
    }

    /// Sets what goes wrong from now on.
    pub fn set_faults(&self, faults: Faults) {
        self.lock().faults = faults;
    }

    /// All processes end. What they wrote stays, synced or not.
    pub fn kill(&self) {
        let mut state = self.lock();
        state.boot += 1;
        state.open_files = 0;
        state.faults.stops_after = None;
        state.tree.unlock_all();
    }

    /// The machine dies and starts again: what was not synced is kept, lost or torn at random.
    pub fn crash(&self) {
        self.kill();
        let state = &mut *self.lock();
        state.tree.crash(&mut state.random);
    }

    /// Flips one bit of a file, on the disk and in memory.
    ///
    /// # Panics
    /// When the file has no such byte.
    pub fn flip_bit(&self, path: &Path, bit: u64) {
        self.lock().tree.flip_bit(path, bit).expect("the file has this byte");
    }

    /// Flips one bit of one file at random; which file, and which bit. `None` if all are empty.
    pub fn rot(&self) -> Option<(PathBuf, u64)> {
        let mut state = self.lock();
        let files = state.tree.files();
        let bits: u64 = files.iter().map(|(_, bytes)| bytes * 8).sum();
        let mut bit = (bits > 0).then(|| state.random.below(bits))?;
        for (path, bytes) in files {
            if bit < bytes * 8 {
                state.tree.flip_bit(&path, bit);
                return Some((path, bit));
            }
            bit -= bytes * 8;
        }
        None
    }

    /// Paths of all files, in order, with their lengths.
    #[must_use]
    pub fn files(&self) -> Vec<(PathBuf, u64)> {
        self.lock().tree.files()
    }

    /// Operations so far: what [`Faults::stops_after`] counts.
    #[must_use]
    pub fn operations(&self) -> u64 {
        self.lock().operations
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
