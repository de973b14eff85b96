//! How a file ended.

use std::fmt;

/// How a file ended. Whatever it was, the frames before it were handed over.
///
/// Offsets are bytes from the start of the file; of a compressed file, of what it decompresses to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// After a whole record, as it should.
    Complete,
    /// In the middle of a record. The writer was stopped, or the disk was full; the last frame is
    /// lost and nothing else.
    Truncated {
        /// Where the unfinished record begins.
        offset: u64,
        /// How much of it is there.
        detail: String,
    },
    /// At a record that cannot be one. Nothing after it can be found again; copy the file again if
    /// the original is still there.
    Damaged {
        /// Where the damaged record begins.
        offset: u64,
        /// What is wrong with it.
        detail: String,
    },
    /// The system could not read on. Check disk and network storage.
    Unreadable {
        /// Where the first record begins that could not be read.
        offset: u64,
        /// The system error.
        detail: String,
    },
}

impl Ending {
    /// Whether the file was read to its proper end.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        *self == Self::Complete
    }
}

impl fmt::Display for Ending {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Complete => formatter.write_str("complete"),
            Self::Truncated { offset, detail } => {
                write!(formatter, "cut short at byte {offset}: {detail}")
            }
            Self::Damaged { offset, detail } => {
                write!(formatter, "damaged at byte {offset}: {detail}")
            }
            Self::Unreadable { offset, detail } => {
                write!(formatter, "unreadable from byte {offset} on: {detail}")
            }
        }
    }
}
