//! Which files there are, looked up once for an answer.

use std::collections::BTreeMap;

use twixt_store::Day;

use crate::error::HistoryError;
use crate::file::FileName;
use crate::folders::Folders;
use crate::open::HourPart;
use crate::step::{Hour, Step};

/// The files of a history, as they are found.
#[derive(Debug)]
pub(super) struct Listing<'a> {
    folders: &'a Folders,
    open: Vec<HourPart>,
    days: BTreeMap<(Day, bool), Vec<FileName>>,
}

/// What there is of an hour.
#[derive(Debug, Default)]
pub(super) struct HourListing {
    /// Parts that are not sealed.
    pub(super) open: Vec<HourPart>,
    /// Files of the step that is asked for.
    pub(super) files: Vec<FileName>,
    /// Whether there are minutes and hours, but no epochs.
    pub(super) only_rollups: bool,
}

impl<'a> Listing<'a> {
    pub(super) fn new(folders: &'a Folders) -> Result<Self, HistoryError> {
        Ok(Self { folders, open: folders.open.parts()?, days: BTreeMap::new() })
    }

    /// Looks again.
    pub(super) fn renew(&mut self) -> Result<(), HistoryError> {
        *self = Self::new(self.folders)?;
        Ok(())
    }

    /// What there is of an hour. What is not sealed yet counts, whatever lies beside it: a part may
    /// have been sealed and its log not been deleted.
    pub(super) fn hour(&mut self, hour: Hour, step: Step) -> Result<HourListing, HistoryError> {
        let open: Vec<HourPart> =
            self.open.iter().filter(|part| part.hour == hour).copied().collect();
        let is_sealed =
            |name: &FileName| name.hour == hour && open.iter().all(|part| part.number != name.part);
        let mut of = |is_epochs: bool| -> Result<Vec<FileName>, HistoryError> {
            let names = self.files_of(hour.day(), is_epochs)?;
            Ok(names.iter().filter(|name| is_sealed(name)).copied().collect())
        };
        let files = of(step == Step::Epoch)?;
        let only_rollups = step == Step::Epoch && files.is_empty() && !of(false)?.is_empty();
        Ok(HourListing { open, files, only_rollups })
    }

    fn files_of(&mut self, day: Day, is_epochs: bool) -> Result<&[FileName], HistoryError> {
        let folder = if is_epochs { &self.folders.epochs } else { &self.folders.rollups };
        match self.days.entry((day, is_epochs)) {
            std::collections::btree_map::Entry::Occupied(entry) => Ok(entry.into_mut()),
            std::collections::btree_map::Entry::Vacant(entry) => {
                Ok(entry.insert(folder.files_of(day)?))
            }
        }
    }
}
