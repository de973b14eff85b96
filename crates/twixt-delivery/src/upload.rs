//! How several epochs become one body: an epoch file, so that a recording can be sent as it lies on
//! disk.

use twixt_measure::{FILE_HEADER, FileError, FileTail, record_header, records_of};

/// Epochs in one body at most: every record takes memory, even an empty one.
pub const UPLOAD_EPOCHS_MAX: usize = 1 << 16;

/// Puts sealed epochs together to one body.
#[derive(Clone, Debug)]
pub struct UploadWriter {
    body: Vec<u8>,
    epochs: usize,
}

impl Default for UploadWriter {
    fn default() -> Self {
        Self { body: FILE_HEADER.to_vec(), epochs: 0 }
    }
}

impl UploadWriter {
    /// No epoch yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the bytes of a sealed epoch.
    ///
    /// # Errors
    /// When they are more than a record may have; nothing changes then.
    pub fn push(&mut self, sealed_bytes: &[u8]) -> Result<(), FileError> {
        self.body.extend_from_slice(&record_header(sealed_bytes)?);
        self.body.extend_from_slice(sealed_bytes);
        self.epochs += 1;
        Ok(())
    }

    /// Epochs added so far.
    #[must_use]
    pub const fn epochs(&self) -> usize {
        self.epochs
    }

    /// Bytes of the body so far.
    #[must_use]
    pub const fn body_bytes(&self) -> usize {
        self.body.len()
    }

    /// The body.
    #[must_use]
    pub fn into_body(self) -> Vec<u8> {
        self.body
    }
}

/// The bytes of every sealed epoch in a body. Unlike a file, a body that is not whole is of no use:
/// its sender still has it, and sends it again.
///
/// # Errors
/// When the body is not an epoch file, or a damaged or unfinished one.
pub fn read_upload(body: &[u8]) -> Result<Vec<&[u8]>, UploadError> {
    let mut records = records_of(body)?;
    let epochs = records.by_ref().take(UPLOAD_EPOCHS_MAX).collect::<Result<Vec<_>, _>>()?;
    match records.tail() {
        FileTail::Clean => Ok(epochs),
        FileTail::Torn { .. } if epochs.len() == UPLOAD_EPOCHS_MAX => Err(UploadError::TooMany),
        FileTail::Torn { bytes } => Err(UploadError::Torn { bytes }),
    }
}

/// Why a body holds no epochs.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UploadError {
    /// It is not an epoch file, or was damaged on its way. Send what `record -w` or an agent wrote.
    #[error(transparent)]
    File(#[from] FileError),
    /// Every epoch takes memory. Send fewer at a time.
    #[error("more than {UPLOAD_EPOCHS_MAX} epochs: send fewer at a time")]
    TooMany,
    /// It was cut short on its way. Send it again.
    #[error("the last {bytes} bytes are an unfinished record")]
    Torn {
        /// How many.
        bytes: u64,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(body: &[u8], expected: Result<&[&[u8]], UploadError>) {
        assert_eq!(read_upload(body), expected.map(<[_]>::to_vec));
    }

    fn body_of(records: &[&[u8]]) -> Vec<u8> {
        let mut writer = UploadWriter::new();
        for record in records {
            writer.push(record).unwrap();
        }
        assert_eq!(writer.epochs(), records.len());
        let bytes = writer.body_bytes();
        let body = writer.into_body();
        assert_eq!(body.len(), bytes);
        body
    }

    #[test]
    fn what_is_written_reads_back() {
        check(&body_of(&[]), Ok(&[]));
        check(&body_of(&[b"one", b"", b"three"]), Ok(&[b"one", b"", b"three"]));
    }

    /// Millions of empty records fit into a body, and each would be accounted for.
    #[test]
    fn epochs_of_a_body_are_bounded() {
        let most = vec![&b""[..]; UPLOAD_EPOCHS_MAX];
        check(&body_of(&most), Ok(&most));
        check(&body_of(&[&most[..], &[b""]].concat()), Err(UploadError::TooMany));
    }

    #[test]
    fn a_body_that_is_not_whole_is_refused() {
        let whole = body_of(&[b"one", b"two"]);
        check(&whole[..whole.len() - 1], Err(UploadError::Torn { bytes: 14 }));
        check(b"", Err(FileError::Magic.into()));
        check(b"{}", Err(FileError::Magic.into()));
        let mut damaged = whole;
        *damaged.last_mut().unwrap() ^= 1;
        check(&damaged, Err(FileError::Checksum { record: 1 }.into()));
    }
}
