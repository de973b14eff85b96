//! Which records the full files of a day have, in bounded memory.
//!
//! Epochs of a stream come in order, but for a few: most that are asked for lie behind all that a
//! full file has of their stream. For the others all places of one file at a time are remembered.

use std::collections::HashMap;

use super::day_writer::each_record;
use crate::day_files::DayFiles;
use crate::disk::SharedDisk;
use crate::error::StoreError;

/// The full files of a day.
#[derive(Debug)]
pub(super) struct Earlier {
    files: Vec<(DayFiles, Option<Ranges>)>,
    /// Places in one of them.
    loaded: Option<(usize, Places)>,
}

/// By hash of the stream and epoch.
type Places = HashMap<(u64, i64), u64>;
/// By hash of the stream: first and last epoch.
type Ranges = HashMap<u64, (i64, i64)>;

impl Earlier {
    pub(super) fn new(files: Vec<DayFiles>) -> Self {
        Self { files: files.into_iter().map(|files| (files, None)).collect(), loaded: None }
    }

    /// Adds one that has become full.
    pub(super) fn add(&mut self, files: DayFiles) {
        self.files.push((files, None));
    }

    /// Where a record may be, by hash of its stream and epoch: at most one place in each file.
    pub(super) fn places_of(
        &mut self,
        disk: &SharedDisk,
        record: (u64, i64),
    ) -> Result<Vec<(DayFiles, u64)>, StoreError> {
        let mut places = Vec::new();
        for number in (0..self.files.len()).rev() {
            if self.may_hold(disk, number, record)? {
                let place = self.load(disk, number)?.get(&record).copied();
                places.extend(place.map(|place| (self.files[number].0.clone(), place)));
            }
        }
        Ok(places)
    }

    fn may_hold(
        &mut self,
        disk: &SharedDisk,
        number: usize,
        (stream, epoch): (u64, i64),
    ) -> Result<bool, StoreError> {
        let (files, known) = &mut self.files[number];
        let ranges = match known.take() {
            Some(ranges) => ranges,
            None => each_record(disk, files, |records| ranges_of(records))?,
        };
        let range = ranges.get(&stream).copied();
        *known = Some(ranges);
        Ok(range.is_some_and(|(first, last)| (first..=last).contains(&epoch)))
    }

    fn load(&mut self, disk: &SharedDisk, number: usize) -> Result<&Places, StoreError> {
        let loaded = match self.loaded.take() {
            Some(loaded) if loaded.0 == number => loaded,
            _ => (number, each_record(disk, &self.files[number].0, |records| records.collect())?),
        };
        Ok(&self.loaded.insert(loaded).1)
    }
}

fn ranges_of(records: &mut dyn Iterator<Item = ((u64, i64), u64)>) -> Ranges {
    let mut ranges = Ranges::new();
    for ((stream, epoch), _) in records {
        let (first, last) = ranges.entry(stream).or_insert((epoch, epoch));
        (*first, *last) = (epoch.min(*first), epoch.max(*last));
    }
    ranges
}
