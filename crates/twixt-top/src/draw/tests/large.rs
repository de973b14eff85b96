//! A large network: more lines than a terminal has.

use super::*;

const SEGMENTS: usize = 300;
const CLASSES: [&str; 3] = ["voice", "web", "backup"];

/// As many segments, each slower than the one before.
fn network() -> TopState {
    let totals = (0..SEGMENTS).flat_map(|number| {
        let [upstream, downstream] = [number, number + 1].map(|end| format!("router-{end:03}"));
        let delay_ns = 1_000_000 + 10_000 * number as i64;
        CLASSES.map(|class| estimate(&upstream, &downstream, class, delay_ns))
    });
    let mut state = TopState::of_collector("https://collector.example:9443");
    let span_ns = (NOON_NS - 60 * SECOND_NS, NOON_NS);
    let (totals, courses) = (totals.collect(), Courses::default());
    state.apply(News::Segments { totals, courses, span_ns, remark: None }, NOON_NS);
    state
}

fn press(state: &mut TopState, keys: &[TopKey]) {
    keys.iter().for_each(|key| assert!(state.press(*key)));
}

/// The names of the lines that are shown, and which of them is selected.
fn lines(state: &TopState) -> (Vec<String>, usize) {
    let buffer = screen(state, (80, 24), Palette::Plain);
    let all = letters(&buffer);
    let rows = all.lines().enumerate().filter(|(_, line)| line.starts_with("router"));
    let rows: Vec<(usize, &str)> = rows.collect();
    let is_selected =
        |row: usize| buffer[(0, row as u16)].style().add_modifier.contains(Modifier::REVERSED);
    let place = rows.iter().position(|(row, _)| is_selected(*row)).expect("one line is selected");
    let name = |line: &str| line.split_whitespace().take(4).collect::<Vec<_>>().join(" ");
    (rows.iter().map(|(_, line)| name(line)).collect(), place)
}

#[test]
fn the_selected_line_is_always_shown() {
    let mut state = network();
    let (first, place) = lines(&state);
    assert_eq!((first[0].as_str(), place), ("router… > router… backup", 0));
    let mut visible = first.len();
    for keys in [&[TopKey::End][..], &[TopKey::PageUp], &[TopKey::Up; 7], &[TopKey::Home]] {
        press(&mut state, keys);
        let (shown, _) = lines(&state);
        visible = visible.min(shown.len());
    }
    assert_eq!(visible, first.len(), "the table is full wherever it is");
    press(&mut state, &[TopKey::End]);
    assert_eq!(state.selected_cell().unwrap().upstream, "router-000", "the fastest is the last");
    for _ in 0..1_000 {
        press(&mut state, &[TopKey::PageUp]);
    }
    assert_eq!(state.selected_cell().unwrap().upstream, "router-299");
}

#[test]
fn a_filter_finds_one_among_many_and_a_sort_holds_within_it() {
    let mut state = network();
    typed(&mut state, "/ROUTER-150 >");
    press(&mut state, &[TopKey::Enter]);
    let shown = letters(&screen(&state, (80, 24), Palette::Plain));
    assert!(shown.contains("3 of 900"), "{shown}");
    press(&mut state, &[TopKey::Escape]);
    typed(&mut state, "o");
    assert_eq!(state.selected_cell().unwrap().upstream, "router-000", "the fastest is the first");
    typed(&mut state, "/web");
    press(&mut state, &[TopKey::Enter, TopKey::End]);
    let cell = state.selected_cell().unwrap();
    assert_eq!((cell.upstream.as_str(), cell.class.as_str()), ("router-299", "web"));
}

#[test]
fn wide_and_foreign_names_keep_columns_in_line() {
    let names =
        ["東京データセンター-一号館", "\u{5de}\u{5e8}\u{5db}\u{5d6}-1", "x".repeat(4_096).leak()];
    let totals = names.map(|name| estimate(name, "ams", "voice", 4_000_000)).to_vec();
    let mut state = TopState::of_collector(names[0]);
    let span_ns = (NOON_NS - 60 * SECOND_NS, NOON_NS);
    let news = News::Segments { totals, courses: Courses::default(), span_ns, remark: None };
    state.apply(news, NOON_NS);
    for width in [44, 45, 80, 81, 120, 200] {
        let buffer = screen(&state, (width, 12), Palette::Plain);
        let ends: Vec<u16> = (3..6)
            .map(|row| {
                let is_mark = |column: &u16| buffer[(*column, row)].symbol() == "±";
                (0..width).find(is_mark).expect("a mean is shown")
            })
            .collect();
        assert!(ends.iter().all(|end| *end == ends[0]), "{width}: {ends:?}\n{}", letters(&buffer));
        // Both points are seen.
        assert!((3..6).all(|row| (0..width).any(|column| buffer[(column, row)].symbol() == ">")));
    }
}
