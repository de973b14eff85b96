use super::*;
use crate::known::{TopDelay, TopEstimate};
use crate::news::{KindLine, PointLine};

fn estimate(upstream: &str, class: &str, p99_ns: Option<i64>) -> TopEstimate {
    let cell = CellName {
        upstream: upstream.to_owned(),
        downstream: "ams".to_owned(),
        class: class.to_owned(),
    };
    let p99 = TopDelay { value_ns: p99_ns, ..TopDelay::default() };
    TopEstimate { cell, scope: "all".to_owned(), p99, used: Some(500), ..TopEstimate::default() }
}

fn segments(totals: Vec<TopEstimate>) -> News {
    News::Segments { totals, courses: Courses::default(), span_ns: (0, 60), remark: None }
}

fn three() -> TopState {
    let mut state = TopState::of_collector("http://localhost");
    let totals = vec![
        estimate("fra", "voice", Some(5)),
        estimate("zrh", "bulk", None),
        estimate("lon", "voice", Some(9)),
    ];
    state.apply(segments(totals), 1_000);
    state
}

fn names(state: &TopState) -> Vec<&str> {
    let (shown, _) = state.segments.shown(&state.filter);
    shown.into_iter().map(|line| line.cell.upstream.as_str()).collect()
}

fn press(state: &mut TopState, keys: &[TopKey]) {
    for key in keys {
        assert!(state.press(*key), "{key:?} ends the view");
    }
}

fn typed(text: &str) -> Vec<TopKey> {
    text.chars().map(TopKey::Letter).collect()
}

#[test]
fn the_worst_come_first_and_the_unknown_last_either_way() {
    let mut state = three();
    assert_eq!(names(&state), ["lon", "fra", "zrh"]);
    press(&mut state, &typed("o"));
    assert_eq!(names(&state), ["fra", "lon", "zrh"]);
    // p99, loss, packets, name: as many steps as columns lie between.
    press(&mut state, &typed("sss"));
    assert_eq!((state.segments.sort, state.segments.is_reversed), (Column::Name, false));
    assert_eq!(names(&state), ["fra", "lon", "zrh"]);
}

#[test]
fn a_selected_line_stays_selected_when_the_order_changes() {
    let mut state = three();
    press(&mut state, &[TopKey::Down]);
    assert_eq!(state.selected_cell().unwrap().upstream, "fra");
    let totals = vec![estimate("fra", "voice", Some(50)), estimate("lon", "voice", Some(9))];
    state.apply(segments(totals), 2_000);
    assert_eq!(names(&state), ["fra", "lon"]);
    assert_eq!(state.wanted().heat.unwrap().upstream, "fra");
    // When it is gone, the one in its place is.
    state.apply(segments(vec![estimate("zrh", "voice", Some(1))]), 3_000);
    assert_eq!(state.wanted().heat.unwrap().upstream, "zrh");
}

#[test]
fn no_key_leaves_the_table() {
    let mut state = three();
    for key in [TopKey::Up, TopKey::PageDown, TopKey::End, TopKey::Down, TopKey::Home] {
        press(&mut state, &[key]);
        assert!(state.selected_cell().is_some());
    }
    let mut empty = TopState::of_collector("x");
    press(&mut empty, &[TopKey::End, TopKey::Up, TopKey::Enter, TopKey::Letter('s')]);
    assert_eq!(empty.wanted(), Wanted::default());
}

#[test]
fn a_filter_is_part_of_a_name_and_letters_are_not_keys_while_it_is_typed() {
    let mut state = three();
    press(&mut state, &typed("/VOq"));
    assert_eq!(names(&state), [""; 0]);
    press(&mut state, &[TopKey::Backspace]);
    assert_eq!(names(&state), ["lon", "fra"]);
    press(&mut state, &[TopKey::Enter, TopKey::Down]);
    assert_eq!(state.selected_cell().unwrap().upstream, "fra");
    press(&mut state, &[TopKey::Escape]);
    assert_eq!(names(&state).len(), 3);
    assert!(!state.press(TopKey::Letter('q')));
}

#[test]
fn enter_asks_for_flows_and_escape_goes_back() {
    let mut state = three();
    press(&mut state, &[TopKey::Enter]);
    let wanted = state.wanted();
    assert_eq!(wanted.flows.as_ref().unwrap().upstream, "lon");
    assert!(!wanted.by_loss && wanted.heat.is_none());
    // Mean, p50, p95, p99, loss.
    press(&mut state, &typed("ssss"));
    assert!(state.wanted().by_loss);
    press(&mut state, &[TopKey::Letter('r')]);
    assert_eq!(state.wanted().asked, 1);
    press(&mut state, &[TopKey::Escape]);
    assert_eq!(state.view, View::Segments);
}

#[test]
fn values_stay_when_an_answer_is_missing() {
    let mut state = three();
    state.apply(News::Failed("connection refused".to_owned()), 5_000);
    assert_eq!((state.answered_ns, names(&state).len()), (Some(1_000), 3));
    assert_eq!(state.failed.as_deref(), Some("connection refused"));
    state.apply(segments(Vec::new()), 9_000);
    assert_eq!((state.answered_ns, state.failed.clone()), (Some(9_000), None));
}

#[test]
fn a_point_has_two_tables() {
    let mut state = TopState::of_point("eth0");
    let kind = |name: &str, measured| KindLine { name: name.to_owned(), measured, times_ns: None };
    let flow =
        |name: &str, packets| PointLine { name: name.to_owned(), packets, ..PointLine::default() };
    let seen = PointSeen {
        kinds: vec![kind("dns", 3), kind("tcp-handshake", 9)],
        flows: vec![flow("a", 1), flow("b", 7)],
        ..PointSeen::default()
    };
    state.apply(News::Point(seen), 1);
    assert_eq!(state.point_flows.selected("").unwrap().name, "b");
    press(&mut state, &[TopKey::Tab, TopKey::Down]);
    assert_eq!(state.point_flows.selected("").unwrap().name, "a");
    assert_eq!(state.focus(), (Column::Packets, false, 2, 2));
    assert_eq!(state.wanted(), Wanted::default());
}

#[test]
fn help_is_closed_by_any_key() {
    let mut state = three();
    press(&mut state, &typed("?j"));
    assert!(!state.shows_help);
    assert_eq!(state.selected_cell().unwrap().upstream, "lon", "the key did nothing else");
}
