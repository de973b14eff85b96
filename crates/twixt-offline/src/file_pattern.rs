//! Captures in several files, as `tcpdump -C` and `-G` write them.

use std::path::{Path, PathBuf};

use twixt_capture::{BatchEnd, CaptureError, CaptureFile};
use twixt_model::Timestamp;

/// The files that a pattern such as `ring-*.pcap` means, at least one. `None` if it is none: a file
/// of just that name is a file.
pub(crate) fn matching(path: &Path) -> Option<Vec<PathBuf>> {
    let text = path.to_str()?;
    if !text.contains(['*', '?', '[']) || path.exists() {
        return None;
    }
    let mut files: Vec<PathBuf> = glob::glob(text).ok()?.filter_map(Result::ok).collect();
    files.retain(|path| path.is_file());
    files.sort_unstable();
    (!files.is_empty()).then_some(files)
}

/// In the order of their first frames; those without any come first.
pub(crate) fn in_order_of_time(files: &[PathBuf]) -> Result<Vec<PathBuf>, CaptureError> {
    let dated: Result<Vec<(Option<Timestamp>, PathBuf)>, CaptureError> =
        files.iter().map(|path| Ok((first_time(path)?, path.clone()))).collect();
    let mut dated = dated?;
    dated.sort_by_key(|(time, _)| *time);
    Ok(dated.into_iter().map(|(_, path)| path).collect())
}

fn first_time(path: &Path) -> Result<Option<Timestamp>, CaptureError> {
    let mut file = CaptureFile::open(path)?;
    let mut first = None;
    while first.is_none()
        && file.read_batch(|frame| first = first.or(Some(frame.time))) == BatchEnd::More
    {}
    Ok(first)
}
