//! Screens of flows.

use expect_test::expect;

use super::*;

#[test]
fn flows_of_a_segment() {
    let mut state = segments();
    assert!(state.press(TopKey::Enter));
    check(
        &state,
        (80, 10),
        &expect![[r#"
        twixt top  http://127.0.0.1:9443  12:00:00 UTC
        flows of fra-ams > ams-fra voice · 0 of 0 by mean ± 95 %
        asking for flows: epochs are paired again






        ? help · q quit · Esc segments · s sort · o order · / filter · r refresh
    "#]],
    );
    let flow = |scope: &str, delay_ns| TopEstimate {
        scope: scope.to_owned(),
        ..estimate("fra-ams", "ams-fra", "voice", delay_ns)
    };
    let flows = vec![
        flow("udp 10.0.0.1:5004 > 10.9.0.1:5004", 70_000),
        flow("tcp 10.0.0.2:1 > 10.9.0.1:443", 9_000),
    ];
    let cell = state.wanted().flows.expect("flows are shown");
    state.apply(News::Flows { cell, flows, remark: None }, NOON_NS);
    check(
        &state,
        (80, 10),
        &expect![[r#"
            twixt top  http://127.0.0.1:9443  12:00:00 UTC
            flows of fra-ams > ams-fra voice · 2 of 2 by mean ± 95 %
            flow                                                mean ± 95 %     p99     loss
            udp 10.0.0.1:5004 > 10.9.0.1:5004               70.00 ± 0.17 µs  210 µs      0 %
            tcp 10.0.0.2:1 > 10.9.0.1:443                  9.000 ± 0.022 µs 27.0 µs      0 %



            by lda
            ? help · q quit · Esc segments · s sort · o order · / filter · r refresh
        "#]],
    );
}
