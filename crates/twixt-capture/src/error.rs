//! Why a capture cannot be opened.

use std::io;

use crate::CaptureFormat;

/// Why a source of frames cannot be opened. What goes wrong later, in the middle of a file, is an
/// [`crate::Ending`] and takes nothing away.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CaptureError {
    /// There is nothing under that path. Check the spelling.
    #[error("{file}: no such file")]
    Missing {
        /// The path as given.
        file: String,
    },
    /// The path is a directory. Name a file in it.
    #[error("{file}: is a directory; name a capture file in it")]
    Directory {
        /// The path as given.
        file: String,
    },
    /// The file may not be read by this user. Change its permissions, or copy it.
    #[error(
        "{file}: permission denied; captures written by root's tcpdump may be readable by few \
         users"
    )]
    PermissionDenied {
        /// The path as given.
        file: String,
    },
    /// The system could not open or read the file. The source says why.
    #[error("{file}: cannot be read")]
    Unreadable {
        /// The path as given.
        file: String,
        /// The system error.
        source: io::Error,
    },
    /// The file has no bytes at all. The capture was not started, or not yet flushed.
    #[error("{file}: empty, not even a file header; was the capture started?")]
    Empty {
        /// The path as given.
        file: String,
    },
    /// The file is not a capture. Check that it is the one that was meant.
    #[error("{file}: not a pcap or pcapng capture, but {appearance}")]
    NotACapture {
        /// The path as given.
        file: String,
        /// What it looks like.
        appearance: String,
    },
    /// The file is in a format, or compressed in a way, that is not read here. Convert it.
    #[error("{file}: {format} is not supported; {remedy}")]
    UnsupportedFormat {
        /// The path as given.
        file: String,
        /// The name of the format.
        format: &'static str,
        /// How to convert it.
        remedy: &'static str,
    },
    /// The file is of another version of its format. Convert it with `editcap`.
    #[error("{file}: {format} version {major}.{minor} is not supported; convert it with editcap")]
    UnsupportedVersion {
        /// The path as given.
        file: String,
        /// Its format.
        format: CaptureFormat,
        /// First part of the version.
        major: u16,
        /// Second part of the version.
        minor: u16,
    },
    /// The file ends in its header, before any packet. Capture again, or copy it again.
    #[error("{file}: ends after {found} bytes, in the middle of the {format} file header")]
    HeaderTruncated {
        /// The path as given.
        file: String,
        /// Its format.
        format: CaptureFormat,
        /// Bytes that are there.
        found: usize,
    },
    /// An interface cannot be captured.
    #[error(transparent)]
    Live(#[from] crate::LiveError),
    /// The header of the file, or the compression around it, is damaged. Copy it again.
    #[error("{file}: damaged at the beginning: {detail}")]
    HeaderDamaged {
        /// The path as given.
        file: String,
        /// What is wrong.
        detail: String,
    },
}
