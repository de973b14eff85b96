//! What an algorithm finds at the two ends of a simulated segment.

use anyhow::bail;
use twixt_measure::{Meter, MeterConfig, Pairing, PairingConfig, PairingEvent, QuestionTemplate};
use twixt_model::{BatchBuffer, Delay, EpochRule, Estimate, PointId, Segment, Timestamp};
use twixt_offline::segment;
use twixt_sim::{Side, Simulation};
use twixt_synopsis::{AnySynopsis, By, Purpose, find};

/// What one algorithm concluded.
pub(super) struct Finding {
    /// In order of time, those without packets left out.
    pub(super) estimates: Vec<Estimate>,
    /// State that one point kept per epoch, at most.
    pub(super) state_bytes: u64,
}

/// What is asked.
#[derive(Clone, Copy)]
pub(super) struct Asked {
    pub(super) algorithm: &'static str,
    pub(super) rule: EpochRule,
    pub(super) by: By,
}

/// Observations kept on each side of an epoch's boundary at most: twice what half an epoch has.
const STASH_MAX: usize = 1 << 15;

/// Runs the algorithm at both points, and brings together what they sealed.
pub(super) fn measure(simulation: &Simulation, asked: Asked) -> anyhow::Result<Finding> {
    let segment = segment();
    let end = last_seen(simulation);
    let mut pairing = Pairing::new(PairingConfig {
        segment: segment.clone(),
        class: String::new(),
        question: QuestionTemplate { by: asked.by, ..QuestionTemplate::default() },
        patience: Delay::ZERO,
    });
    let Segment { upstream, downstream } = segment;
    let mut upstream = observe(simulation, Side::Upstream, upstream, asked, end)?;
    let mut downstream = observe(simulation, Side::Downstream, downstream, asked, end)?;
    // In turn, so that no half waits for many epochs of the other.
    loop {
        let sealed = [upstream.poll(), downstream.poll()];
        if sealed.iter().all(Option::is_none) {
            break;
        }
        sealed.into_iter().flatten().for_each(|sealed| pairing.receive(sealed));
    }
    pairing.finish();
    conclude(pairing)
}

/// Hands all that a point sees to a meter, and seals it.
fn observe(
    simulation: &Simulation,
    point: Side,
    name: PointId,
    asked: Asked,
    end: Timestamp,
) -> anyhow::Result<Meter> {
    let prototype = prototype(asked.algorithm)?;
    let needs_detail = asked.by != By::All;
    // Packets wait in the queue for a large part of an epoch.
    let guard = Delay::from_nanos(asked.rule.length_ns().unwrap_or(0) / 2);
    let config = MeterConfig { guard, stash_max: STASH_MAX, ..MeterConfig::new(name, asked.rule) };
    let mut meter = Meter::new(config, prototype)?;
    let mut batch = BatchBuffer::new();
    for (observation, sighting) in simulation.observations(point).zip(simulation.sightings(point)) {
        match needs_detail {
            true => batch.push_detailed(observation, simulation.detail(sighting)),
            false => batch.push(observation),
        }
        if batch.is_full() {
            meter.observe(batch.as_batch());
            batch.clear();
        }
    }
    meter.observe(batch.as_batch());
    // Both points have as many epochs, the last ones perhaps without packets.
    let beyond = Delay::from_nanos(2 * asked.rule.length_ns().unwrap_or(0));
    meter.advance(end + beyond);
    meter.finish();
    Ok(meter)
}

fn prototype(algorithm: &str) -> anyhow::Result<Box<dyn AnySynopsis>> {
    let algorithm = find(Purpose::Delay, algorithm).expect("the registry has what the demo shows");
    Ok((algorithm.start)(&toml::Table::new())?)
}

fn last_seen(simulation: &Simulation) -> Timestamp {
    let points = [Side::Upstream, Side::Downstream];
    let last = points.iter().filter_map(|&point| simulation.sightings(point).last());
    last.map(|sighting| sighting.time).max().unwrap_or_default()
}

fn conclude(mut pairing: Pairing) -> anyhow::Result<Finding> {
    let mut finding = Finding { estimates: Vec::new(), state_bytes: 0 };
    while let Some(event) = pairing.poll() {
        match event {
            PairingEvent::Estimated { estimates, upstream, downstream, .. } => {
                let state_bytes = upstream.synopsis_bytes.max(downstream.synopsis_bytes);
                finding.state_bytes = finding.state_bytes.max(state_bytes);
                finding.estimates.extend(estimates);
            }
            PairingEvent::Unpaired { epoch, point, reason } => {
                bail!("epoch {}: {point}: {reason}", epoch.0);
            }
            PairingEvent::Refused { epoch, reason } => bail!("epoch {}: {reason}", epoch.0),
        }
    }
    finding.estimates.retain(|estimate| estimate.evidence.packets > 0);
    Ok(finding)
}
