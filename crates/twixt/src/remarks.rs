//! What the libraries report, in the words of the command line.

use std::borrow::Cow;

use twixt_model::DigestProfile;
use twixt_offline::{Capture, OfflineError, Pass, Progress, Recognition, Remark, Reporter};

use crate::exit::note;
use crate::interruption;
use crate::output::units;
use crate::progress::ReadProgress;

/// Shows what is reported on standard error.
pub(crate) struct Terminal;

impl Reporter for Terminal {
    fn progress(&self, pass: Pass, total_bytes: u64) -> Box<dyn Progress> {
        Box::new(ReadProgress::new(total_bytes, pass_name(pass)))
    }

    fn remark(&self, remark: Remark) {
        note(text(&remark));
    }

    fn is_enough(&self) -> bool {
        interruption::is_requested()
    }
}

/// What is done in a pass.
const fn pass_name(pass: Pass) -> &'static str {
    match pass {
        Pass::Survey => "1/2 comparing",
        Pass::Segments => "reading segments",
        Pass::Streams => "reading streams",
        Pass::Times => "reading times",
        Pass::Measure => "2/2 measuring",
        Pass::Only => "measuring",
    }
}

/// Notes what is wrong with how a capture ended; whether there was something.
pub(crate) fn note_ending(capture: &Capture) -> bool {
    let ending = ending(capture);
    ending.iter().for_each(note);
    ending.is_some()
}

/// What is wrong with how a capture ended, if something is.
pub(crate) fn ending(capture: &Capture) -> Option<String> {
    capture.ended_early().map(|remark| text(&remark))
}

/// What the user can do about an error, if anything.
pub(crate) fn advice(error: &OfflineError) -> Option<Cow<'static, str>> {
    Some(match error {
        OfflineError::NotPerFlow { .. } => {
            "use --by all or --by class, or another algorithm".into()
        }
        OfflineError::NoTable { .. } => {
            "add one with --heavy-entries N, if the algorithm supports it".into()
        }
        OfflineError::NoClasses => {
            "with --weights, the file of flows needs a column `class` with the number of the rule \
             that each flow matches"
                .into()
        }
        OfflineError::NoFlowKeys { .. } => "use --flow or --flows FILE".into(),
        OfflineError::LargeFlowKeys { .. } => "use --flows heavy, --flow or --flows FILE".into(),
        OfflineError::OtherKey { .. } => {
            "use the same --key and --hash, or no flow will be recognised".into()
        }
        OfflineError::SampleTwice => {
            "with --algorithm sample, use --memory instead of --sample-budget".into()
        }
        OfflineError::SampleWithoutLength => "with --one-pass, add --epoch".into(),
        OfflineError::SampleTooSmall { .. } => "use a larger --sample-budget".into(),
        OfflineError::EpochsTooShort { spread_ns, shortest_ns, .. } => format!(
            "those of one packet in a hundred differ by {} or more, so packets in flight at the end \
             of an epoch could not be distinguished from lost ones; use --epoch {} or more, --epoch \
             auto, or --algorithm exact",
            units::duration(*spread_ns as f64),
            epoch_length(*shortest_ns)
        )
        .into(),
        OfflineError::NothingInCommon => {
            "were they taken on the same path at the same time? If addresses are translated \
             between them, try --digest nat; if one holds headers only, --digest headers"
                .into()
        }
        OfflineError::AllAlike => {
            "packets are identified by their headers and the first bytes of the payload, which all of \
             them share: capture more of each packet, or select other traffic"
                .into()
        }
        OfflineError::OtherWayOnly => "swap the two captures, or use --both".into(),
        _ => return None,
    })
}

/// A length of at least so many nanoseconds, as options take it.
fn epoch_length(shortest_ns: i64) -> String {
    let (unit_ns, unit) = match shortest_ns {
        ..10_000_000 => (1_000, "us"),
        _ => (1_000_000, "ms"),
    };
    format!("{}{unit}", shortest_ns.saturating_add(unit_ns - 1) / unit_ns)
}

/// A capture that is read once is so far out of time order that epochs lack packets.
pub(crate) fn late_packets(name: &str, packets: u64) -> String {
    format!(
        "{name}: not in time order: {} packets came after their epoch had ended, which does not \
         count them, so that its loss is wrong; sort the capture first (for example with reordercap)",
        units::count(packets)
    )
}

fn text(remark: &Remark) -> String {
    match remark {
        Remark::EndedEarly { path, ending, frames } => {
            let (path, frames) = (path.display(), units::count(*frames));
            format!("{path}: {ending}; the {frames} frames before that were used")
        }
        Remark::HeadersCut { path, packets } => format!(
            "{}: {} packets are truncated within their headers and may not be recognised; capture \
             with a larger snap length",
            path.display(),
            units::count(*packets)
        ),
        Remark::OutOfOrder { path, frames, back } => format!(
            "{}: up to {} frames are out of time order, by up to {}, and missing from their epochs: \
             sort the capture first (for example with reordercap), or do not use --epoch",
            path.display(),
            units::count(*frames),
            units::duration(back.as_nanos() as f64)
        ),
        Remark::LatePackets { path, packets } => {
            late_packets(&path.display().to_string(), *packets)
        }
        Remark::UnequalCuts { shorter, longer, recognition } => format!(
            "{} has a shorter snap length than {}: packets are identified by {}, which both have{}",
            shorter.display(),
            longer.display(),
            by_what(*recognition),
            what_is_alike(*recognition)
        ),
        Remark::OtherSegments { flows, refused, coarse } => {
            other_segments(*flows, *refused, *coarse)
        }
        Remark::SameCapture { upstream, downstream } => format!(
            "{} and {} have the same packets at the same times: name the captures of two points",
            upstream.display(),
            downstream.display()
        ),
        Remark::FlowsUnseen { flows, of } => format!(
            "{} of {} flows that go downstream were not seen there at all, and their packets count as \
             lost: if they take another path, select the others with --toward or a filter",
            units::count(*flows),
            units::count(*of)
        ),
        Remark::Outage { upstream, downstream } => {
            let (from, to) = (upstream.display(), downstream.display());
            format!(
                "no packet from {from} was seen in {to}: either all were lost, or they take another \
                 path"
            )
        }
        Remark::NothingGoes { upstream, downstream } => {
            let (from, to) = (upstream.display(), downstream.display());
            format!("no packet in both captures goes from {from} to {to}")
        }
        Remark::EndedByRequest(until) => format!(
            "interrupted: partial, only packets that left before {} UTC were measured",
            units::moment(*until)
        ),
        Remark::TowardContradicted { flows, by } => format!(
            "by {}, {} of the selected flows go the other way: are the two captures swapped, or is the \
             prefix of --toward that of the other end?",
            by.name(),
            units::count(*flows)
        ),
        other => incompleteness(other),
    }
}

fn other_segments(flows: u64, refused: u64, coarse: u64) -> String {
    let recognised = format!(
        "an offload merged TCP segments differently at the two points: those of {} are matched by byte \
         range; all bytes of a merged segment have its timestamp",
        units::counted(flows, "flow", "flows")
    );
    let not_recognised = format!(
        "{} too many segments to match by byte range: merged ones count as lost",
        units::counted(refused, "flow has", "flows have")
    );
    let uncounted = format!(
        "in {}, both captures hold merged segments of unknown packets: packets and loss are those of byte \
         ranges, not of the wire",
        units::counted(coarse, "flow", "flows")
    );
    let said = [(flows, recognised), (coarse, uncounted), (refused, not_recognised)];
    let said = said.into_iter().filter(|(flows, _)| *flows > 0).map(|(_, text)| text);
    said.collect::<Vec<_>>().join("; ")
}

/// What was not corrected, kept or read.
fn incompleteness(remark: &Remark) -> String {
    match remark {
        Remark::ClocksUnknown => "no clock error is known: delays are not corrected".to_owned(),
        Remark::CorrectionRefused(below) => format!(
            "delays are not corrected: one would be negative by {}, which is more than the error of \
             what is known about the clocks",
            units::duration(below.as_nanos() as f64)
        ),
        Remark::StampsRefused(packets) => {
            format!("the send times of {} packets could not be kept", units::count(*packets))
        }
        Remark::StreamsRefused(packets) => format!(
            "{} UDP packets belong to flows beyond the maximum number of flows: RTP streams among them \
             are not reported",
            units::count(*packets)
        ),
        Remark::FlowsRefused(packets) => format!(
            "{} packets belong to flows beyond the maximum number of flows and are not reported",
            units::count(*packets)
        ),
        Remark::HeldRefused(packets) => format!(
            "{} packets too many near the ends of the overlap: its ends are not exact",
            units::count(*packets)
        ),
        Remark::RecordLeftOut { path, error } => {
            format!("{}: {error}; the record is left out", path.display())
        }
        Remark::RecordUnfinished { path, bytes, records } => format!(
            "{}: the last {bytes} bytes are an unfinished record; {records} epochs were read",
            path.display()
        ),
        Remark::EpochsDamaged { path, error, records } => {
            format!("{}: {error}; {records} epochs before it were read", path.display())
        }
        other => format!("{other:?}"),
    }
}

/// Which packets cannot be distinguished, where no payload is left to do so.
const fn what_is_alike(recognition: Recognition) -> &'static str {
    match recognition.payload_bytes {
        0 => "; packets that differ in their payload only cannot be distinguished",
        _ => "",
    }
}

fn by_what(recognition: Recognition) -> String {
    match (recognition.profile, recognition.payload_bytes) {
        (DigestProfile::Headers, _) => "their fixed headers".to_owned(),
        (_, 0) => "their headers".to_owned(),
        (_, bytes) => format!("their headers and {bytes} bytes of payload"),
    }
}
