//! Screens of one point.

use expect_test::expect;

use super::*;
use crate::news::{KindLine, PointLine, PointSeen};

fn point() -> TopState {
    let mut state = TopState::of_point("edge.pcap");
    let kind = |name: &str, measured, mean_ns: f64| KindLine {
        name: name.to_owned(),
        measured,
        times_ns: (measured > 0).then(|| {
            let tail = |factor: f64| Some((mean_ns * factor) as i64);
            (mean_ns, Some(mean_ns / 50.0), [tail(0.9), tail(2.0), tail(4.0)])
        }),
    };
    let flow = |name: &str, packets| PointLine {
        name: name.to_owned(),
        packets,
        packets_at_least: packets - packets / 9,
        bytes: packets * 700,
    };
    let seen = PointSeen {
        packets: 12_815,
        skipped: 3,
        dropped: Some(7),
        kinds: vec![kind("tcp-handshake", 3, 32_000.0), kind("dns", 0, 0.0)],
        flows: vec![
            flow("tcp 10.201.1.1:52520 > 10.201.2.1:5301", 4_120),
            flow("tcp [2001:db8::1]:52520 > [2001:db8::2]:443", 17),
        ],
        ended: Some("read to its end".to_owned()),
    };
    state.apply(News::Point(seen), NOON_NS);
    state
}

#[test]
fn a_point_on_a_small_terminal() {
    check(
        &point(),
        (80, 24),
        &expect![[r#"
        twixt top  edge.pcap  12:00:00 UTC
        2 of 2 by packets
        12.8k packets · 3 skipped · 7 dropped by the kernel · read to its end
        round trips                  measured        mean ± 95 %     p50     p95     p99
        tcp-handshake                       3    32.00 ± 0.64 µs 28.8 µs 64.0 µs  128 µs
        dns                                 0                  –       –       –       –

        flows                                                  packets  certain    bytes
        tcp 10.201.1.1:52520 > 10.201.2.1:5301                    4120     3663     2.9M
        tcp [2001:db8::1]:52520 > [2001:db8::2]:443                 17       16    11.9k













        ? help · q quit · Tab other table · s sort · o order · / filter
    "#]],
    );
}

#[test]
fn a_point_on_a_large_terminal() {
    let large = letters(&screen(&point(), (200, 50), Palette::Colours));
    assert!(large.contains("tcp [2001:db8::1]:52520 > [2001:db8::2]:443"), "{large}");
    assert!(large.lines().count() == 50 && large.contains("7 dropped by the kernel"), "{large}");
}
