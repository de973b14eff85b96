//! Many small records that are read in order. Those that exceed a bound of memory lie in sorted runs in a
//! file, and are merged when they are read: the same records in the same order, wherever they are.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::iter::Peekable;
use std::marker::PhantomData;
use std::sync::Arc;

use crate::spill::{SpillFile, SpillPlace};

/// Records are sorted and written by this part of the memory that they may take.
const RUN_PART: usize = 4;
/// Each run is read by so many bytes.
const READ_BYTES: usize = 32 << 10;

/// A small record. Those that are equal cannot be told apart.
pub(crate) trait Record: Copy + Ord {
    /// Bytes of one that is written.
    const BYTES: usize;

    /// Appends it.
    fn write(&self, out: &mut Vec<u8>);

    /// Reads it back from [`BYTES`](Self::BYTES).
    fn read(bytes: &[u8]) -> Self;

    /// Sorts many.
    fn sort(records: &mut Vec<Self>) {
        records.sort_unstable();
    }
}

/// Records in any order.
#[derive(Clone, Debug)]
pub(crate) struct Pile<T> {
    recent: Vec<T>,
    runs: Runs<T>,
    place: Option<Arc<dyn SpillPlace>>,
    in_memory_max: usize,
}

/// Records in order.
#[derive(Clone, Debug)]
pub(crate) struct Sorted<T> {
    recent: Vec<T>,
    runs: Runs<T>,
    in_memory_max: usize,
}

/// Sorted runs in a file.
#[derive(Clone, Debug)]
struct Runs<T> {
    file: Option<Arc<dyn SpillFile>>,
    runs: Vec<Run>,
    count: usize,
    record: PhantomData<T>,
}

#[derive(Clone, Copy, Debug)]
struct Run {
    offset: u64,
    records: usize,
}

impl<T: Record> Pile<T> {
    /// Empty. Without a place, all of it stays in memory.
    pub(crate) fn new(place: Option<&Arc<dyn SpillPlace>>) -> Self {
        let runs = Runs { file: None, runs: Vec::new(), count: 0, record: PhantomData };
        let records = |place: &Arc<dyn SpillPlace>| place.memory_bytes() / size_of::<T>();
        let in_memory_max = place.map_or(usize::MAX, records);
        Self { recent: Vec::new(), runs, place: place.cloned(), in_memory_max }
    }

    /// Adds a record.
    #[inline]
    pub(crate) fn push(&mut self, record: T) {
        self.recent.push(record);
        if self.recent.len() >= self.in_memory_max {
            self.spill();
        }
    }

    /// Records that were read back.
    pub(crate) fn of(records: Vec<T>) -> Self {
        Self { recent: records, ..Self::new(None) }
    }

    /// Adds all records of another.
    pub(crate) fn extend(&mut self, other: &Self) {
        if other.is_in_memory() {
            return other.recent.iter().for_each(|record| self.push(*record));
        }
        other.clone().sorted().iter().for_each(|record| self.push(record));
    }

    /// Takes all records into memory.
    pub(crate) fn in_memory(&mut self) -> &mut Vec<T> {
        if !self.is_in_memory() {
            let empty = Self { in_memory_max: usize::MAX, ..Self::new(None) };
            self.recent = std::mem::replace(self, empty).sorted().iter().collect();
        }
        &mut self.recent
    }

    /// How many records there are.
    pub(crate) fn len(&self) -> usize {
        self.runs.count + self.recent.len()
    }

    /// Those that are in memory, in the order in which they came.
    pub(crate) fn recent(&mut self) -> &mut Vec<T> {
        &mut self.recent
    }

    /// All records in the order in which they came, if they are in memory.
    pub(crate) fn as_slice(&self) -> Option<&[T]> {
        self.is_in_memory().then_some(&self.recent)
    }

    /// Whether all of it is in memory.
    pub(crate) fn is_in_memory(&self) -> bool {
        self.runs.runs.is_empty()
    }

    /// Where records go that do not stay in memory.
    pub(crate) const fn place(&self) -> Option<&Arc<dyn SpillPlace>> {
        self.place.as_ref()
    }

    /// All records in order.
    pub(crate) fn sorted(self) -> Sorted<T> {
        let Self { mut recent, runs, in_memory_max, .. } = self;
        T::sort(&mut recent);
        Sorted { recent, runs, in_memory_max }
    }

    /// The one at this place of the order, if there are so many.
    pub(crate) fn nth(mut self, index: usize) -> Option<T> {
        match self.is_in_memory() {
            true if index >= self.recent.len() => None,
            true => Some(*self.recent.select_nth_unstable(index).1),
            false => self.sorted().iter().nth(index),
        }
    }

    #[cold]
    #[inline(never)]
    fn spill(&mut self) {
        let Some(place) = &self.place else { return };
        let file = self.runs.file.get_or_insert_with(|| place.file());
        let run_max = (place.memory_bytes() / RUN_PART / size_of::<T>()).max(1);
        let (mut bytes, mut sorting) = (Vec::new(), Vec::with_capacity(run_max));
        for part in self.recent.chunks(run_max) {
            sorting.clear();
            sorting.extend_from_slice(part);
            T::sort(&mut sorting);
            bytes.clear();
            sorting.iter().for_each(|record| record.write(&mut bytes));
            let records = part.len();
            self.runs.count += records;
            self.runs.runs.extend(file.append(&bytes).map(|offset| Run { offset, records }));
        }
        self.recent = Vec::with_capacity(run_max);
        self.in_memory_max = run_max;
    }
}

impl<T: Record> Sorted<T> {
    /// How many records there are.
    pub(crate) fn len(&self) -> usize {
        self.runs.count + self.recent.len()
    }

    /// All of them, if they are in memory.
    pub(crate) fn as_slice(&self) -> Option<&[T]> {
        self.runs.runs.is_empty().then_some(&self.recent)
    }

    /// All of them in order.
    pub(crate) fn iter(&self) -> Merge<'_, T> {
        self.merge(0, |_| 0)
    }

    /// All from the first on that is no less than this one.
    pub(crate) fn iter_from(&self, least: &T) -> Merge<'_, T> {
        let start = self.recent.partition_point(|record| record < least);
        self.merge(start, |run| self.runs.first_in(run, least))
    }

    /// Consecutive records that have the same of something, which the order goes by first.
    pub(crate) fn parts<K: PartialEq, F: Fn(&T) -> K>(&self, key: F) -> Parts<'_, T, F> {
        Parts { all: self, left: &self.recent, merge: self.iter().peekable(), key }
    }

    fn merge(&self, start: usize, first: impl Fn(&Run) -> usize) -> Merge<'_, T> {
        let mut runs: Vec<ReadRun<'_, T>> = Vec::with_capacity(self.runs.runs.len());
        for run in &self.runs.runs {
            let Some(file) = self.runs.file.as_deref() else { break };
            let skipped = first(run);
            let offset = run.offset + (skipped * T::BYTES) as u64;
            runs.push(ReadRun::new(file, offset, run.records - skipped));
        }
        let next = |(index, run): (usize, &mut ReadRun<'_, T>)| Some(Reverse((run.next()?, index)));
        let heap = runs.iter_mut().enumerate().filter_map(next).collect();
        Merge { recent: self.recent[start..].iter(), runs, heap }
    }
}

impl<T: Record> Runs<T> {
    /// How many records of a run are less than this one.
    fn first_in(&self, run: &Run, least: &T) -> usize {
        let Some(file) = self.file.as_deref() else { return 0 };
        let (mut low, mut high) = (0, run.records);
        let mut bytes = vec![0; T::BYTES];
        while low < high {
            let middle = low + (high - low) / 2;
            let is_read = file.read_at(run.offset + (middle * T::BYTES) as u64, &mut bytes);
            match is_read && T::read(&bytes) < *least {
                true => low = middle + 1,
                false => high = middle,
            }
        }
        low
    }
}

/// Records of memory and of runs, in order.
pub(crate) struct Merge<'a, T> {
    recent: std::slice::Iter<'a, T>,
    runs: Vec<ReadRun<'a, T>>,
    /// The next record of each run.
    heap: BinaryHeap<Reverse<(T, usize)>>,
}

impl<T: Record> Iterator for Merge<'_, T> {
    type Item = T;

    #[inline]
    fn next(&mut self) -> Option<T> {
        if self.runs.is_empty() {
            return self.recent.next().copied();
        }
        self.next_of_runs()
    }
}

impl<T: Record> Merge<'_, T> {
    #[inline(never)]
    fn next_of_runs(&mut self) -> Option<T> {
        let Some(mut first) = self.heap.peek_mut() else { return self.recent.next().copied() };
        let Reverse((record, index)) = *first;
        if let Some(recent) = self.recent.as_slice().first()
            && *recent <= record
        {
            return self.recent.next().copied();
        }
        match self.runs[index].next() {
            Some(next) => *first = Reverse((next, index)),
            None => drop(PeekMut::pop(first)),
        }
        Some(record)
    }
}

/// Parts of sorted records, one after the other.
pub(crate) struct Parts<'a, T: Record, F> {
    all: &'a Sorted<T>,
    /// If all are in memory: those that are left.
    left: &'a [T],
    /// If not.
    merge: Peekable<Merge<'a, T>>,
    key: F,
}

/// Consecutive records, which can be read more than once.
pub(crate) enum Part<'a, T: Record> {
    /// In memory.
    Here(Cow<'a, [T]>),
    /// So many from a first one on, too many for memory.
    There { all: &'a Sorted<T>, first: T, count: usize },
}

impl<'a, T: Record, K: PartialEq, F: Fn(&T) -> K> Parts<'a, T, F> {
    /// The next part, if it has this key.
    pub(crate) fn next_if(&mut self, wanted: &K) -> Option<Part<'a, T>> {
        if self.all.as_slice().is_some() {
            let next = self.left.first()?;
            if (self.key)(next) != *wanted {
                return None;
            }
            let end = self.left.iter().take_while(|record| (self.key)(record) == *wanted).count();
            let (part, left) = self.left.split_at(end);
            self.left = left;
            return Some(Part::Here(Cow::Borrowed(part)));
        }
        let first = self.merge.next_if(|record| (self.key)(record) == *wanted)?;
        let mut part = vec![first];
        while let Some(record) = self.merge.next_if(|record| (self.key)(record) == *wanted) {
            part.push(record);
            if part.len() >= self.all.in_memory_max {
                return Some(self.large(first, part.len(), wanted));
            }
        }
        Some(Part::Here(Cow::Owned(part)))
    }

    fn large(&mut self, first: T, mut count: usize, wanted: &K) -> Part<'a, T> {
        while self.merge.next_if(|record| (self.key)(record) == *wanted).is_some() {
            count += 1;
        }
        Part::There { all: self.all, first, count }
    }

    /// What records of the next part have in common.
    pub(crate) fn peek(&mut self) -> Option<K> {
        match self.all.as_slice() {
            Some(_) => self.left.first().map(&self.key),
            None => self.merge.peek().map(&self.key),
        }
    }

    /// The next part, with what its records have in common.
    pub(crate) fn next(&mut self) -> Option<(K, Part<'a, T>)> {
        let key = self.peek()?;
        let part = self.next_if(&key)?;
        Some((key, part))
    }
}

impl<T: Record> Part<'_, T> {
    /// Without records.
    pub(crate) const fn none() -> Self {
        Self::Here(Cow::Borrowed(&[]))
    }

    /// How many records there are.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Here(records) => records.len(),
            Self::There { count, .. } => *count,
        }
    }

    /// All of them in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = T> {
        let (here, there) = match self {
            Self::Here(records) => (&records[..], None),
            Self::There { all, first, count } => (&[][..], Some(all.iter_from(first).take(*count))),
        };
        here.iter().copied().chain(there.into_iter().flatten())
    }
}

/// A run that is being read.
struct ReadRun<'a, T> {
    file: &'a dyn SpillFile,
    offset: u64,
    /// Records that are not in the buffer.
    left: usize,
    buffer: Vec<u8>,
    /// Where the next record is in the buffer.
    at: usize,
    record: PhantomData<T>,
}

impl<'a, T: Record> ReadRun<'a, T> {
    fn new(file: &'a dyn SpillFile, offset: u64, left: usize) -> Self {
        Self { file, offset, left, buffer: Vec::new(), at: 0, record: PhantomData }
    }

    #[inline]
    fn next(&mut self) -> Option<T> {
        if self.at == self.buffer.len() && !self.fill() {
            return None;
        }
        let record = T::read(&self.buffer[self.at..self.at + T::BYTES]);
        self.at += T::BYTES;
        Some(record)
    }

    #[cold]
    #[inline(never)]
    fn fill(&mut self) -> bool {
        let records = (READ_BYTES / T::BYTES).max(1).min(self.left);
        self.buffer.resize(records * T::BYTES, 0);
        self.at = 0;
        if records == 0 || !self.file.read_at(self.offset, &mut self.buffer) {
            (self.left, self.buffer) = (0, Vec::new());
            return false;
        }
        self.offset += self.buffer.len() as u64;
        self.left -= records;
        true
    }
}
