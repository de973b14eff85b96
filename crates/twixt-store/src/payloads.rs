//! Payloads of records that scans found, one after the other: files stay open, and buffers are used
//! again.

use std::io;

use crate::compress::unpack_zstd;
use crate::day::Day;
use crate::day_files::DayFiles;
use crate::disk::Access;
use crate::format::{HEAD_BYTES, Head, Packing, checksum};
use crate::log::Log;
use crate::query::Found;
use crate::report::{Cause, Damage};
use crate::walk::{FrameHead, Source};

/// Files that are kept open: two of two points. The one opened first is closed.
const OPEN_MAX: usize = 4;

/// Reads payloads. Made by [`Log::payloads`].
#[derive(Debug)]
pub struct Payloads<'a> {
    log: &'a Log,
    open: Vec<Open>,
    frame: Vec<u8>,
    unpacked: Vec<u8>,
}

#[derive(Debug)]
struct Open {
    point: String,
    day: Day,
    part: u32,
    data: Source,
}

impl<'a> Payloads<'a> {
    pub(crate) const fn new(log: &'a Log) -> Self {
        Self { log, open: Vec::new(), frame: Vec::new(), unpacked: Vec::new() }
    }

    /// The payload of a record, having compared its checksum.
    ///
    /// # Errors
    /// When it is damaged, or deleted since.
    pub fn read(&mut self, found: &Found) -> Result<&[u8], Damage> {
        let cause = match self.fill(found) {
            Ok(Some((Packing::None, start))) => return Ok(&self.frame[start..]),
            Ok(Some((Packing::Zstd, _))) => return Ok(&self.unpacked),
            Ok(None) => Cause::Payload,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Cause::Missing,
            Err(error) => Cause::Unreadable(error.to_string()),
        };
        Err(Damage {
            point: found.point.clone(),
            day: found.day,
            part: found.part,
            place: found.place,
            bytes: found.stored_bytes,
            cause,
            span: Some(found.span),
            epoch: Some(found.epoch),
        })
    }

    /// Reads a frame with one call, and unpacks it if it is packed. Where in it the payload begins;
    /// `None` if it is not as it was found.
    fn fill(&mut self, found: &Found) -> io::Result<Option<(Packing, usize)>> {
        let number = self.open(found)?;
        let data = &mut self.open[number].data;
        // Nothing is allocated for bytes that are not there.
        let end = found.place.saturating_add(found.stored_bytes);
        if end > data.file.about()?.bytes {
            return Ok(None);
        }
        self.frame.resize(found.stored_bytes as usize, 0);
        if !data.fill(&mut self.frame, found.place)? {
            return Ok(None);
        }
        let head = self.frame.get(..HEAD_BYTES);
        let head = head.and_then(|head| Head::from_bytes(head, found.place));
        let Some(head) = head.filter(|head| head.frame_bytes() == found.stored_bytes) else {
            return Ok(None);
        };
        let start = HEAD_BYTES + usize::from(head.stream_bytes);
        let stored = &self.frame[start..];
        if checksum(stored) != head.payload_checksum {
            return Ok(None);
        }
        let raw_bytes = head.raw_bytes as usize;
        let is_whole = match head.packing {
            Packing::None => stored.len() == raw_bytes,
            Packing::Zstd => unpack_zstd(stored, head.raw_bytes, &mut self.unpacked)
                .is_some_and(|()| self.unpacked.len() == raw_bytes),
        };
        Ok(is_whole.then_some((head.packing, start)))
    }

    /// Number of the open file that a record is in.
    fn open(&mut self, found: &Found) -> io::Result<usize> {
        let is_its = |open: &Open| {
            (open.day, open.part) == (found.day, found.part) && open.point == found.point
        };
        if let Some(number) = self.open.iter().position(is_its) {
            return Ok(number);
        }
        let folder = self.log.folder_of(&found.point).map_err(io::Error::other)?;
        let files = DayFiles::new(&folder, &found.point, found.day, found.part);
        let data = Source::new(self.log.disk().open(&files.data, Access::Read)?);
        if self.open.len() == OPEN_MAX {
            self.open.remove(0);
        }
        self.open.push(Open { point: found.point.clone(), day: found.day, part: found.part, data });
        Ok(self.open.len() - 1)
    }
}
