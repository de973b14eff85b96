//! Synopses with their type erased, and the envelope they travel in.

use std::any::Any;
use std::sync::Arc;

use twixt_model::Batch;
use xxhash_rust::xxh3::xxh3_64;

use crate::codec::{DecodeError, Reader, Writer};
use crate::question::KnownFlow;
use crate::registry::{ALGORITHMS, Algorithm, by_tag};
use crate::spill::SpillPlace;
use crate::synopsis::{DetailsOf, FlowNames, Needs, Reading, Synopsis};
use crate::totals::Totals;

/// Object-safe twin of [`Synopsis`], implemented once, for all of them.
pub trait AnySynopsis: Any + Send {
    /// Adds packets. One virtual call per batch; the loop inside is monomorphic and inlined.
    fn update_batch(&mut self, batch: Batch<'_>);
    /// What of a packet it reads with its settings.
    fn needs(&self) -> Needs;
    /// Of which packets it reads details, if it reads any.
    fn details_of(&self) -> DetailsOf;
    /// Which flows it can name by itself.
    fn flow_names(&self) -> FlowNames;
    /// Whether it reads when packets were sent.
    fn reads_stamps(&self) -> bool;
    /// Whether it reads more of details than flow keys and when packets were sent.
    fn reads_headers(&self) -> bool;
    /// Same configuration, nothing seen.
    fn fresh(&self) -> Box<dyn AnySynopsis>;
    /// Has state that grows with packets go to a place beside memory once it is large.
    fn spill_to(&mut self, place: &Arc<dyn SpillPlace>);
    /// An equal synopsis.
    fn duplicate(&self) -> Box<dyn AnySynopsis>;
    /// Adds all that `other` has seen.
    ///
    /// # Errors
    /// When that is of another algorithm or configuration.
    fn try_merge(&mut self, other: &dyn AnySynopsis) -> Result<(), Mismatch>;
    /// All packets and bytes it was given.
    fn totals(&self) -> Totals;
    /// Bytes of state that it keeps.
    fn state_bytes(&self) -> u64;
    /// Name of its algorithm.
    fn name(&self) -> &'static str;
    /// Tag of its algorithm.
    fn tag(&self) -> u16;
    /// Its algorithm; `None` if the registry does not have it.
    fn algorithm(&self) -> Option<&'static Algorithm>;
    /// Version of the bytes that it writes.
    fn version(&self) -> u8;
    /// Its configuration, as users write it.
    fn config(&self) -> toml::Table;
    /// Appends configuration and state.
    fn write(&self, out: &mut Writer);
}

impl<S: Synopsis> AnySynopsis for S {
    fn update_batch(&mut self, batch: Batch<'_>) {
        if Synopsis::needs(self).detail && batch.details.len() == batch.observations.len() {
            for (observation, detail) in batch.observations.iter().zip(batch.details) {
                self.update_detailed(observation, detail);
            }
        } else {
            self.update_all(batch.observations);
        }
    }

    fn needs(&self) -> Needs {
        Synopsis::needs(self)
    }

    fn details_of(&self) -> DetailsOf {
        Synopsis::details_of(self)
    }

    fn flow_names(&self) -> FlowNames {
        Synopsis::flow_names(self)
    }

    fn reads_stamps(&self) -> bool {
        Synopsis::reads_stamps(self)
    }

    fn reads_headers(&self) -> bool {
        Synopsis::reads_headers(self)
    }

    fn fresh(&self) -> Box<dyn AnySynopsis> {
        Box::new(self.emptied())
    }

    fn spill_to(&mut self, place: &Arc<dyn SpillPlace>) {
        Synopsis::spill_to(self, place);
    }

    fn duplicate(&self) -> Box<dyn AnySynopsis> {
        Box::new(self.clone())
    }

    fn try_merge(&mut self, other: &dyn AnySynopsis) -> Result<(), Mismatch> {
        let other = typed::<S>(other)?;
        same_config(self, other)?;
        self.merge(other);
        Ok(())
    }

    fn totals(&self) -> Totals {
        Synopsis::totals(self)
    }

    fn state_bytes(&self) -> u64 {
        Synopsis::state_bytes(self)
    }

    fn name(&self) -> &'static str {
        S::NAME
    }

    fn tag(&self) -> u16 {
        S::TAG
    }

    fn algorithm(&self) -> Option<&'static Algorithm> {
        by_tag(S::TAG)
    }

    fn version(&self) -> u8 {
        S::VERSION
    }

    fn config(&self) -> toml::Table {
        config_table::<S>(Synopsis::config(self))
    }

    fn write(&self, out: &mut Writer) {
        self.encode(out);
    }
}

impl std::fmt::Debug for dyn AnySynopsis {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{} of {} packets", self.name(), self.totals().packets)
    }
}

/// Why two synopses cannot be brought together.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Mismatch {
    /// The points run different algorithms. Give both the same.
    #[error("one synopsis is {one}, the other is {other}")]
    Algorithm {
        /// Name of one.
        one: &'static str,
        /// Name of the other.
        other: &'static str,
    },
    /// The points run one algorithm with different settings. Give both the same.
    #[error("{algorithm}: settings differ: {one} against {other}")]
    Config {
        /// Name of the algorithm.
        algorithm: &'static str,
        /// Settings of one.
        one: String,
        /// Settings of the other.
        other: String,
    },
}

pub(crate) fn typed<S: Synopsis>(synopsis: &dyn AnySynopsis) -> Result<&S, Mismatch> {
    let any: &dyn Any = synopsis;
    any.downcast_ref().ok_or(Mismatch::Algorithm { one: S::NAME, other: synopsis.name() })
}

pub(crate) fn typed_mut<S: Synopsis>(synopsis: &mut dyn AnySynopsis) -> Result<&mut S, Mismatch> {
    let other = synopsis.name();
    let any: &mut dyn Any = synopsis;
    any.downcast_mut().ok_or(Mismatch::Algorithm { one: S::NAME, other })
}

pub(crate) fn same_config<S: Synopsis>(one: &S, other: &S) -> Result<(), Mismatch> {
    if one.config() == other.config() {
        return Ok(());
    }
    let show = |synopsis: &S| {
        config_table::<S>(synopsis.config()).to_string().trim_end().replace('\n', ", ")
    };
    Err(Mismatch::Config { algorithm: S::NAME, one: show(one), other: show(other) })
}

fn config_table<S: Synopsis>(config: &S::Config) -> toml::Table {
    toml::Table::try_from(config).expect("configurations are plain tables of numbers and lists")
}

/// Starts every encoded synopsis.
const MAGIC: &[u8; 4] = b"TWXS";
const CHECKSUM_BYTES: usize = 8;

/// A synopsis as bytes that describe themselves: magic, version, algorithm's tag, configuration
/// and state, checksum.
#[must_use]
pub fn encode(synopsis: &dyn AnySynopsis) -> Vec<u8> {
    let mut out = Writer::new();
    encode_into(synopsis, &mut out);
    out.into_bytes()
}

/// The same, after what was written before.
pub fn encode_into(synopsis: &dyn AnySynopsis, out: &mut Writer) {
    let start = out.as_slice().len();
    out.raw(MAGIC);
    out.u8(synopsis.version());
    out.u16(synopsis.tag());
    synopsis.write(out);
    out.u64(xxh3_64(&out.as_slice()[start..]));
}

/// Reads back what [`encode`] wrote, and says which algorithm wrote it.
///
/// # Errors
/// When the bytes are damaged, cut short, or written by a newer release.
pub fn decode(bytes: &[u8]) -> Result<(&'static Algorithm, Box<dyn AnySynopsis>), DecodeError> {
    let checked = bytes.len().saturating_sub(CHECKSUM_BYTES);
    let sum = bytes[checked..].try_into().map(u64::from_le_bytes);
    envelope(bytes, None, |bytes| sum.is_ok_and(|sum| sum == xxh3_64(bytes)))
}

/// The same, of bytes that have been checked as part of a whole: as much of a synopsis as it takes
/// to answer for these flows. It must not be asked about anything else, nor be written.
///
/// # Errors
/// As [`decode`], but for damage.
pub fn decode_about(
    bytes: &[u8],
    flows: &[KnownFlow],
) -> Result<(&'static Algorithm, Box<dyn AnySynopsis>), DecodeError> {
    envelope(bytes, Some(flows), |_| true)
}

/// Memory that [`decode`] takes at most, computed before anything is decoded, of bytes that have
/// been checked as part of a whole.
///
/// # Errors
/// When there is no header, or one of a newer release.
pub fn decoded_bytes(bytes: &[u8]) -> Result<u64, DecodeError> {
    let (algorithm, _, mut body) = open(bytes, |_| true)?;
    (algorithm.decoded_bytes)(&mut body)
}

/// Reads an envelope; `is_sound` judges all but the checksum.
fn envelope(
    bytes: &[u8],
    flows: Option<&[KnownFlow]>,
    is_sound: impl FnOnce(&[u8]) -> bool,
) -> Result<(&'static Algorithm, Box<dyn AnySynopsis>), DecodeError> {
    let (algorithm, version, mut body) = open(bytes, is_sound)?;
    let synopsis = (algorithm.decode)(&mut body, Reading { version, flows })?;
    body.finish()?;
    Ok((algorithm, synopsis))
}

/// The algorithm, the version of its bytes, and these.
fn open(
    bytes: &[u8],
    is_sound: impl FnOnce(&[u8]) -> bool,
) -> Result<(&'static Algorithm, u8, Reader<'_>), DecodeError> {
    let mut header = Reader::new(bytes);
    if header.raw("magic", MAGIC.len())? != MAGIC {
        return Err(DecodeError::Magic { expected: "a synopsis" });
    }
    let version = header.u8("version")?;
    let body = header.raw("body", header.left().saturating_sub(CHECKSUM_BYTES))?;
    header.u64("checksum")?;
    let newest = ALGORITHMS.iter().map(|algorithm| algorithm.version).max().unwrap_or(0);
    if version > newest {
        return Err(DecodeError::NewerVersion { what: "synopsis", found: version, newest });
    }
    if !is_sound(&bytes[..bytes.len() - CHECKSUM_BYTES]) {
        return Err(DecodeError::Checksum { what: "synopsis" });
    }
    let mut body = Reader::new(body);
    let tag = body.u16("algorithm")?;
    let algorithm = by_tag(tag).ok_or(DecodeError::UnknownAlgorithm { tag })?;
    if version > algorithm.version {
        let newest = algorithm.version;
        return Err(DecodeError::NewerVersion { what: algorithm.name, found: version, newest });
    }
    Ok((algorithm, version, body))
}
