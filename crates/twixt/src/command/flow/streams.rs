//! The records of two points, read side by side and brought together as they come.

use twixt_measure::survey::Comparison;
use twixt_model::Side;
use twixt_synopsis::By;
use twixt_synopsis::cnf::{
    CnfConfig, Merge, RecordEstimator, RecordPairing, RecordPairingConfig, RecordPairingCounts,
    Rule,
};

use super::point_records::PointRecords;
use crate::exit::note;
use crate::output::units;

/// Two points that are being read.
pub(super) struct Streams {
    pub(super) upstream: PointRecords,
    pub(super) downstream: PointRecords,
    merge: Merge,
    /// The share of packets that was metered, if the user says it.
    sampling: Option<f64>,
    /// Pairs were concluded before any exporter announced its share.
    unknown_rate: bool,
}

impl Streams {
    /// Reads the first records of both points, so that it is known what they have.
    pub(super) fn begin(
        upstream: PointRecords,
        downstream: PointRecords,
        window_ns: u64,
        sampling: Option<f64>,
    ) -> anyhow::Result<Self> {
        let merge = Merge::new(window_ns);
        let mut streams = Self { upstream, downstream, merge, sampling, unknown_rate: false };
        streams.fill()?;
        Ok(streams)
    }

    /// Whether all records so far have labels of their first and last packets.
    pub(super) fn are_labelled(&self) -> bool {
        self.upstream.unlabelled == 0 && self.downstream.unlabelled == 0
    }

    /// Which way flows go, where records were read without knowing it.
    pub(super) fn compare(&self) -> Option<Comparison> {
        self.upstream.survey()?.compare(self.downstream.survey()?)
    }

    /// Pairs all records.
    pub(super) fn pair(
        &mut self,
        config: &CnfConfig,
        by: By,
        estimator: RecordEstimator,
    ) -> anyhow::Result<RecordPairing> {
        let mut pairing = RecordPairing::new(RecordPairingConfig::new(config, by, estimator));
        let mut rate = self.rate();
        loop {
            if self.merge.wants().is_some() {
                self.fill()?;
                rate = self.rate();
            }
            let Some((side, record)) = self.merge.take() else { break };
            self.unknown_rate |= rate.is_none();
            pairing.offer(side, record, rate.unwrap_or(1.0));
        }
        pairing.finish(rate.unwrap_or(1.0));
        Ok(pairing)
    }

    /// The share of packets that was metered, by the user's choice; else what the records announced
    /// by now.
    pub(super) fn rate(&self) -> Option<f64> {
        self.sampling.or_else(|| self.upstream.rate()).or_else(|| self.downstream.rate())
    }

    /// Says what was wrong with either; whether a part was unusable.
    pub(super) fn note_problems(&self, rule: Rule, counts: &RecordPairingCounts) -> bool {
        let Self { upstream, downstream, .. } = self;
        let mut partial = upstream.note_problems() | downstream.note_problems();
        let unlabelled = upstream.unlabelled + downstream.unlabelled;
        if rule == Rule::Label && unlabelled > 0 {
            let records = units::count(unlabelled);
            note(format_args!("{records} records have no labels: use --associate timing"));
            partial = true;
        }
        if let (None, Some(one), Some(other)) = (self.sampling, upstream.rate(), downstream.rate())
            && (one - other).abs() > 0.1 * one.max(other)
        {
            let (one, other) = (units::percent(one), units::percent(other));
            note(format_args!("upstream metered {one} of packets, downstream {other}"));
        }
        if let Some(rate) = self.rate().filter(|rate| self.unknown_rate && *rate < 1.0) {
            note(format_args!(
                "the sampling rate {} was announced after the first records, and small flows were \
                 classified without it: use --sampling",
                units::percent(rate)
            ));
        }
        note_counts(counts) | partial
    }

    fn fill(&mut self) -> anyhow::Result<()> {
        while let Some(side) = self.merge.wants() {
            let point = match side {
                Side::Upstream => &mut self.upstream,
                Side::Downstream => &mut self.downstream,
            };
            let merge = &mut self.merge;
            if !point.read(|record| merge.push(side, record))? {
                merge.end(side);
            }
        }
        Ok(())
    }
}

/// Says where records came too late or met a bound; whether any did.
fn note_counts(counts: &RecordPairingCounts) -> bool {
    let association = &counts.association;
    let unusable = [
        (
            association.overdue,
            "records came later than the timeouts allow: check --active-timeout \
             and --inactive-timeout",
        ),
        (counts.late_delays, "delays came later than the timeouts allow: not used"),
        (association.displaced, "records were evicted before their partners came"),
        (counts.hurried, "records did not wait for the delays of others: too many were waiting"),
        (counts.forgotten_delays, "delays were evicted"),
        (counts.beyond_scopes, "records of flows beyond the maximum number: use --by"),
    ];
    for (count, what) in unusable.into_iter().chain([(association.clock_steps, "steps of a clock")])
    {
        if count > 0 {
            note(format_args!("{} {what}", units::count(count)));
        }
    }
    unusable.iter().any(|(count, _)| *count > 0)
}
