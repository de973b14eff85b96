//! Puts together what several threads of one point saw of the same epoch. Knows no thread, clock or
//! file: parts in, whole epochs out.
//!
//! Threads share the packets of an interface by flow. A synopsis whose
//! [`SplitMerge`](twixt_synopsis::SplitMerge) is exact becomes the very one that a single thread would have
//! made. Others (round trips, reordering, tables of large flows) are equal in expectation only, since
//! each thread has tables of its own: the number of threads is part of their settings.

use std::collections::{BTreeMap, VecDeque};

use twixt_measure::Sealed;
use twixt_model::Epoch;

/// Epochs of one class and synopsis that wait for the parts of slower threads. Beyond, the oldest
/// goes on as it is, torn.
pub const PENDING_EPOCHS_MAX: usize = 64;

/// What one thread of a point sealed at once.
#[derive(Debug)]
pub struct SealedPart {
    /// Which of the threads.
    pub thread: usize,
    /// Grows when the clock is set: epochs of different eras are different ones.
    pub era: u64,
    /// With the index of their synopsis, oldest first; not settled, since packets waited.
    pub sealed: Vec<(usize, Sealed)>,
}

/// Epochs of a point that wait for the parts of other threads.
#[derive(Debug)]
pub struct Merger {
    threads: usize,
    /// By era; those that all threads have left are gone.
    eras: BTreeMap<u64, EraParts>,
    /// The era of each thread.
    reached: Vec<u64>,
    whole: VecDeque<Sealed>,
    counts: MergerCounts,
}

/// What did not go as it should.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MergerCounts {
    /// Parts that came after their epoch had gone on.
    pub late_parts: u64,
    /// Epochs that went on without the parts of all threads.
    pub incomplete: u64,
    /// Parts that do not fit together. Cannot happen to threads of one point.
    pub misfits: u64,
}

type EraParts = BTreeMap<StreamKey, Stream>;

/// A class, and the index of a synopsis.
type StreamKey = (String, usize);

#[derive(Debug)]
struct Stream {
    waiting: BTreeMap<Epoch, (Sealed, usize)>, // at most PENDING_EPOCHS_MAX
    /// The newest that each thread has sealed.
    newest: Vec<Option<Epoch>>,
    /// All up to this one have gone on.
    gone: Option<Epoch>,
}

impl Merger {
    /// Of a point with so many threads.
    #[must_use]
    pub fn new(threads: usize) -> Self {
        Self {
            threads,
            eras: BTreeMap::new(),
            reached: vec![0; threads],
            whole: VecDeque::new(),
            counts: MergerCounts::default(),
        }
    }

    /// Takes what a thread sealed.
    pub fn add(&mut self, part: SealedPart) {
        let SealedPart { thread, era, mut sealed } = part;
        sealed.iter_mut().for_each(|(_, sealed)| sealed.settle());
        if self.threads == 1 {
            self.whole.extend(sealed.into_iter().map(|(_, sealed)| sealed));
            return;
        }
        self.reached[thread] = self.reached[thread].max(era);
        let threads = self.threads;
        let streams = self.eras.entry(era).or_default();
        for (index, sealed) in sealed {
            let key = (sealed.class.clone(), index);
            let stream = streams.entry(key).or_insert_with(|| Stream::new(threads));
            stream.add(thread, sealed, &mut self.counts);
            let ready = stream.newest.iter().copied().min().flatten();
            stream.release(ready, threads, &mut self.whole, &mut self.counts);
        }
        self.leave_eras();
    }

    /// The next epoch that is whole, or as whole as it becomes.
    pub fn poll(&mut self) -> Option<Sealed> {
        self.whole.pop_front()
    }

    /// No more parts will come.
    pub fn finish(&mut self) {
        self.reached.fill(u64::MAX);
        self.leave_eras();
    }

    /// What did not go as it should.
    #[must_use]
    pub const fn counts(&self) -> MergerCounts {
        self.counts
    }

    /// Of eras that every thread has left, nothing more comes.
    fn leave_eras(&mut self) {
        let present = self.reached.iter().copied().min().unwrap_or(0);
        while let Some(entry) = self.eras.first_entry()
            && *entry.key() < present
        {
            for mut stream in entry.remove().into_values() {
                let last = stream.waiting.keys().next_back().copied();
                stream.release(last, self.threads, &mut self.whole, &mut self.counts);
            }
        }
    }
}

impl Stream {
    fn new(threads: usize) -> Self {
        Self { waiting: BTreeMap::new(), newest: vec![None; threads], gone: None }
    }

    fn add(&mut self, thread: usize, sealed: Sealed, counts: &mut MergerCounts) {
        let epoch = sealed.epoch;
        self.newest[thread] = self.newest[thread].max(Some(epoch));
        if self.gone.is_some_and(|gone| epoch <= gone) {
            counts.late_parts += 1;
            return;
        }
        match self.waiting.get_mut(&epoch) {
            None => drop(self.waiting.insert(epoch, (sealed, 1))),
            Some((whole, parts)) => match whole.merge(&sealed) {
                Ok(()) => *parts += 1,
                Err(_) => counts.misfits += 1,
            },
        }
    }

    /// Lets all epochs up to `last` go on, and those that are too many.
    fn release(
        &mut self,
        last: Option<Epoch>,
        threads: usize,
        whole: &mut VecDeque<Sealed>,
        counts: &mut MergerCounts,
    ) {
        while let Some((&oldest, _)) = self.waiting.first_key_value()
            && (last.is_some_and(|last| oldest <= last) || self.waiting.len() > PENDING_EPOCHS_MAX)
        {
            let Some((epoch, (mut sealed, parts))) = self.waiting.pop_first() else { return };
            // A thread that sealed later epochs, but not this one, did not observe it.
            if parts < threads {
                counts.incomplete += 1;
                sealed.torn = true;
            }
            self.gone = Some(epoch);
            whole.push_back(sealed);
        }
    }
}

#[cfg(test)]
mod tests;
