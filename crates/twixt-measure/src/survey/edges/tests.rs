//! Captures that start and stop at different times, cut to what both saw.

use twixt_model::{FlowHash, mix};

use super::super::point::{FlowEnds, PointSurvey, Sighting};
use super::super::{Heading, compare};
use super::*;

const MS: i64 = 1_000_000;

/// A packet every millisecond for a second, delays that vary between 5 and 15 ms, one in ten
/// lost; `captured` says when each point was capturing.
struct Scene {
    upstream_ms: (i64, i64),
    downstream_ms: (i64, i64),
    clock_ns: i64,
}

impl Scene {
    fn packets(&self) -> Vec<(Observation, Option<Observation>)> {
        let packet = |number: i64| {
            let digest = PacketDigest(mix(number as u64));
            let seen = |time_ns| Observation {
                time: Timestamp::from_nanos(time_ns),
                digest,
                ..Observation::default()
            };
            let delay_ns = 5 * MS + (mix(number as u64 ^ 0xabc) % 10_000_001) as i64;
            let arrives = (number % 10 != 7).then(|| seen(number * MS + delay_ns + self.clock_ns));
            (seen(number * MS), arrives)
        };
        (0..1000).map(packet).collect()
    }

    fn captured_upstream(&self, packet: &Observation) -> bool {
        let time_ms = packet.time.as_nanos() / MS;
        self.upstream_ms.0 <= time_ms && time_ms < self.upstream_ms.1
    }

    fn captured_downstream(&self, packet: &Observation) -> bool {
        let time_ms = (packet.time.as_nanos() - self.clock_ns) / MS;
        self.downstream_ms.0 <= time_ms && time_ms < self.downstream_ms.1
    }

    fn captures(&self) -> (Vec<Observation>, Vec<Observation>) {
        let packets = self.packets();
        let up = packets
            .iter()
            .map(|(sent, _)| *sent)
            .filter(|packet| self.captured_upstream(packet))
            .collect();
        let arrived = packets.iter().filter_map(|(_, arrived)| *arrived);
        let mut down: Vec<Observation> =
            arrived.filter(|packet| self.captured_downstream(packet)).collect();
        down.sort();
        (up, down)
    }

    fn edges(&self) -> Edges {
        let (up, down) = self.captures();
        let (up, down) = (survey_of(&up, 64), survey_of(&down, 63));
        Edges::new(&compare(&up, &down).unwrap()).unwrap()
    }
}

fn survey_of(packets: &[Observation], ttl: u8) -> PointSurvey {
    let mut survey = PointSurvey::new();
    for packet in packets {
        survey.saw_frame(packet.time);
        let sighting = Sighting {
            time: packet.time,
            digest: packet.digest,
            flow: FlowHash(1),
            ttl,
            passage: None,
            length: 100,
            is_fragment: false,
        };
        survey.observe(&sighting, || FlowEnds {
            reverse: FlowHash(2),
            source: 1,
            destination: 2,
            stays_local: false,
        });
    }
    survey
}

/// What is measured: digests upstream and downstream.
fn measured(scene: &Scene) -> (Vec<Observation>, Vec<Observation>) {
    let edges = scene.edges();
    let (up, down) = scene.captures();
    let of = |packets: &[Observation],
              place: Place,
              at: &dyn Fn(Timestamp) -> Place|
     -> Vec<Observation> {
        packets.iter().filter(|packet| at(packet.time) == place).copied().collect()
    };
    let up_at = |time| edges.upstream(time);
    let down_at = |time| edges.downstream(time);
    let mut kept = (of(&up, Place::Inside, &up_at), of(&down, Place::Inside, &down_at));
    for place in [Place::Start, Place::End] {
        let held = (of(&up, place, &up_at), of(&down, place, &down_at));
        let resolved = resolve(&edges, place, &held.0, &held.1);
        kept.0.extend(
            held.0
                .iter()
                .zip(&resolved.upstream)
                .filter(|(_, keep)| **keep)
                .map(|(packet, _)| *packet),
        );
        kept.1.extend(
            held.1
                .iter()
                .zip(&resolved.downstream)
                .filter(|(_, keep)| **keep)
                .map(|(packet, _)| *packet),
        );
    }
    kept.0.sort();
    kept.1.sort();
    kept
}

#[track_caller]
fn check(upstream_ms: (i64, i64), downstream_ms: (i64, i64)) {
    for clock_ns in [0, 3_600_000 * MS, -100_000 * MS] {
        let scene = Scene { upstream_ms, downstream_ms, clock_ns };
        let (up, down) = measured(&scene);
        let sent: std::collections::HashSet<_> = up.iter().map(|packet| packet.digest).collect();
        assert!(
            down.iter().all(|packet| sent.contains(&packet.digest)),
            "downstream of what is measured upstream"
        );
        // What is missing downstream was really lost, within what loss makes likely: at a loss of
        // 10 % a packet is taken for lost where fewer than one in nine would have gone unseen.
        let arrived: std::collections::HashSet<_> =
            down.iter().map(|packet| packet.digest).collect();
        let missing = up.iter().filter(|packet| !arrived.contains(&packet.digest));
        let (really, wrongly): (Vec<&Observation>, Vec<&Observation>) =
            missing.partition(|packet| (packet.time.as_nanos() / MS) % 10 == 7);
        assert!(wrongly.len() <= 2, "{} packets wrongly called lost", wrongly.len());
        let common_ms = upstream_ms.1.min(downstream_ms.1 - 15).min(1000)
            - upstream_ms.0.max(downstream_ms.0 - 5).max(0);
        assert!(really.len() as i64 >= common_ms / 10 - 2, "{} losses found", really.len());
        assert!(up.len() as i64 >= common_ms - 2, "{} of {common_ms}", up.len());
        assert!(up.len() as i64 <= common_ms + 22, "{} of {common_ms}", up.len());
    }
}

#[test]
fn captures_around_the_whole_traffic_lose_nothing() {
    check((0, 1000), (0, 2000));
}

#[test]
fn a_capture_that_starts_late_or_stops_early_makes_no_loss() {
    check((0, 1000), (300, 2000));
    check((300, 1000), (0, 2000));
    check((0, 1000), (0, 700));
    check((0, 700), (0, 2000));
    check((200, 900), (300, 700));
}

#[test]
fn a_short_common_stretch_is_resolved_at_once() {
    check((0, 40), (20, 60));
}

#[test]
fn losses_at_the_very_end_count_while_the_other_point_captures_on() {
    let scene = Scene { upstream_ms: (0, 998), downstream_ms: (0, 2000), clock_ns: 0 };
    // Packet 997 is lost; other frames show that the downstream point captured long after it.
    let (up, down) = scene.captures();
    let mut later = survey_of(&down, 63);
    later.saw_frame(Timestamp::from_nanos(1_900 * MS));
    let comparison = compare(&survey_of(&up, 64), &later).unwrap();
    let edges = Edges::new(&comparison).unwrap();
    let end = |packets: &[Observation], place: &dyn Fn(Timestamp) -> Place| -> Vec<Observation> {
        packets.iter().filter(|packet| place(packet.time) == Place::End).copied().collect()
    };
    let up_end = end(&up, &|time| edges.upstream(time));
    let down_end = end(&down, &|time| edges.downstream(time));
    let resolved = resolve(&edges, Place::End, &up_end, &down_end);
    assert!(resolved.upstream.iter().all(|&keep| keep));
    assert_eq!(
        comparison.upstream.heading(FlowHash(1), || unreachable!()),
        Some(Heading::Downstream)
    );
}
