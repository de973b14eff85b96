//! Capture files: opens, recognises, decompresses and reads them.

mod open;

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use crate::buffer::BlockBuffer;
use crate::decode::{Progress, Stop};
use crate::input::{Blame, Input};
use crate::interface::Interface;
use crate::pcap::{PcapDecoder, Shape};
use crate::pcapng::PcapngDecoder;
use crate::{
    BatchEnd, ByteOrder, CaptureError, CaptureFormat, Compression, Ending, Frame,
    InterfaceDescription, PacketSource, SourceCounts,
};

/// Frames of one batch at most.
pub const BATCH_FRAMES_MAX: usize = 1024;

/// A pcap or pcapng file, plain or compressed, read from front to back.
pub struct CaptureFile {
    buffer: BlockBuffer<Input>,
    decoder: Decoder,
    size_bytes: Option<u64>,
    /// Set when the decoder wants more than is buffered: at least so many bytes.
    wanted_bytes: Option<usize>,
    ending: Option<Ending>,
}

enum Decoder {
    Pcap(PcapDecoder),
    Pcapng(PcapngDecoder),
}

/// A decoder at work on a block, with what all records have in common at hand.
enum Decoding<'d> {
    Pcap(Shape, &'d mut PcapDecoder),
    Pcapng(&'d mut PcapngDecoder),
}

impl Decoder {
    fn decoding(&mut self) -> Decoding<'_> {
        match self {
            Self::Pcap(decoder) => Decoding::Pcap(decoder.shape(), decoder),
            Self::Pcapng(decoder) => Decoding::Pcapng(decoder),
        }
    }
}

impl Decoding<'_> {
    /// The next frame of `bytes`, or why there is none; and what follows.
    #[inline(always)]
    fn next_frame<'a>(
        &mut self,
        bytes: &'a [u8],
        is_wanted: bool,
    ) -> (Result<Frame<'a>, Stop>, &'a [u8]) {
        match self {
            Self::Pcap(..) if !is_wanted => (Err(Stop::BatchFull), bytes),
            Self::Pcap(shape, decoder) => match decoder.next_frame(shape, bytes) {
                Ok((frame, rest)) => (Ok(frame), rest),
                Err(stop) => (Err(stop), bytes),
            },
            Self::Pcapng(decoder) => decoder.next_frame(bytes, is_wanted),
        }
    }

    /// Counts frames that were handed over, taken out of so many bytes.
    fn count(&mut self, frames: usize, bytes: usize) {
        match self {
            Self::Pcap(_, decoder) => decoder.count(frames, bytes),
            // Whose blocks are of many kinds counts as it goes.
            Self::Pcapng(_) => {}
        }
    }
}

impl CaptureFile {
    /// Opens a file.
    ///
    /// # Errors
    ///
    /// When it cannot be opened or is not a capture. A capture without packets is not an error.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, CaptureError> {
        let path = path.as_ref();
        let name = path.display().to_string();
        let file = File::open(path).map_err(|source| open::refused(&name, source))?;
        let metadata = file.metadata().map_err(|source| open::refused(&name, source))?;
        if metadata.is_dir() {
            return Err(CaptureError::Directory { file: name });
        }
        let mut capture = Self::from_reader(Box::new(file), &name)?;
        capture.size_bytes = metadata.is_file().then_some(metadata.len());
        Ok(capture)
    }

    /// Reads standard input.
    ///
    /// # Errors
    ///
    /// When it is not a capture.
    pub fn stdin() -> Result<Self, CaptureError> {
        Self::from_reader(Box::new(io::stdin()), "standard input")
    }

    /// Reads `input`, which errors shall call `name`. Waits for the file header.
    ///
    /// # Errors
    ///
    /// When it is not a capture.
    pub fn from_reader(input: Box<dyn Read + Send>, name: &str) -> Result<Self, CaptureError> {
        let (buffer, decoder) = open::start(input, name)?;
        Ok(Self { buffer, decoder, size_bytes: None, wanted_bytes: None, ending: None })
    }

    /// Hands up to [`BATCH_FRAMES_MAX`] frames to `sink`; waits for input only if nothing whole
    /// is buffered. The same as [`PacketSource::next_batch`] without a virtual call per frame.
    #[inline]
    pub fn read_batch(&mut self, mut sink: impl FnMut(Frame<'_>)) -> BatchEnd {
        if self.ending.is_some() || !self.refill_if_wanted() {
            return BatchEnd::End;
        }
        let bytes = self.buffer.unconsumed();
        let mut decoding = self.decoder.decoding();
        let (mut rest, mut frames) = (bytes, 0);
        let stop = loop {
            let (frame, after) = decoding.next_frame(rest, frames < BATCH_FRAMES_MAX);
            rest = after;
            match frame {
                // In one place for all formats: so compilers make what is done with frames a part
                // of this loop.
                Ok(frame) => sink(frame),
                Err(stop) => break stop,
            }
            frames += 1;
        };
        let consumed_bytes = bytes.len() - rest.len();
        decoding.count(frames, consumed_bytes);
        self.advance(Progress { consumed_bytes, stop })
    }

    /// Hands all frames that are left to `sink` and says how the file ended.
    #[inline]
    pub fn read_to_end(&mut self, mut sink: impl FnMut(Frame<'_>)) -> &Ending {
        while self.read_batch(&mut sink) == BatchEnd::More {}
        self.ending.as_ref().expect("a file without more batches has ended")
    }

    /// How the file ended; `None` while there may be more.
    #[must_use]
    pub fn ending(&self) -> Option<&Ending> {
        self.ending.as_ref()
    }

    /// The format of the file.
    #[must_use]
    pub fn format(&self) -> CaptureFormat {
        match self.decoder {
            Decoder::Pcap(_) => CaptureFormat::Pcap,
            Decoder::Pcapng(_) => CaptureFormat::Pcapng,
        }
    }

    /// How the file is compressed.
    #[must_use]
    pub fn compression(&self) -> Compression {
        self.buffer.input().compression()
    }

    /// The byte order of the file; of pcapng, of the section that is being read.
    #[must_use]
    pub fn byte_order(&self) -> ByteOrder {
        match &self.decoder {
            Decoder::Pcap(decoder) => decoder.byte_order(),
            Decoder::Pcapng(decoder) => {
                decoder.byte_order().expect("opening read the first section header")
            }
        }
    }

    /// The interfaces that the file described so far. [`Frame::interface`] counts them.
    pub fn interfaces(&self) -> impl ExactSizeIterator<Item = &InterfaceDescription> {
        let interfaces: &[Interface] = match &self.decoder {
            Decoder::Pcap(decoder) => std::slice::from_ref(decoder.interface()),
            Decoder::Pcapng(decoder) => decoder.interfaces(),
        };
        interfaces.iter().map(|interface| &interface.description)
    }

    /// Bytes read so far of the file as it lies on the disk, compressed or not.
    #[must_use]
    pub fn bytes_read(&self) -> u64 {
        self.buffer.input().bytes_read()
    }

    /// The size of the file as it lies on the disk; `None` for pipes.
    #[must_use]
    pub fn size_bytes(&self) -> Option<u64> {
        self.size_bytes
    }

    /// What was handed over, and what was not, up to now.
    #[must_use]
    pub fn counts(&self) -> SourceCounts {
        match &self.decoder {
            Decoder::Pcap(decoder) => decoder.counts(),
            Decoder::Pcapng(decoder) => decoder.counts(),
        }
    }

    /// Reads on if the decoder asked for it. Says whether the file goes on.
    fn refill_if_wanted(&mut self) -> bool {
        let Some(wanted_bytes) = self.wanted_bytes else { return true };
        match self.buffer.refill() {
            Ok(0) => self.ending = Some(self.ending_at_last_byte(wanted_bytes)),
            Ok(_) => {}
            Err(error) => self.ending = Some(self.ending_by(&error)),
        }
        self.ending.is_none()
    }

    fn advance(&mut self, progress: Progress) -> BatchEnd {
        self.buffer.consume(progress.consumed_bytes);
        self.wanted_bytes = None;
        match progress.stop {
            Stop::BatchFull => BatchEnd::More,
            Stop::Incomplete { needed_bytes } => {
                self.wanted_bytes = Some(needed_bytes);
                BatchEnd::More
            }
            Stop::Damaged(damage) => {
                let offset = self.buffer.offset();
                self.ending = Some(Ending::Damaged { offset, detail: damage.to_string() });
                BatchEnd::End
            }
        }
    }

    fn ending_at_last_byte(&self, wanted_bytes: usize) -> Ending {
        let left = self.buffer.unconsumed().len();
        if left == 0 {
            return Ending::Complete;
        }
        let detail = format!("{left} bytes are left of a record of {wanted_bytes} or more");
        Ending::Truncated { offset: self.buffer.offset(), detail }
    }

    fn ending_by(&self, error: &io::Error) -> Ending {
        let offset = self.buffer.offset();
        let compression = self.compression();
        match self.buffer.input().blame(error) {
            Blame::System => Ending::Unreadable { offset, detail: error.to_string() },
            Blame::CompressedTooShort => {
                let detail = format!("the {compression} stream around it stops early");
                Ending::Truncated { offset, detail }
            }
            Blame::CompressedWrongly => {
                let detail = format!("the {compression} stream around it is invalid: {error}");
                Ending::Damaged { offset, detail }
            }
        }
    }
}

impl PacketSource for CaptureFile {
    /// Never fails: a file that cannot be read on has an [`Ending`].
    fn next_batch(&mut self, sink: &mut dyn FnMut(Frame<'_>)) -> Result<BatchEnd, CaptureError> {
        Ok(self.read_batch(sink))
    }

    fn counts(&self) -> SourceCounts {
        self.counts()
    }
}
