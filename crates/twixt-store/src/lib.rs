//! An append-only log of records on disk, for recordings, spools and collectors.
//!
//! A record is opaque bytes with a key (the point and a stream's name), an interval of time and an
//! epoch number. The log knows no algorithm and never looks into a record. Files are per point and
//! day, old ones are deleted whole, and damage costs the records it hit and no others. The format
//! is in `format.rs`.
//!
//! ```
//! use twixt_model::{Epoch, Span, Timestamp};
//! use twixt_store::{Durability, EpochEntry, Log, Options, Query};
//!
//! let folder = tempfile::tempdir()?;
//! let log = Log::open(folder.path(), Options::default());
//! let span = Span::at(Timestamp::from_nanos(1_700_000_000_000_000_000));
//! let entry = EpochEntry { stream: "lda", span, epoch: Epoch(28_333_333) };
//! log.writer("paris")?.append(&entry, b"what paris saw", Durability::Synced)?;
//!
//! let mut scan = log.scan(Query::between(span).at_point("paris"))?;
//! assert_eq!(scan.next().expect("it was stored").payload, b"what paris saw");
//! assert!(scan.next().is_none() && scan.report().is_whole());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod compress;
mod day;
mod day_files;
mod disk;
mod error;
mod format;
mod index;
mod lock;
mod log;
mod name;
mod open_files;
mod payloads;
mod quarantine;
mod query;
mod queue;
mod report;
mod retention;
mod scan;
mod sections;
mod walk;
mod writer;

pub use compress::LEVEL_DEFAULT;
pub use day::{Day, ParseDayError};
#[cfg(any(test, feature = "simulated"))]
pub use disk::simulated::{Faults, Operation, SimulatedDisk};
pub use disk::{
    About, Access, Disk, DiskFile, RealDisk, Replacement, SharedDisk, is_folder, make_folders,
    read_file, real_disk, remove_if_there, replace_file,
};
pub use error::StoreError;
pub use format::{RECORD_BYTES_MAX, STREAM_BYTES_MAX};
pub use lock::{FolderLock, LockError};
pub use log::{Log, Options};
pub use name::{folder_of as folder_of_point, point_of as point_of_folder};
pub use open_files::raise_open_files_max;
pub use payloads::Payloads;
pub use query::{Depth, Found, Query};
pub use queue::{CHUNKS, Peeked, Queue, QueueCounts, Queued};
pub use report::{Cause, DAMAGES_MAX, Damage, Report};
pub use retention::RemovedDays;
pub use scan::Scan;
pub use sections::{
    SECTION_BYTES_MAX, SECTIONS_MAGIC, SECTIONS_MAX, Section, SectionError, SectionReader,
    SectionWriter,
};
pub use writer::{Appended, Durability, EpochEntry, FILE_RECORDS_MAX, PointWriter};
