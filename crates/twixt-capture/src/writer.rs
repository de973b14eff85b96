//! Writes nanosecond pcap.

use std::io::{self, Write};

use twixt_model::Timestamp;

const MAGIC_NANOSECONDS: u32 = 0xa1b2_3c4d;
const NANOS_PER_SECOND: i64 = 1_000_000_000;

/// Writes frames of one link type as nanosecond pcap, little-endian. Give it a buffered writer.
#[derive(Debug)]
pub struct PcapWriter<W: Write> {
    output: W,
    snap_length: u32,
}

/// Why a frame was not written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CaptureWriteError {
    /// pcap has 32 unsigned bits for seconds: times lie in 1970 to 2106. Shift the times.
    #[error("a time of {nanos} ns since 1970 cannot be written to pcap, which spans 1970 to 2106")]
    TimeOutOfRange {
        /// The time.
        nanos: i64,
    },
    /// The disk is full, the pipe closed, or alike. The source says which.
    #[error("cannot write capture")]
    Output(#[from] io::Error),
}

impl<W: Write> PcapWriter<W> {
    /// Writes the file header. Of each frame at most `snap_length` bytes will be kept;
    /// `link_type` is a LINKTYPE number of the pcap registry.
    ///
    /// # Errors
    ///
    /// When `output` fails.
    pub fn new(mut output: W, link_type: u16, snap_length: u32) -> Result<Self, CaptureWriteError> {
        let mut header = [0; 24];
        header[0..4].copy_from_slice(&MAGIC_NANOSECONDS.to_le_bytes());
        header[4..6].copy_from_slice(&2_u16.to_le_bytes());
        header[6..8].copy_from_slice(&4_u16.to_le_bytes());
        header[16..20].copy_from_slice(&snap_length.to_le_bytes());
        header[20..22].copy_from_slice(&link_type.to_le_bytes());
        output.write_all(&header)?;
        Ok(Self { output, snap_length })
    }

    /// Writes one frame. Its length on the wire is taken to be at least that of `bytes`.
    ///
    /// # Errors
    ///
    /// When pcap cannot say the time; then nothing was written. When `output` fails.
    pub fn write(
        &mut self,
        time: Timestamp,
        bytes: &[u8],
        wire_length: u32,
    ) -> Result<(), CaptureWriteError> {
        let nanos = time.as_nanos();
        let seconds = u32::try_from(nanos.div_euclid(NANOS_PER_SECOND))
            .map_err(|_| CaptureWriteError::TimeOutOfRange { nanos })?;
        let fraction = nanos.rem_euclid(NANOS_PER_SECOND) as u32; // below 10^9
        let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        let captured = length.min(self.snap_length);

        let mut header = [0; 16];
        header[0..4].copy_from_slice(&seconds.to_le_bytes());
        header[4..8].copy_from_slice(&fraction.to_le_bytes());
        header[8..12].copy_from_slice(&captured.to_le_bytes());
        header[12..16].copy_from_slice(&wire_length.max(length).to_le_bytes());
        self.output.write_all(&header)?;
        self.output.write_all(&bytes[..captured as usize])?;
        Ok(())
    }

    /// Hands on what `output` buffers.
    ///
    /// # Errors
    ///
    /// When `output` fails.
    pub fn flush(&mut self) -> Result<(), CaptureWriteError> {
        Ok(self.output.flush()?)
    }

    /// Gives the output back, without flushing it.
    pub fn into_inner(self) -> W {
        self.output
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(nanos: i64, expected: Option<(u32, u32)>) {
        let mut writer = PcapWriter::new(Vec::new(), 1, 4).unwrap();
        let written = writer.write(Timestamp::from_nanos(nanos), &[1, 2, 3, 4, 5], 3);
        let bytes = writer.into_inner();
        let Some((seconds, fraction)) = expected else {
            assert!(
                matches!(written, Err(CaptureWriteError::TimeOutOfRange { nanos: at }) if at == nanos)
            );
            assert_eq!(bytes.len(), 24, "nothing is written of a frame that cannot be");
            return;
        };
        let header = [seconds, fraction, 4, 5].map(u32::to_le_bytes).concat();
        assert_eq!(&bytes[24..40], header);
        assert_eq!(&bytes[40..], [1, 2, 3, 4]);
    }

    #[test]
    fn times_from_1970_to_2106_can_be_written() {
        check(0, Some((0, 0)));
        check(1_700_000_000_123_456_789, Some((1_700_000_000, 123_456_789)));
        check(4_294_967_295_999_999_999, Some((u32::MAX, 999_999_999)));
        check(4_294_967_296_000_000_000, None);
        check(-1, None);
        check(i64::MIN, None);
        check(i64::MAX, None);
    }
}
