//! The bytes of a sealed epoch: what travels from agent to collector and lies in epoch files.
//!
//! All integers are little-endian; a text or block is its length (u32) and its bytes; an optional
//! field is a byte 0, or a byte 1 and the field.
//!
//! | field | type |
//! |---|---|
//! | magic `TWXM`, format version | 4 bytes, u8 |
//! | domain, point, class | texts |
//! | run | u64 |
//! | epoch number, epoch length in ns (0: one epoch for all time) | i64, i64 |
//! | cut (0 timed, 1 marked), torn (0, 1) | u8, u8 |
//! | shift in ns, guard in ns (0 or more) | i64, i64 |
//! | time source, clock bound in ns | u8, optional i64 |
//! | digest profile, hash, payload bytes, key id | u8, u8, u8, u32 |
//! | bits of the prefixes of groups, IPv4 and IPv6 (from version 2 on) | u8, u8 |
//! | first and last time | optional (i64, i64) |
//! | packets, dropped, late | u64 each |
//! | most packets that are missing (in version 4) | u64 |
//! | skip reasons | u64 count, then (text, u64) each |
//! | head, tail | stash each |
//! | synopsis | block, an envelope of its own |
//! | checksum of all before | u64, XXH3 |
//!
//! A stash is its bound (u32), its overflow (u64), a count (u64) and so many observations, as
//! `message/observations.rs` says. Up to version 2 these were: time (i64), digest (u64), flow hash
//! (u64), length (u32), class (u16), group (u16, from version 2 on).
//!
//! An epoch that does not say how many packets are missing is written as version 3, so that older
//! releases read all epochs but those beside drops.

mod observations;

use twixt_model::{
    ClassId, Delay, DigestHash, DigestIdentity, DigestProfile, Epoch, EpochRule, FlowHash, GroupId,
    GroupPrefixes, NAME_BYTES_MAX, Observation, PacketDigest, PointId, Span, TimeSource, Timestamp,
};
use twixt_synopsis::{Algorithm, AnySynopsis, DecodeError, KnownFlow, Reader, Writer};
use xxhash_rust::xxh3::xxh3_64;

use crate::cut;
use crate::sealed::{CutKind, Sealed};
use crate::stash::{STASH_LIMIT, Stash};
use crate::tally::{SKIP_REASON_BYTES_MAX, SKIP_REASONS_MAX, Tally};

/// Shortest epoch. Keeps epoch numbers far from the ends of what 64 bits hold.
pub const EPOCH_NS_MIN: i64 = 1_000;

const MAGIC: &[u8; 4] = b"TWXM";
/// The newest format version; this release reads all up to this one.
const VERSION: u8 = 4;
/// The first that has groups.
const GROUPS_VERSION: u8 = 2;
/// The first that has observations column by column.
const COLUMNS_VERSION: u8 = 3;
/// The first that says how many packets are missing.
const MISSING_VERSION: u8 = 4;
const CHECKSUM_BYTES: usize = 8;
/// Memory for each byte beside observations and synopsis: names, and skip reasons in a tree.
const DECODED_PER_BYTE: u64 = 8;
/// In version 1; the next has more.
const OBSERVATION_BYTES_MIN: usize = 8 + 8 + 8 + 4 + 2;
/// A skip reason of no letters.
const SKIP_BYTES_MIN: usize = 4 + 8;

impl Sealed {
    /// The epoch as bytes that describe themselves.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Writer::new();
        out.raw(MAGIC);
        out.u8(self.version());
        self.write_identity(&mut out);
        self.write_evidence(&mut out);
        write_stash(&mut out, &self.head);
        write_stash(&mut out, &self.tail);
        out.block_of(|out| twixt_synopsis::encode_into(self.synopsis.as_ref(), out));
        out.u64(xxh3_64(out.as_slice()));
        out.into_bytes()
    }

    /// Reads back what [`to_bytes`](Self::to_bytes) wrote.
    ///
    /// # Errors
    /// When the bytes are damaged, cut short, written by a newer release or not by twixt.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, DecodeError> {
        let (version, body) = body_if(bytes, |bytes, checksum| xxh3_64(bytes) == checksum)?;
        Self::read(body, version, twixt_synopsis::decode)
    }

    /// The same with as much of the synopsis as it takes to answer for some flows, and of bytes that
    /// are known to be sound: a store has checked them already. Such an epoch can be paired with
    /// others about the same flows, and asked about these. It cannot be written.
    ///
    /// # Errors
    /// When the bytes are cut short, written by a newer release or not by twixt.
    pub fn about(bytes: &[u8], flows: &[KnownFlow]) -> Result<Self, DecodeError> {
        let (version, body) = body_if(bytes, |_, _| true)?;
        Self::read(body, version, |bytes| twixt_synopsis::decode_about(bytes, flows))
    }

    /// Memory that [`from_bytes`](Self::from_bytes) takes at most, computed from headers and
    /// counts, before anything is decoded.
    ///
    /// # Errors
    /// As [`from_bytes`](Self::from_bytes), as far as that is known.
    pub fn decoded_bytes(bytes: &[u8]) -> Result<u64, DecodeError> {
        let (version, body) = body_if(bytes, |bytes, checksum| xxh3_64(bytes) == checksum)?;
        let mut input = Reader::new(body);
        let packets = skip_to_synopsis(&mut input, version)?;
        let beside = DECODED_PER_BYTE * (body.len() - input.left()) as u64;
        let packets = packets.saturating_mul(size_of::<Observation>() as u64);
        let synopsis = twixt_synopsis::decoded_bytes(input.block("synopsis")?)?;
        Ok(beside.saturating_add(packets).saturating_add(synopsis))
    }

    fn read(
        body: &[u8],
        version: u8,
        decode: impl FnOnce(&[u8]) -> Result<Decoded, DecodeError>,
    ) -> Result<Self, DecodeError> {
        let mut input = Reader::new(body);
        let sealed = Self::read_fields(&mut input, version, decode)?;
        input.finish()?;
        Ok(sealed)
    }

    /// The oldest format version that holds all of it.
    const fn version(&self) -> u8 {
        if self.tally.missing_max.is_some() { MISSING_VERSION } else { COLUMNS_VERSION }
    }

    fn write_identity(&self, out: &mut Writer) {
        out.text(&self.domain);
        out.text(&self.point.0);
        out.text(&self.class);
        out.u64(self.run);
        out.i64(self.epoch.0);
        out.i64(self.rule.length_ns().unwrap_or(0));
        out.u8(match self.cut {
            CutKind::Timed => 0,
            CutKind::Marked => 1,
        });
        out.u8(u8::from(self.torn));
        out.i64(self.shift.as_nanos());
        out.i64(self.guard.as_nanos());
        out.u8(self.time_source.code());
        write_optional(out, self.clock_bound, |out, bound| out.i64(bound.as_nanos()));
        out.u8(self.digest.profile.code());
        out.u8(self.digest.hash.code());
        out.u8(self.digest.payload_bytes);
        out.u32(self.digest.key_id);
        out.u8(self.digest.groups.v4);
        out.u8(self.digest.groups.v6);
    }

    fn write_evidence(&self, out: &mut Writer) {
        write_optional(out, self.seen, |out, span| {
            out.i64(span.start.as_nanos());
            out.i64(span.end.as_nanos());
        });
        out.u64(self.packets);
        out.u64(self.tally.dropped);
        out.u64(self.tally.late);
        if let Some(missing) = self.tally.missing_max {
            out.u64(missing);
        }
        out.u64(self.tally.skipped().len() as u64);
        for (reason, packets) in self.tally.skipped() {
            out.text(reason);
            out.u64(packets);
        }
    }

    /// Fields are read in the order in which they are written here.
    fn read_fields(
        input: &mut Reader<'_>,
        version: u8,
        decode: impl FnOnce(&[u8]) -> Result<Decoded, DecodeError>,
    ) -> Result<Self, DecodeError> {
        let domain = read_name(input, "domain")?;
        let point = PointId(read_name(input, "point")?);
        let class = read_name(input, "class")?;
        let run = input.u64("run")?;
        let (epoch, rule) = read_epoch(input)?;
        let cut = if read_flag(input, "cut")? { CutKind::Marked } else { CutKind::Timed };
        let torn = read_flag(input, "torn")?;
        let shift = Delay::from_nanos(input.i64("shift")?);
        let guard = read_guard(input)?;
        let time_source = read_code(input, "time source", TimeSource::from_code)?;
        let clock_bound = read_optional(input, "clock bound", |input| {
            Ok(Delay::from_nanos(input.i64("clock bound")?))
        })?;
        let digest = read_digest(input, version)?;
        let seen = read_optional(input, "first and last time", read_span)?;
        let packets = input.u64("packets")?;
        let tally = read_tally(input, version)?;
        let head = read_stash(input, version, "head", Stash::head)?;
        let tail = read_stash(input, version, "tail", Stash::tail)?;
        let (_, synopsis) = decode(input.block("synopsis")?)?;
        Ok(Self {
            domain,
            point,
            class,
            run,
            epoch,
            rule,
            cut,
            shift,
            guard,
            torn,
            time_source,
            clock_bound,
            digest,
            seen,
            packets,
            tally,
            head,
            tail,
            synopsis,
        })
    }
}

/// Goes past all fields before the synopsis; how many observations are among them.
fn skip_to_synopsis(input: &mut Reader<'_>, version: u8) -> Result<u64, DecodeError> {
    for field in ["domain", "point", "class"] {
        input.block(field)?;
    }
    input.raw("run and epoch", 3 * 8)?;
    input.raw("cut, torn, shift, guard, time source", 2 + 2 * 8 + 1)?;
    read_optional(input, "clock bound", |input| input.i64("clock bound"))?;
    read_digest(input, version)?;
    read_optional(input, "first and last time", read_span)?;
    input.raw("packets, dropped, late", 3 * 8)?;
    read_missing(input, version)?;
    for _ in 0..input.count("skip reasons", SKIP_BYTES_MIN)? {
        input.block("skip reason")?;
        input.u64("skipped")?;
    }
    Ok(skip_stash(input, version, "head")? + skip_stash(input, version, "tail")?)
}

/// Goes past a stash; how many observations it has.
fn skip_stash(
    input: &mut Reader<'_>,
    version: u8,
    field: &'static str,
) -> Result<u64, DecodeError> {
    input.raw(field, 4 + 8)?;
    match version < COLUMNS_VERSION {
        true => {
            let each = OBSERVATION_BYTES_MIN + if version < GROUPS_VERSION { 0 } else { 2 };
            let count = input.count(field, each)?;
            input.raw(field, count * each)?;
            Ok(count as u64)
        }
        false => {
            let count = input.count(field, observations::BYTES_MIN)?;
            observations::skip(count, input, field)?;
            Ok(count as u64)
        }
    }
}

/// A synopsis, and which algorithm wrote it.
type Decoded = (&'static Algorithm, Box<dyn AnySynopsis>);

/// The version, and what lies between it and the checksum, if that is right.
fn body_if(
    bytes: &[u8],
    is_right: impl FnOnce(&[u8], u64) -> bool,
) -> Result<(u8, &[u8]), DecodeError> {
    let mut input = Reader::new(bytes);
    if input.raw("magic", MAGIC.len())? != MAGIC {
        return Err(DecodeError::Magic { expected: "a sealed epoch" });
    }
    let found = input.u8("version")?;
    if found > VERSION {
        return Err(DecodeError::NewerVersion { what: "sealed epoch", found, newest: VERSION });
    }
    let body = input.raw("body", input.left().saturating_sub(CHECKSUM_BYTES))?;
    let checked = &bytes[..bytes.len() - input.left()];
    if !is_right(checked, input.u64("checksum")?) {
        return Err(DecodeError::Checksum { what: "sealed epoch" });
    }
    Ok((found, body))
}

fn read_name(input: &mut Reader<'_>, field: &'static str) -> Result<String, DecodeError> {
    let name = input.text(field)?;
    if name.len() > NAME_BYTES_MAX {
        let problem = format!("{} bytes, at most {NAME_BYTES_MAX} are allowed", name.len());
        return Err(DecodeError::invalid(field, problem));
    }
    Ok(name.to_owned())
}

fn read_epoch(input: &mut Reader<'_>) -> Result<(Epoch, EpochRule), DecodeError> {
    let epoch = Epoch(input.i64("epoch")?);
    let length_ns = input.i64("epoch length")?;
    let rule = match length_ns {
        0 => EpochRule::WHOLE,
        EPOCH_NS_MIN.. => EpochRule::every(length_ns).expect("the length is positive"),
        _ => return Err(DecodeError::invalid("epoch length", format!("{length_ns} ns"))),
    };
    if !cut::exists(rule, epoch) {
        let problem = format!("number {} does not exist at {length_ns} ns", epoch.0);
        return Err(DecodeError::invalid("epoch", problem));
    }
    Ok((epoch, rule))
}

fn read_guard(input: &mut Reader<'_>) -> Result<Delay, DecodeError> {
    match input.i64("guard")? {
        guard_ns @ 0.. => Ok(Delay::from_nanos(guard_ns)),
        guard_ns => Err(DecodeError::invalid("guard", format!("{guard_ns} ns"))),
    }
}

fn read_digest(input: &mut Reader<'_>, version: u8) -> Result<DigestIdentity, DecodeError> {
    Ok(DigestIdentity {
        profile: read_code(input, "digest profile", DigestProfile::from_code)?,
        hash: read_code(input, "digest hash", DigestHash::from_code)?,
        payload_bytes: input.u8("digest payload bytes")?,
        key_id: input.u32("digest key id")?,
        groups: read_groups(input, version)?,
    })
}

fn read_groups(input: &mut Reader<'_>, version: u8) -> Result<GroupPrefixes, DecodeError> {
    if version < GROUPS_VERSION {
        return Ok(GroupPrefixes::default());
    }
    let groups = GroupPrefixes { v4: input.u8("group prefixes")?, v6: input.u8("group prefixes")? };
    match groups.v4 <= 32 && groups.v6 <= 128 {
        true => Ok(groups),
        false => Err(DecodeError::invalid("group prefixes", format!("{groups:?}"))),
    }
}

fn read_span(input: &mut Reader<'_>) -> Result<Span, DecodeError> {
    let start = Timestamp::from_nanos(input.i64("first time")?);
    let end = Timestamp::from_nanos(input.i64("last time")?);
    if start > end {
        return Err(DecodeError::invalid("last time", "is before the first"));
    }
    Ok(Span { start, end })
}

fn read_missing(input: &mut Reader<'_>, version: u8) -> Result<Option<u64>, DecodeError> {
    (version >= MISSING_VERSION).then(|| input.u64("missing")).transpose()
}

fn read_tally(input: &mut Reader<'_>, version: u8) -> Result<Tally, DecodeError> {
    let mut tally = Tally::default();
    tally.dropped = input.u64("dropped")?;
    tally.late = input.u64("late")?;
    tally.missing_max = read_missing(input, version)?;
    let reasons = input.count("skip reasons", SKIP_BYTES_MIN)?;
    if reasons > SKIP_REASONS_MAX + 1 {
        let problem = format!("{reasons}, at most {} are allowed", SKIP_REASONS_MAX + 1);
        return Err(DecodeError::invalid("skip reasons", problem));
    }
    for _ in 0..reasons {
        let reason = input.text("skip reason")?;
        if reason.len() > SKIP_REASON_BYTES_MAX {
            return Err(DecodeError::invalid("skip reason", "is too long"));
        }
        tally.skip(reason, input.u64("skipped")?);
    }
    Ok(tally)
}

fn write_stash(out: &mut Writer, stash: &Stash) {
    out.u32(u32::try_from(stash.max()).expect("stashes are bounded by STASH_LIMIT"));
    out.u64(stash.overflow());
    out.u64(stash.observations().len() as u64);
    observations::write(stash.observations(), out);
}

fn read_stash(
    input: &mut Reader<'_>,
    version: u8,
    field: &'static str,
    empty: fn(usize) -> Stash,
) -> Result<Stash, DecodeError> {
    let max = input.u32(field)? as usize;
    let overflow = input.u64(field)?;
    let least = match version < COLUMNS_VERSION {
        true => OBSERVATION_BYTES_MIN,
        false => observations::BYTES_MIN,
    };
    let count = input.count(field, least)?;
    if max > STASH_LIMIT || count > max {
        let problem = format!("{count} observations with a bound of {max}");
        return Err(DecodeError::invalid(field, problem));
    }
    let observations = match version < COLUMNS_VERSION {
        true => (0..count).map(|_| read_observation(input, version, field)).collect(),
        false => observations::read(count, input, field),
    }?;
    Ok(empty(max).restored(observations, overflow))
}

fn read_observation(
    input: &mut Reader<'_>,
    version: u8,
    field: &'static str,
) -> Result<Observation, DecodeError> {
    Ok(Observation {
        time: Timestamp::from_nanos(input.i64(field)?),
        digest: PacketDigest(input.u64(field)?),
        flow: FlowHash(input.u64(field)?),
        length: input.u32(field)?,
        class: ClassId(input.u16(field)?),
        group: GroupId(if version < GROUPS_VERSION { 0 } else { input.u16(field)? }),
    })
}

fn write_optional<T>(out: &mut Writer, value: Option<T>, write: impl FnOnce(&mut Writer, T)) {
    out.u8(u8::from(value.is_some()));
    if let Some(value) = value {
        write(out, value);
    }
}

fn read_optional<T>(
    input: &mut Reader<'_>,
    field: &'static str,
    read: impl FnOnce(&mut Reader<'_>) -> Result<T, DecodeError>,
) -> Result<Option<T>, DecodeError> {
    if read_flag(input, field)? { read(input).map(Some) } else { Ok(None) }
}

fn read_flag(input: &mut Reader<'_>, field: &'static str) -> Result<bool, DecodeError> {
    read_code(input, field, |code| [false, true].get(usize::from(code)).copied())
}

fn read_code<T>(
    input: &mut Reader<'_>,
    field: &'static str,
    from_code: impl FnOnce(u8) -> Option<T>,
) -> Result<T, DecodeError> {
    let code = input.u8(field)?;
    from_code(code).ok_or_else(|| DecodeError::invalid(field, format!("unknown code {code}")))
}

#[cfg(test)]
mod tests;
