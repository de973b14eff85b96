//! What two captures, or two recordings of epochs, tell about the segment between them.
//!
//! A capture is read twice: first to survey what the two have in common, then to measure that. The second
//! read is one of memory where enough was kept of the packets.
//!
//! Nothing is printed here. What a person may want to know while captures are read goes to a
//! [`Reporter`]; what cannot be done is an [`OfflineError`].

mod adding;
mod beside;
mod capture;
mod chosen;
mod completeness;
mod correction;
mod directory;
mod epoch_file;
mod epochs;
mod error;
mod file_pattern;
mod first_read;
mod flow_list;
mod measured;
mod pairs;
mod parts;
mod plan;
mod reading;
mod recollection;
mod recorded;
mod recorded_sizes;
mod report;
mod second_read;
mod segmentation;
mod selection;
mod shortening;
mod side_by_side;
mod spill;
mod split;
mod stamps;
mod streams;
mod two_captures;

pub use beside::{Beside, ClockUse, KeptBeside};
pub use capture::{Capture, dropped_in, is_read_once, is_standard_input};
pub use chosen::ChosenAlgorithm;
pub use epoch_file::{is_epoch_file, read_epochs};
pub use error::{ErrorKind, OfflineError};
pub use flow_list::{FlowList, FlowSizes, NamedFlow};
pub use measured::{DirectionFound, Files, Measured, PairMeasured, segment};
pub use pairs::{Concluded, EpochLeftOut};
pub use plan::{DigestPlan, Plan, Recognition, Traffic};
pub use recorded::{Recordings, rough_delay};
pub use recorded_sizes::RecordedSizes;
pub use report::{Pass, Progress, Remark, Reporter};
pub use split::Split;
pub use streams::rtp_streams;
pub use two_captures::{epoch_files, one_read, two_reads, two_reads_within};
