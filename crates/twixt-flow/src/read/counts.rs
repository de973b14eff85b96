//! What was read, what was not, and why.

use std::fmt;

/// Why a record cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Unusable {
    /// Has no source or no destination address: records of bridged or aggregated traffic.
    NoAddresses,
    /// Has no protocol number.
    NoProtocol,
    /// Says nothing of packets, or counts none.
    NoPackets,
    /// Says nothing of bytes.
    NoBytes,
    /// Says nothing of when the flow started or ended.
    NoTimes,
    /// Counts times from when the exporter started, and that is not known yet.
    NoSystemStart,
    /// Ends before it starts: the clock of the exporter was set back meanwhile.
    EndsBeforeStart,
    /// A field has a length that its element cannot have.
    BadField,
    /// Is the delay of a flow, not a record of it.
    DelayResult,
}

impl Unusable {
    /// Every reason, in the order in which they are shown.
    pub const ALL: [Self; 9] = [
        Self::NoAddresses,
        Self::NoProtocol,
        Self::NoPackets,
        Self::NoBytes,
        Self::NoTimes,
        Self::NoSystemStart,
        Self::EndsBeforeStart,
        Self::BadField,
        Self::DelayResult,
    ];

    /// The name in output.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::NoAddresses => "no-addresses",
            Self::NoProtocol => "no-protocol",
            Self::NoPackets => "no-packets",
            Self::NoBytes => "no-bytes",
            Self::NoTimes => "no-times",
            Self::NoSystemStart => "no-system-start",
            Self::EndsBeforeStart => "ends-before-start",
            Self::BadField => "bad-field",
            Self::DelayResult => "delay-result",
        }
    }
}

impl fmt::Display for Unusable {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

/// What a reader met.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadCounts {
    /// Messages, whatever was in them.
    pub messages: u64,
    /// Messages that were not read to their end.
    pub malformed: u64,
    /// Records handed over.
    pub records: u64,
    /// Records of options.
    pub options_records: u64,
    /// Templates that were new.
    pub templates: u64,
    /// Templates that replaced another of the same number.
    pub templates_changed: u64,
    /// Templates that the exporter took back.
    pub templates_withdrawn: u64,
    /// Templates for which there was no room.
    pub templates_refused: u64,
    /// Sets of records whose template is not known: it was lost, or comes later.
    pub sets_without_template: u64,
    /// Records (of NetFlow v9: messages) that sequence numbers say were sent but did not come.
    pub missing: u64,
    /// Messages that came after a later one, or twice.
    pub out_of_order: u64,
    /// Times at which the clock of an exporter jumped.
    pub clock_steps: u64,
    /// Times at which an exporter restarted.
    pub restarts: u64,
    /// Records that also count the opposite direction; that half was not used.
    pub reverse_halves: u64,
    /// Descriptions of selectors for which there was no room.
    pub selectors_refused: u64,
    /// Exporters and observation domains that were forgotten for others.
    pub streams_forgotten: u64,
    unusable: [u64; Unusable::ALL.len()],
}

impl ReadCounts {
    /// How many records were not usable for this reason.
    #[must_use]
    pub const fn unusable(&self, reason: Unusable) -> u64 {
        self.unusable[reason as usize]
    }

    /// The reasons that occurred, with their counts.
    pub fn all_unusable(&self) -> impl Iterator<Item = (Unusable, u64)> + '_ {
        let counted = Unusable::ALL.iter().map(|&reason| (reason, self.unusable(reason)));
        counted.filter(|&(_, records)| records > 0)
    }

    /// Everything that should make the user look closer, by name; what did not occur is left out.
    pub fn troubles(&self) -> impl Iterator<Item = (&'static str, u64)> {
        [
            ("malformed messages", self.malformed),
            ("sets without a template", self.sets_without_template),
            ("templates refused", self.templates_refused),
            ("missing by sequence number", self.missing),
            ("messages out of order", self.out_of_order),
            ("clock steps", self.clock_steps),
            ("restarts", self.restarts),
            ("reverse halves not used", self.reverse_halves),
            ("selectors refused", self.selectors_refused),
            ("exporters forgotten", self.streams_forgotten),
        ]
        .into_iter()
        .filter(|&(_, count)| count > 0)
    }

    pub(super) fn count_unusable(&mut self, reason: Unusable) {
        self.unusable[reason as usize] += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_has_its_own_place_and_name() {
        for (index, reason) in Unusable::ALL.into_iter().enumerate() {
            assert_eq!(reason as usize, index);
            assert_eq!(
                Unusable::ALL.iter().filter(|other| other.name() == reason.name()).count(),
                1
            );
        }
    }

    #[test]
    fn what_did_not_occur_is_not_listed() {
        let mut counts = ReadCounts { missing: 3, ..ReadCounts::default() };
        counts.count_unusable(Unusable::NoTimes);
        assert_eq!(counts.all_unusable().collect::<Vec<_>>(), [(Unusable::NoTimes, 1)]);
        assert_eq!(counts.troubles().collect::<Vec<_>>(), [("missing by sequence number", 3)]);
    }
}
