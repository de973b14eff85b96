//! Captures whose frames are not in order of time, such as one file of each queue, appended.

use serde_json::Value;

use crate::support::{Crossing, Run, Scene};

/// A second, with delays from 1 to about 4 ms; every fiftieth packet is lost.
fn measured(crossing: &Crossing, queues: usize, epoch: &str) -> Run {
    let [upstream, downstream] =
        [&crossing.upstream, &crossing.downstream].map(|capture| capture.clone().by_queue(queues));
    Scene::new(&upstream, &downstream).delay(&format!("-a lda -F json --epoch {epoch}"))
}

fn estimates(run: &Run) -> Vec<Value> {
    run.json()["estimates"].as_array().unwrap().clone()
}

#[test]
fn frames_that_come_within_a_few_epochs_count_as_in_order() {
    let crossing = Crossing::varied();
    let sorted = measured(&crossing, 1, "200ms").expect(0);
    let appended = measured(&crossing, 4, "200ms").expect(0);
    assert_eq!(estimates(&appended), estimates(&sorted));
    assert!(!appended.stderr.contains("time order"), "{}", appended.stderr);
}

#[test]
fn frames_that_come_too_late_are_reported_and_never_counted_as_lost() {
    let crossing = Crossing::varied();
    let appended = measured(&crossing, 4, "50ms").expect(0);
    assert!(appended.stderr.contains("frames are out of time order"), "{}", appended.stderr);
    let sorted = measured(&crossing, 1, "50ms").expect(0);
    let (found, truth) = (estimates(&appended), estimates(&sorted));
    assert_eq!(found.len(), truth.len());
    let mut unknown = 0;
    for (estimate, truth) in found.iter().zip(&truth) {
        assert_eq!(estimate["start_ns"], truth["start_ns"]);
        let lost = truth["lost"].as_u64().unwrap();
        let [min, max] = ["lost_min", "lost_max"].map(|key| estimate[key].as_u64());
        let is_within = min.is_none_or(|min| min <= lost) && max.is_none_or(|max| max >= lost);
        assert!(is_within, "{estimate}, in truth {lost}");
        assert!(estimate["lost"].is_null() || estimate["lost"] == lost, "{estimate}");
        unknown += usize::from(estimate["lost"].is_null());
    }
    assert!(0 < unknown && unknown < found.len(), "{unknown} of {}", found.len());
}

/// Packets are matched before time is cut: the order in which they come does not matter.
#[test]
fn frames_out_of_order_change_nothing_where_packets_are_matched() {
    let crossing = Crossing::varied();
    let of = |queues| {
        let [upstream, downstream] = [&crossing.upstream, &crossing.downstream]
            .map(|capture| capture.clone().by_queue(queues));
        Scene::new(&upstream, &downstream).delay("-F json --epoch 50ms").expect(0).silent()
    };
    assert_eq!(estimates(&of(4)), estimates(&of(1)));
}

/// Read once, it is known too late which epochs lack packets.
#[test]
fn a_capture_that_is_read_once_is_reported_when_it_is_not_in_order() {
    let crossing = Crossing::varied();
    let scene = Scene::new(&crossing.upstream.clone().by_queue(4), &crossing.downstream);
    for arguments in [
        "record -r up.pcap -w up.epochs --epoch 50ms",
        "delay up.pcap down.pcap -a lda --one-pass --toward 10.0.1.9 --epoch 50ms",
    ] {
        let run = scene.run(arguments).expect(0);
        assert!(run.stderr.contains("up.pcap: not in time order"), "{}", run.stderr);
        assert!(!run.stderr.contains("down.pcap: not in time order"), "{}", run.stderr);
    }
}
