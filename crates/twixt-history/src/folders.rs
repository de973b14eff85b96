//! Where things lie in the folder of a history.

use std::path::{Path, PathBuf};

use twixt_store::SharedDisk;

use crate::file::Folder;
use crate::open::OpenFolder;
use crate::table::Table;

/// The folders of a history.
#[derive(Clone, Debug)]
pub(crate) struct Folders {
    pub(crate) disk: SharedDisk,
    /// Rows of epochs, by hour.
    pub(crate) epochs: Folder,
    /// Minutes and hours, by hour.
    pub(crate) rollups: Folder,
    /// Hours that are not sealed.
    pub(crate) open: OpenFolder,
    /// Which series there are.
    pub(crate) catalogue: PathBuf,
}

impl Folders {
    pub(crate) fn new(disk: SharedDisk, folder: &Path, table: Table) -> Self {
        Self {
            epochs: Folder::new(&disk, folder.join("epochs"), table),
            rollups: Folder::new(&disk, folder.join("rollups"), table),
            open: OpenFolder::new(&disk, folder.join("open"), table),
            catalogue: folder.join("series"),
            disk,
        }
    }
}
