//! Pairs stored epochs: the halves of one series in a range of time, in order, into estimates.
//!
//! Live epochs are paired in the same way ([`crate::Engine`]); what is missing here will not come,
//! so nothing is waited for. Reading the halves is the caller's business.

use std::sync::Arc;

use twixt_measure::{QuestionTemplate, Sealed};
use twixt_model::{Delay, Epoch};
use twixt_synopsis::KnownFlow;

use crate::aligned::{AlignedConfig, AlignedPairing, Conclusion, Judgement, rule_of};
use crate::alignment::Alignment;
use crate::event::Series;
use crate::sample::{PointSample, has_boundary_packets};

/// What is paired, and how.
#[derive(Clone, Debug)]
pub struct StoredSeries {
    /// Segment, class, algorithm and length of epoch.
    pub series: Series,
    /// What is asked of the algorithm.
    pub question: QuestionTemplate,
    /// Downstream's epochs have numbers larger by this.
    pub realigned_epochs: i64,
    /// How much is checked before an epoch is estimated.
    pub check: StreamCheck,
}

/// How much is checked before an epoch is estimated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamCheck {
    /// As the engine does: epochs whose packets near the boundaries have nothing in common are not
    /// estimated, and loss is not known beside an epoch that is missing.
    Boundaries,
    /// The user says that both points saw the same packets, and that the first and last epochs are
    /// whole.
    Nothing,
}

/// A stored half of an epoch.
#[derive(Clone, Debug)]
pub struct StoredHalf {
    /// As its point sealed it.
    pub sealed: Sealed,
    /// The flows in it, if the algorithm needs them: upstream's only.
    pub flows: Option<Arc<[KnownFlow]>>,
}

/// Pairs the halves of one series as they are read.
#[derive(Debug)]
pub struct StoredPairing {
    pairing: AlignedPairing,
    /// The newest epochs of upstream and downstream, by upstream's numbers.
    reached: [Option<Epoch>; 2],
    boundaries: Option<Boundaries>,
    series: Series,
}

/// What both points kept near the boundaries of epochs.
#[derive(Debug)]
struct Boundaries {
    alignment: Alignment,
    samples: [Option<PointSample>; 2],
}

/// Pairs the halves of one series, which come in the order of upstream's numbers, and hands over
/// the estimates. Epochs beside those of interest are to be among them: they have a part of the
/// packets in flight.
pub fn pair_stored(
    config: StoredSeries,
    halves: impl IntoIterator<Item = StoredHalf>,
    mut take: impl FnMut(Conclusion),
) {
    let mut pairing = StoredPairing::new(config);
    for half in halves {
        pairing.receive(half);
        while let Some(conclusion) = pairing.poll() {
            take(conclusion);
        }
    }
    pairing.finish();
    while let Some(conclusion) = pairing.poll() {
        take(conclusion);
    }
}

impl StoredPairing {
    /// Nothing received yet.
    #[must_use]
    pub fn new(config: StoredSeries) -> Self {
        let StoredSeries { series, question, realigned_epochs, check } = config;
        let boundaries = (check == StreamCheck::Boundaries).then(|| Boundaries {
            alignment: Alignment::resumed(rule_of(&series), realigned_epochs),
            samples: [None, None],
        });
        let aligned = AlignedConfig {
            series: series.clone(),
            question,
            realigned_epochs,
            patience: Delay::ZERO,
        };
        let pairing = AlignedPairing::new(aligned, Epoch(i64::MIN), None);
        Self { pairing, reached: [None; 2], boundaries, series }
    }

    /// Takes a half.
    pub fn receive(&mut self, StoredHalf { sealed, flows }: StoredHalf) {
        let rule = sealed.rule;
        let end = usize::from(sealed.point == self.series.segment.downstream);
        if let Some(boundaries) = &mut self.boundaries
            && has_boundary_packets(&sealed)
        {
            let sample = boundaries.samples[end].get_or_insert_with(|| PointSample::of(&sealed));
            sample.add(&sealed);
        }
        self.reached[end] = Some(self.pairing.receive(sealed, flows));
        // What is missing before the newest epoch that both have will not come.
        if let [Some(one), Some(other)] = self.reached {
            self.pairing.advance(rule.span_of(one.min(other)).start);
        }
    }

    /// Nothing more comes.
    pub fn finish(&mut self) {
        self.pairing.finish();
    }

    /// What is concluded of the next epoch.
    pub fn poll(&mut self) -> Option<Conclusion> {
        let Self { pairing, boundaries, .. } = self;
        pairing.poll(&mut |epoch| {
            let trusted = || Judgement { has_whole_ends: true, ..Judgement::default() };
            boundaries.as_mut().map_or_else(trusted, |known| known.judge(epoch))
        })
    }
}

impl Boundaries {
    fn judge(&mut self, epoch: Epoch) -> Judgement {
        let [Some(up), Some(down)] = &self.samples else { return Judgement::default() };
        let verdict = self.alignment.judge(epoch, up, down);
        Judgement { refused: verdict.refused, is_edge: verdict.is_edge, has_whole_ends: false }
    }
}
