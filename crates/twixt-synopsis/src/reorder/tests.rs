//! What all three have in common: epochs, bytes, merging.

use proptest::prelude::*;
use twixt_model::{
    Detail, FlowHash, FlowKey, Observation, ReorderEstimate, Span, TcpFields, Timestamp, tcp_flag,
};

use super::*;
use crate::{OnePoint, Question, Reader, Synopsis, Writer};

/// A packet of 100 bytes of data, number `place` of its flow; flows `n` and `n + 4` share a prefix.
type Step = (u8, u8);

fn packet(index: usize, (flow, place): Step) -> (Observation, Detail) {
    let observation = Observation {
        time: Timestamp::from_nanos(index as i64 * 1_000_000),
        flow: FlowHash(twixt_model::mix(flow.into())),
        length: 140,
        ..Observation::default()
    };
    let source = [10, 0, flow % 4, flow].into();
    let sequence = 1000 + 100 * u32::from(place);
    let tcp =
        TcpFields { sequence, payload_bytes: 100, flags: tcp_flag::ACK, ..Default::default() };
    let key = FlowKey { source, ..FlowKey::default() };
    // As senders count them.
    let identification = place.into();
    (observation, Detail { key, tcp: Some(tcp), identification, ..Detail::default() })
}

fn feed<S: Synopsis>(synopsis: &mut S, steps: &[Step], from: usize) {
    for (index, step) in steps.iter().enumerate() {
        let (observation, detail) = packet(from + index, *step);
        synopsis.update_detailed(&observation, &detail);
    }
}

fn conclude<S: OnePoint<Conclusion = ReorderEstimate>>(synopsis: &S) -> Vec<ReorderEstimate> {
    synopsis.conclude(&Question::about(Span::at(Timestamp::from_nanos(0))))
}

fn judged(estimates: &[ReorderEstimate]) -> [u64; 3] {
    let sum = |count: fn(&ReorderEstimate) -> u64| estimates.iter().map(count).sum();
    [sum(|one| one.packets), sum(|one| one.out_of_order), sum(|one| one.retransmitted)]
}

/// Bytes read back; and epochs that are cut anywhere add up to what was never cut.
fn check<S: OnePoint<Conclusion = ReorderEstimate>>(steps: &[Step], cut: usize) {
    let cut = cut.min(steps.len());
    let (mut whole, mut parts) = (S::new(&S::Config::default()), S::new(&S::Config::default()));
    feed(&mut whole, steps, 0);
    let mut out = Writer::new();
    whole.encode(&mut out);
    let bytes = out.into_bytes();
    let again = S::decode(&mut Reader::new(&bytes)).unwrap();
    assert_eq!(conclude(&again), conclude(&whole));

    feed(&mut parts, &steps[..cut], 0);
    let mut sealed = parts.cut();
    feed(&mut parts, &steps[cut..], cut);
    sealed.merge(&parts);
    assert_eq!(conclude(&sealed), conclude(&whole), "{}", S::NAME);
    assert_eq!(sealed.totals(), whole.totals());
}

proptest! {
    #![proptest_config(twixt_testing::cases(64))]

    #[test]
    fn flows_go_on_across_epochs(
        steps in prop::collection::vec((0..8_u8, 0..20_u8), 0..200), cut in 0..200_usize,
    ) {
        check::<ReorderExact>(&steps, cut);
        check::<ReorderSampled>(&steps, cut);
        check::<ReorderHybrid>(&steps, cut);
    }
}

/// Places 0, 2, 1, 3 of one flow, again and again, between other flows of the same prefix.
fn among_unlisted() -> Vec<Step> {
    let swapped = |place: u8| {
        if place % 4 == 1 {
            2
        } else if place % 4 == 2 {
            1
        } else {
            place % 4
        }
    };
    (0..200_u8)
        .map(|place| (0, place / 4 * 4 + swapped(place)))
        .flat_map(|own| [own, (4, 0)])
        .collect()
}

#[test]
fn every_packet_is_judged_by_the_referee_and_those_of_large_flows_by_hybrid() {
    let mut exact = ReorderExact::new(&Default::default());
    feed(&mut exact, &among_unlisted(), 0);
    // The other flow's packets after its first are sent again and again.
    assert_eq!(judged(&conclude(&exact)), [400, 50, 199]);
    let mut hybrid = ReorderHybrid::new(&Default::default());
    feed(&mut hybrid, &among_unlisted(), 0);
    assert_eq!(judged(&conclude(&hybrid)), [398, 50, 199]);
}

#[test]
fn sampled_flows_of_a_prefix_take_turns() {
    let mut sampled = ReorderSampled::new(&Default::default());
    feed(&mut sampled, &among_unlisted(), 0);
    let [packets, out_of_order, retransmitted] = judged(&conclude(&sampled));
    assert!((150..250).contains(&packets), "{packets} of 400");
    // A quarter of what is judged of the one flow, all of the other.
    assert!((20..32).contains(&out_of_order) && retransmitted > 60, "{out_of_order}");
}

#[test]
fn settings_out_of_range_are_refused() {
    let refused = |name: &str, settings: &str| {
        let algorithm = crate::find(crate::Purpose::Reorder, name).unwrap();
        (algorithm.start)(&settings.parse().unwrap()).unwrap_err().to_string()
    };
    assert!(refused("exact", "prefix = 33").contains("prefix must be"));
    assert!(refused("exact", "prefix6 = 129").contains("prefix6 must be"));
    assert!(refused("sampled", "records = 2").contains("records must be"));
    assert!(refused("sampled", "share = 0.5").contains("hybrid"));
    assert!(refused("hybrid", "share = 1.5").contains("share must be"));
    assert!(refused("hybrid", "cap = 0").contains("cap must be"));
    assert!(refused("hybrid", "definition = \"best\"").contains("best"));
}
