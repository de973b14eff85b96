//! Where sealed epochs go: an epoch file, standard output, or a store.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use anyhow::Context;
use twixt_measure::{FILE_HEADER, Sealed, Stream, record_header};
use twixt_model::{PointId, Span, Timestamp};
use twixt_observe::Meters;
use twixt_offline::is_standard_input;
use twixt_store::{Appended, Durability, EpochEntry, Log, Options, PointWriter, StoreError};

use super::retention::{Forgotten, Retention};
use crate::exit::{note, usage};
use crate::output::units;

/// What the user named.
#[derive(Clone, Copy)]
pub(super) enum Target<'a> {
    File(&'a Path),
    Store(&'a Path, Retention),
}

/// Takes sealed epochs.
pub(super) enum Sink {
    File(EpochWriter),
    Store(Box<StoreWriter>),
}

impl Sink {
    pub(super) fn open(target: Target<'_>, point: &PointId) -> anyhow::Result<Self> {
        match target {
            Target::File(path) => EpochWriter::create(path).map(Self::File),
            Target::Store(folder, retention) => StoreWriter::open(folder, retention, point)
                .map(|store| Self::Store(Box::new(store))),
        }
    }

    /// Takes all epochs that are sealed.
    pub(super) fn write_sealed(&mut self, meters: &mut Meters) -> anyhow::Result<()> {
        let sealed: Vec<Sealed> =
            std::iter::from_fn(|| meters.poll()).map(|(_, sealed)| sealed).collect();
        match self {
            Self::File(file) => sealed.iter().try_for_each(|sealed| file.write_epoch(sealed)),
            Self::Store(store) => store.append_all(sealed),
        }
    }

    /// Nothing more comes; where it went.
    pub(super) fn finish(self) -> anyhow::Result<String> {
        match self {
            Self::File(file) => file.finish(),
            Self::Store(store) => store.finish(),
        }
    }
}

/// Appends sealed epochs to a file or to standard output.
pub(super) struct EpochWriter {
    out: BufWriter<Box<dyn Write>>,
    name: String,
}

impl EpochWriter {
    fn create(path: &Path) -> anyhow::Result<Self> {
        let name = path.display().to_string();
        let out: Box<dyn Write> = match is_standard_input(path) {
            true => Box::new(io::stdout().lock()),
            false => Box::new(File::create(path).with_context(|| format!("cannot write {name}"))?),
        };
        let mut writer = Self { out: BufWriter::new(out), name };
        writer.write(&FILE_HEADER)?;
        Ok(writer)
    }

    fn write_epoch(&mut self, sealed: &Sealed) -> anyhow::Result<()> {
        let body = sealed.to_bytes();
        let header = record_header(&body).map_err(|error| {
            usage(format!("{}: {error}; use --epoch for shorter epochs", self.name))
        })?;
        self.write(&header)?;
        self.write(&body)
    }

    fn write(&mut self, bytes: &[u8]) -> anyhow::Result<()> {
        self.out.write_all(bytes).with_context(|| format!("cannot write {}", self.name))
    }

    fn finish(mut self) -> anyhow::Result<String> {
        self.out.flush().with_context(|| format!("cannot write {}", self.name))?;
        Ok(self.name)
    }
}

/// Appends sealed epochs to a store, each durably.
pub(super) struct StoreWriter {
    log: Log,
    retention: Retention,
    forgotten: Forgotten,
    writer: PointWriter,
    name: String,
    /// Of this recording: when it begins, so that a second try is known for one.
    run: Option<u64>,
    known_epochs: u64,
}

impl StoreWriter {
    fn open(folder: &Path, retention: Retention, point: &PointId) -> anyhow::Result<Self> {
        let log = Log::open(folder, Options::default());
        let writer = log.writer(&point.0).map_err(|error| usage(error.to_string()))?;
        let name = folder.display().to_string();
        let forgotten = Forgotten::default();
        Ok(Self { log, retention, forgotten, writer, name, run: None, known_epochs: 0 })
    }

    fn append_all(&mut self, sealed: Vec<Sealed>) -> anyhow::Result<()> {
        let seen = sealed.iter().filter_map(|sealed| sealed.seen);
        let Some(all_seen) = seen.reduce(Span::union) else {
            return sealed.into_iter().try_for_each(|sealed| {
                let span = sealed.rule.span_of(sealed.epoch);
                self.append(sealed, span)
            });
        };
        sealed.into_iter().try_for_each(|sealed| {
            // An epoch without packets lasts as long as it lasts; the whole has no ends of its own.
            let empty = sealed.rule.length_ns().map(|_| sealed.rule.span_of(sealed.epoch));
            let span = sealed.seen.or(empty).unwrap_or(all_seen);
            self.append(sealed, span)
        })
    }

    fn append(&mut self, sealed: Sealed, span: Span) -> anyhow::Result<()> {
        // Nothing was seen in all of the time: `record` says so itself.
        if span.start == Timestamp::MIN {
            return Ok(());
        }
        let run = *self.run.get_or_insert(span.start.as_nanos() as u64);
        let sealed = Sealed { run, ..sealed };
        let stream = Stream::of(&sealed).to_string();
        let entry = EpochEntry { stream: &stream, span, epoch: sealed.epoch };
        match self.writer.append_once(&entry, &sealed.to_bytes(), Durability::Synced) {
            Ok(Appended::Stored) => {
                Ok(self.retention.apply(&self.log, span.start, &mut self.forgotten)?)
            }
            Ok(Appended::AlreadyThere) => {
                self.known_epochs += 1;
                Ok(())
            }
            Err(error @ StoreError::TooLong { .. }) => {
                Err(usage(format!("{}: {error}; use --epoch for shorter epochs", self.name)))
            }
            Err(error) => Err(error.into()),
        }
    }

    fn finish(self) -> anyhow::Result<String> {
        self.forgotten.note(&self.name);
        if self.writer.cut_bytes() > 0 {
            let cut = units::bytes(self.writer.cut_bytes());
            note(format_args!("{}: an unfinished record of {cut} was cut off", self.name));
        }
        if self.known_epochs > 0 {
            let known = units::count(self.known_epochs);
            note(format_args!(
                "{}: {known} epochs were already stored, and are unchanged",
                self.name
            ));
        }
        Ok(self.name)
    }
}
