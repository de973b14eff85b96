//! Capture files: pcap, pcapng, and what is around them.

use std::io::Cursor;

use twixt_capture::{CaptureFile, Ending, MAX_FRAME_BYTES, MAX_INTERFACES};

use crate::FuzzResult;

/// Reads the bytes as a capture file, to its end. Frames never exceed what the crate promises,
/// and damage is named with a place inside the file.
pub fn capture(bytes: &[u8]) -> FuzzResult {
    let input = Box::new(Cursor::new(bytes.to_vec()));
    let mut file = match CaptureFile::from_reader(input, "fuzz") {
        Ok(file) => file,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return FuzzResult::Refused;
        }
    };
    let mut frames = 0_u64;
    let ending = file.read_to_end(|frame| {
        assert!(frame.bytes.len() <= MAX_FRAME_BYTES as usize);
        frames += 1;
    });
    assert!(!matches!(ending, Ending::Unreadable { .. }), "memory can always be read: {ending:?}");
    assert_eq!(file.counts().frames, frames);
    assert!(file.interfaces().len() <= MAX_INTERFACES);
    assert!(file.bytes_read() <= bytes.len() as u64);
    FuzzResult::Accepted
}
