//! Epochs as a point would seal and store them, and what they tell.

use std::path::Path;

use twixt_measure::{CutKind, MeterConfig, Sealed, Stash, Tally};
use twixt_model::{Delay, Epoch, EpochRule, Observation, PointId, Span, Timestamp};
use twixt_store::{Durability, EpochEntry, Log, Options};
use twixt_synopsis::{By, Colate, ColateConfig, Pair, Question, Synopsis, TwoPoint, encode};

use crate::traffic::{Flow, Traffic};
use crate::{Outcome, Setting};

/// Whole observations are kept so near to a boundary: twenty times the usual delay.
const GUARD_NS: i64 = 20_000_000;
/// Room for all of them at a million packets per second.
const STASH_MAX: usize = 1 << 15;
const LARGE: u64 = 1000;

/// What came of a setting. Bits are per packet and point.
pub(crate) struct Recorded {
    pub(crate) epochs: u64,
    /// Of counters alone.
    pub(crate) mean_bits: f64,
    pub(crate) least_bits: f64,
    pub(crate) most_bits: f64,
    /// Of all files of the store.
    pub(crate) stored_bits: f64,
    /// Median relative error of large flows in the first epoch, if asked for.
    pub(crate) error: Option<f64>,
}

impl Recorded {
    pub(crate) fn of(
        folder: &Path,
        setting: &Setting,
        config: &ColateConfig,
        rate: u64,
    ) -> Outcome<Self> {
        let log = Log::open(folder, Options::default());
        let mut writer = log.writer("paris")?;
        let traffic = Traffic::new();
        let packets = rate * setting.epoch_s;
        let epochs = (setting.seconds / setting.epoch_s).max(1);
        let mut bits = Vec::new();
        let mut error = None;
        for number in 0..epochs {
            let flows = traffic.flows(number, packets);
            let mut counted = Counted::new(setting, config, number);
            counted.count(&traffic, &flows, setting.asks && number == 0);
            if setting.asks && number == 0 {
                error = counted.error(&flows);
            }
            bits.push(encode(&counted.upstream).len() as f64 * 8.0 / packets as f64);
            let (span, epoch) = (counted.span, counted.epoch);
            let entry = EpochEntry { stream: "colate", span, epoch };
            writer.append(&entry, &counted.sealed(packets).to_bytes(), Durability::Written)?;
        }
        drop(writer);
        let stored_bytes = log.bound(u64::MAX)?.left_bytes.unwrap_or(0);
        Ok(Self {
            epochs,
            mean_bits: bits.iter().sum::<f64>() / bits.len() as f64,
            least_bits: bits.iter().copied().fold(f64::INFINITY, f64::min),
            most_bits: bits.iter().copied().fold(0.0, f64::max),
            stored_bits: stored_bytes as f64 * 8.0 / (packets * epochs) as f64,
            error,
        })
    }
}

/// One epoch: what upstream counted, and downstream if it is asked for.
struct Counted {
    rule: EpochRule,
    epoch: Epoch,
    span: Span,
    upstream: Colate,
    downstream: Colate,
    head: Stash,
    tail: Stash,
    /// Sums of delays, flow by flow.
    delays_ns: Vec<i64>,
}

impl Counted {
    fn new(setting: &Setting, config: &ColateConfig, number: u64) -> Self {
        let rule = EpochRule::every(setting.epoch_s as i64 * 1_000_000_000).expect("not nothing");
        let first = rule.epoch_of(Timestamp::from_nanos(1_704_067_200_000_000_000));
        let epoch = Epoch(first.0 + number as i64);
        Self {
            rule,
            epoch,
            span: rule.span_of(epoch),
            upstream: Colate::new(config),
            downstream: Colate::new(config),
            head: Stash::head(STASH_MAX),
            tail: Stash::tail(STASH_MAX),
            delays_ns: Vec::new(),
        }
    }

    fn count(&mut self, traffic: &Traffic, flows: &[Flow], both: bool) {
        let (start_ns, length_ns) =
            (self.span.start.as_nanos(), self.rule.length_ns().unwrap_or(0));
        for flow in flows {
            let mut sum_ns = 0;
            for (packet, delay_ns) in traffic.packets(flow, start_ns, length_ns) {
                self.upstream.update(&packet);
                let into_ns = packet.time.as_nanos() - start_ns;
                if into_ns < GUARD_NS {
                    self.head.insert(packet);
                } else if into_ns >= length_ns - GUARD_NS {
                    self.tail.insert(packet);
                }
                if both {
                    let time = packet.time + Delay::from_nanos(delay_ns);
                    self.downstream.update(&Observation { time, ..packet });
                    sum_ns += delay_ns;
                }
            }
            self.delays_ns.push(sum_ns);
        }
    }

    fn error(&self, flows: &[Flow]) -> Option<f64> {
        let known: Vec<_> = flows.iter().map(Flow::known).collect();
        let question = Question { by: By::Flow, flows: &known, ..Question::about(self.span) };
        let pair = Pair { upstream: &self.upstream, downstream: &self.downstream };
        let estimates = Colate::estimate(pair, &question);
        let mut errors: Vec<f64> = Vec::new();
        for ((estimate, flow), &sum_ns) in estimates.iter().zip(flows).zip(&self.delays_ns) {
            let mean_ns = sum_ns as f64 / flow.packets as f64;
            if let Some(delay) = estimate.delay.filter(|_| flow.packets >= LARGE) {
                errors.push((delay.mean_ns() - mean_ns).abs() / mean_ns);
            }
        }
        errors.sort_by(f64::total_cmp);
        errors.get(errors.len() / 2).copied()
    }

    fn sealed(self, packets: u64) -> Sealed {
        let meter = MeterConfig::new(PointId("paris".to_owned()), self.rule);
        Sealed {
            domain: meter.domain,
            point: meter.point,
            class: meter.class,
            run: 1,
            epoch: self.epoch,
            rule: self.rule,
            cut: CutKind::Timed,
            shift: Delay::ZERO,
            guard: Delay::from_nanos(GUARD_NS),
            torn: false,
            time_source: meter.time_source,
            clock_bound: None,
            digest: meter.digest,
            seen: Some(self.span),
            packets,
            tally: Tally::default(),
            head: self.head,
            tail: self.tail,
            synopsis: Box::new(self.upstream),
        }
    }
}
