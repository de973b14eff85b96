//! Where the machine is not Linux: nothing is known.

use std::io;
use std::path::Path;

use super::Adapter;

pub(super) fn interface_names() -> io::Result<Vec<String>> {
    Err(io::ErrorKind::Unsupported.into())
}

pub(super) fn free_bytes(_: &Path) -> io::Result<u64> {
    Err(io::ErrorKind::Unsupported.into())
}

pub(super) fn look_at(_: &str) -> io::Result<Adapter> {
    Err(io::ErrorKind::Unsupported.into())
}
