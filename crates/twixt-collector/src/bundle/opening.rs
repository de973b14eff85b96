//! Opens a bundle, which may be hostile: into a directory as a collector has it.
//!
//! The file is read twice. First all checksums are checked, and the manifest is looked for, which is at
//! the end; nothing is written before that. Then rows and epochs are written anew. No name in the file is
//! ever the name of a file.

use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::path::Path;

use twixt_history::{
    ExcerptKind, Hour, RebuiltFile, SeriesKey, rebuild_catalogue, rows_from_bytes,
};
use twixt_model::{Span, Timestamp};
use twixt_store::{
    Durability, Log, Options, PointWriter, SECTIONS_MAGIC, Section, SectionError, SectionReader,
};

use super::epochs::RawEpoch;
use super::{BundleError, EPOCHS_MAX, ManifestDocument, UNPACKED_BYTES_MAX, kind};
use crate::{EPOCHS_FOLDER, ESTIMATES_FOLDER};

/// Whether a file begins as a bundle does.
#[must_use]
pub fn is_bundle(path: &Path) -> bool {
    let mut found = [0; SECTIONS_MAGIC.len()];
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut found));
    read.is_ok() && found == SECTIONS_MAGIC
}

/// Checks that a bundle is whole, and says what is in it.
///
/// # Errors
/// When it is not, or cannot be read.
pub fn check_bundle(input: impl Read) -> Result<ManifestDocument, BundleError> {
    let mut reader = SectionReader::new(input)?;
    let mut unpacked_bytes = 0;
    let mut manifest = None;
    while let Some(Section { kind, content }) = reader.next()? {
        unpacked_bytes += content.len() as u64;
        if unpacked_bytes > UNPACKED_BYTES_MAX {
            return Err(BundleError::content("it is larger than a bundle may be"));
        }
        if manifest.is_some() {
            return Err(BundleError::content("something follows its manifest"));
        }
        manifest = (kind == kind::MANIFEST).then_some(content);
    }
    let manifest = manifest.ok_or_else(|| BundleError::content("it has no manifest"))?;
    ManifestDocument::read(&manifest)
}

/// Makes a collector's directory of a bundle, in a folder that is there and empty.
///
/// # Errors
/// When the file is no bundle, damaged, forged, or of a newer release, or files cannot be written. What was
/// written until then is of no use.
pub fn open_bundle(
    mut input: impl Read + Seek,
    folder: &Path,
) -> Result<ManifestDocument, BundleError> {
    let manifest = check_bundle(BufReader::new(&mut input))?;
    input.seek(SeekFrom::Start(0)).map_err(SectionError::Io)?;
    let mut reader = SectionReader::new(BufReader::new(input))?;
    let mut opening = Opening::new(&manifest, folder)?;
    while let Some(Section { kind, content }) = reader.next()? {
        match kind {
            kind::SUMS => opening.add_rows(ExcerptKind::Sums, &content)?,
            kind::EPOCH_ROWS => opening.add_rows(ExcerptKind::Epochs, &content)?,
            kind::UPSTREAM => opening.add_epoch(0, &content)?,
            kind::DOWNSTREAM => opening.add_epoch(1, &content)?,
            // The manifest, and what a later release adds that this one can do without.
            _ => {}
        }
    }
    opening.finish()?;
    Ok(manifest)
}

/// A directory that is being made.
struct Opening<'a> {
    folder: &'a Path,
    span: Span,
    series: Vec<(SeriesKey, Span)>,
    file: Option<RebuiltFile>,
    /// The hour and kind that came last: they come in order, each once.
    last: Option<(Hour, ExcerptKind)>,
    points: [PointWriter; 2],
    epochs: usize,
}

impl<'a> Opening<'a> {
    fn new(manifest: &ManifestDocument, folder: &'a Path) -> Result<Self, BundleError> {
        let log = Log::open(folder.join(EPOCHS_FOLDER), Options::default());
        let segment = manifest.segment();
        let mut series = manifest.series_spans();
        series.sort_by(|one, other| one.0.cmp(&other.0));
        std::fs::create_dir_all(folder.join(EPOCHS_FOLDER))
            .map_err(BundleError::io(format!("create a folder in {}", folder.display())))?;
        Ok(Self {
            folder,
            span: manifest.span(),
            series,
            file: None,
            last: None,
            points: [log.writer(&segment.upstream.0)?, log.writer(&segment.downstream.0)?],
            epochs: 0,
        })
    }

    fn add_rows(&mut self, kind: ExcerptKind, content: &[u8]) -> Result<(), BundleError> {
        let (start, record) = content
            .split_first_chunk()
            .ok_or_else(|| BundleError::content("rows without an hour"))?;
        let start = Timestamp::from_nanos(i64::from_le_bytes(*start));
        let hour = Hour::of(start);
        let is_within = hour >= Hour::of(self.span.start) && hour <= Hour::of(self.span.end);
        if hour.span().start != start || !is_within {
            return Err(BundleError::content("rows of an hour outside its time"));
        }
        let rows =
            rows_from_bytes(record).map_err(|error| BundleError::content(error.to_string()))?;
        self.begin_file(hour, kind)?;
        let series = &self.series;
        let is_known = |key: &SeriesKey| series.binary_search_by(|(of, _)| of.cmp(key)).is_ok();
        let file = self.file.as_mut().expect("it was there, or begun just now");
        Ok(file.add(rows, is_known)?)
    }

    /// Sections of one hour and kind follow each other, and go to one file.
    fn begin_file(&mut self, hour: Hour, kind: ExcerptKind) -> Result<(), BundleError> {
        if self.last == Some((hour, kind)) {
            return Ok(());
        }
        // Minutes and hours of an hour come before its epochs.
        let place = |(hour, kind): (Hour, ExcerptKind)| (hour, kind == ExcerptKind::Epochs);
        if self.last.is_some_and(|last| place(last) >= place((hour, kind))) {
            return Err(BundleError::content("its rows are in no order"));
        }
        self.finish_file()?;
        self.last = Some((hour, kind));
        let begun = RebuiltFile::begin(&self.folder.join(ESTIMATES_FOLDER), hour, kind)?;
        self.file = Some(begun);
        Ok(())
    }

    fn finish_file(&mut self) -> Result<(), BundleError> {
        Ok(self.file.take().map_or(Ok(()), RebuiltFile::finish)?)
    }

    fn add_epoch(&mut self, end: usize, content: &[u8]) -> Result<(), BundleError> {
        let raw = RawEpoch::from_bytes(content)
            .ok_or_else(|| BundleError::content("a raw epoch that is none"))?;
        self.epochs += 1;
        if self.epochs > EPOCHS_MAX {
            return Err(BundleError::content("it has too many raw epochs"));
        }
        self.points[end].append(&raw.entry(), raw.payload, Durability::Written)?;
        Ok(())
    }

    fn finish(mut self) -> Result<(), BundleError> {
        self.finish_file()?;
        Ok(rebuild_catalogue(&self.folder.join(ESTIMATES_FOLDER), &self.series)?)
    }
}
