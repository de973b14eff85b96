//! Sizes of flows out of flow records: how many packets, and when.

use std::collections::BTreeMap;

use twixt_model::{FlowKey, Span};

/// Sizes of flows, as flow records have them.
#[derive(Clone, Debug, Default)]
pub struct RecordedSizes {
    flows: BTreeMap<FlowKey, Vec<RecordedPackets>>,
}

/// Some of a flow's packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct RecordedPackets {
    span: Span,
    packets: u64,
}

/// What is known of a flow in an interval of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Within {
    Absent,
    /// A record goes on beyond: so many of its packets may be elsewhere.
    Unknown,
    Packets(u64),
}

impl RecordedSizes {
    /// Adds so many packets of a flow.
    pub fn add(&mut self, key: FlowKey, span: Span, packets: u64) {
        self.flows.entry(key).or_default().push(RecordedPackets { span, packets });
    }

    /// The flows, and how many packets all of their records have.
    pub(crate) fn totals(&self) -> impl Iterator<Item = (FlowKey, u64)> + '_ {
        self.flows.iter().map(|(&key, parts)| {
            (key, parts.iter().fold(0, |sum: u64, part| sum.saturating_add(part.packets)))
        })
    }

    /// How many packets of a flow came within an interval of time.
    pub(crate) fn within(&self, key: &FlowKey, span: Span) -> Within {
        let parts = self.flows.get(key).into_iter().flatten();
        let mut within = Within::Absent;
        for part in parts.filter(|part| part.span.start <= span.end && span.start <= part.span.end)
        {
            let is_inside = span.contains(part.span.start) && span.contains(part.span.end);
            within = match within {
                _ if !is_inside => Within::Unknown,
                Within::Absent => Within::Packets(part.packets),
                Within::Unknown => Within::Unknown,
                Within::Packets(packets) => Within::Packets(packets.saturating_add(part.packets)),
            };
        }
        within
    }
}

#[cfg(test)]
mod tests {
    use twixt_model::Timestamp;

    use super::*;

    #[test]
    fn packets_are_known_where_records_end_with_the_epoch() {
        let span = |start: i64, end: i64| Span {
            start: Timestamp::from_nanos(start),
            end: Timestamp::from_nanos(end),
        };
        let key = FlowKey::default();
        let mut records = RecordedSizes::default();
        for (start, end, packets) in [(5, 9, 10), (10, 14, 3), (15, 19, 4), (18, 25, 7)] {
            records.add(key, span(start, end), packets);
        }
        let check = |start, end, expected| {
            assert_eq!(records.within(&key, span(start, end)), expected, "{start} to {end}");
        };
        check(0, 4, Within::Absent);
        check(0, 9, Within::Packets(10));
        check(0, 14, Within::Packets(13));
        check(10, 19, Within::Unknown);
        check(20, 29, Within::Unknown);
        check(0, 25, Within::Packets(24));
        assert_eq!(records.totals().collect::<Vec<_>>(), [(key, 24)]);
    }
}
