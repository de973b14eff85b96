//! Captures that say how many packets were dropped while they were taken.

use serde_json::Value;

use crate::support::{Crossing, MILLISECOND, Scene, twixt_fed};

/// A second of packets a millisecond apart; every fiftieth is lost.
fn crossing() -> Crossing {
    Crossing::of(1000, |number| (number % 50 != 20).then_some(2 * MILLISECOND))
}

/// Downstream did not see 98 packets that arrived from 200 to 300 ms.
fn dropping_downstream() -> Scene {
    let Crossing { upstream, downstream, .. } = crossing();
    Scene::new(&upstream, &downstream.dropping(202 * MILLISECOND, 302 * MILLISECOND))
}

/// The estimates of a run: packets, lost, and its bounds.
fn loss(estimates: &[Value]) -> Vec<[Option<u64>; 4]> {
    let keys = ["packets", "lost", "lost_min", "lost_max"];
    estimates.iter().map(|estimate| keys.map(|key| estimate[key].as_u64())).collect()
}

#[track_caller]
fn check(scene: &Scene, options: &str, expected: [Option<u64>; 4], reason: Option<&str>) {
    let document = scene.delay(&format!("{options} -F json")).expect(0).json();
    let estimates = document["estimates"].as_array().unwrap();
    assert_eq!(loss(estimates), [expected], "{document}");
    match (estimates[0]["reason"].as_str(), reason) {
        (found, None) => assert_eq!(found, None),
        (found, Some(reason)) => assert!(found.unwrap().contains(reason), "{found:?}"),
    }
}

#[test]
fn what_was_dropped_downstream_is_not_lost() {
    let (scene, between) = (dropping_downstream(), [Some(1000), None, Some(20), Some(118)]);
    let reason = "packets dropped or late, up to 98 downstream: loss is between 20 and 118";
    check(&scene, "", between, Some(reason));
    check(&scene, "-a lda", between, Some(reason));
    check(&scene, "--one-pass --toward 10.0.1.0/24", between, Some(reason));
}

#[test]
fn what_was_dropped_upstream_hides_loss_where_packets_are_counted() {
    let Crossing { upstream, downstream, .. } = crossing();
    let upstream = upstream.dropping(200 * MILLISECOND, 250 * MILLISECOND);
    let scene = Scene::new(&upstream, &downstream);
    // Of the 50 packets that upstream did not see, one was lost.
    check(&scene, "", [Some(950), Some(19), Some(19), Some(19)], None);
    let document = scene.delay("-a lda -F json").expect(0).json();
    let reason = document["estimates"][0]["reason"].as_str().unwrap();
    assert!(document["estimates"][0]["lost"].is_null(), "{document}");
    assert!(reason.contains("packets dropped or late, up to 50 upstream"), "{reason}");
}

#[test]
fn a_capture_that_dropped_nothing_leaves_loss_known() {
    let Crossing { upstream, downstream, .. } = crossing();
    let scene = Scene::new(&upstream, &downstream.dropping(0, 0));
    check(&scene, "", [Some(1000), Some(20), Some(20), Some(20)], None);
}

/// Epochs are written before the end of a pipe.
#[test]
fn a_pipe_that_reports_drops_at_its_end_is_noted() {
    let scene = dropping_downstream();
    let bytes = std::fs::read(scene.path().join("down.pcap")).unwrap();
    let line = "record -r - -w down.epochs --epoch 100ms --toward 10.0.1.0/24";
    twixt_fed(scene.path(), line, &bytes).expect(0).says(&["98 packets were dropped"]);
    // One epoch is written when all is known.
    let line = "record -r - -w down.epochs --toward 10.0.1.0/24";
    let whole = twixt_fed(scene.path(), line, &bytes).expect(0);
    assert!(!whole.stderr.contains("dropped"), "{}", whole.stderr);
}

/// The file says at its end what was dropped in whichever epoch.
#[test]
fn every_epoch_may_lack_what_was_dropped() {
    let scene = dropping_downstream();
    for capture in ["up", "down"] {
        let line = format!(
            "record -r {capture}.pcap -w {capture}.epochs -a lda --epoch 100ms --guard 10ms \
             --toward 10.0.1.0/24"
        );
        scene.run(&line).expect(0);
    }
    let runs = [
        "delay up.pcap down.pcap --epoch 100ms -F json",
        "delay up.pcap down.pcap --epoch 100ms -a lda --one-pass --toward 10.0.1.0/24 -F json",
        "delay up.epochs down.epochs -F json",
    ];
    for run in runs {
        let document = scene.run(run).expect(0).json();
        let estimates = document["estimates"].as_array().unwrap();
        assert!(estimates.len() >= 10, "{run}: {document}");
        for [packets, lost, min, max] in loss(estimates) {
            // Two of a hundred packets are lost; a boundary that is not settled leaves it unknown.
            // The last epoch has few packets, none of them missing.
            assert!(lost.is_none_or(|lost| lost == 0), "{run}: {document}");
            assert!(min.is_none_or(|min| min <= 2), "{run}: {document}");
            assert!(max.is_none_or(|max| Some(max) <= packets), "{run}: {document}");
        }
        let bounded = loss(estimates).iter().filter(|[.., max]| max.is_some()).count();
        assert!(bounded >= 5, "{run}: {document}");
        assert_eq!(document["downstream"]["dropped"], 98, "{run}");
    }
}
