//! Whole screens, at a small and a large size.

mod flows;
mod large;
mod point;

use expect_test::{Expect, expect};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Buffer;

use super::*;
use crate::course::Courses;
use crate::known::{CellName, TopDelay, TopEstimate};
use crate::news::{HeatColumn, HeatMap, News};
use crate::state::TopKey;

/// 2026-11-18 12:00:00.
const NOON_NS: i64 = 1_795_003_200_000_000_000;
const SECOND_NS: i64 = 1_000_000_000;

fn screen(state: &TopState, (width, height): (u16, u16), palette: Palette) -> Buffer {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw(frame, state, NOON_NS, palette)).unwrap();
    terminal.backend().buffer().clone()
}

/// The letters of a screen, without spaces at the ends of lines.
fn letters(buffer: &Buffer) -> String {
    let width = usize::from(buffer.area.width);
    let lines = buffer.content.chunks(width).map(|line| {
        let line: String = line.iter().map(ratatui::buffer::Cell::symbol).collect();
        line.trim_end().to_owned() + "\n"
    });
    lines.collect()
}

#[track_caller]
fn check(state: &TopState, size: (u16, u16), expected: &Expect) {
    expected.assert_eq(&letters(&screen(state, size, Palette::Plain)));
}

fn measured(value_ns: i64, half: i64) -> TopDelay {
    let ends = [value_ns - half, value_ns + half].map(Some);
    TopDelay { value_ns: Some(value_ns), low_ns: ends[0], high_ns: ends[1] }
}

fn estimate(upstream: &str, downstream: &str, class: &str, delay_ns: i64) -> TopEstimate {
    let cell = CellName {
        upstream: upstream.to_owned(),
        downstream: downstream.to_owned(),
        class: class.to_owned(),
    };
    TopEstimate {
        cell,
        scope: "all".to_owned(),
        algorithm: "lda".to_owned(),
        used: Some(9_000),
        packets: Some(10_000),
        lost: Some((0, 0)),
        mean: measured(delay_ns, delay_ns / 400),
        p50: measured(delay_ns * 9 / 10, delay_ns / 100),
        p95: measured(delay_ns * 2, delay_ns / 100),
        p99: measured(delay_ns * 3, delay_ns / 100),
        reason: None,
    }
}

/// Four lines: one with loss, one weak, one unknown.
fn estimates() -> Vec<TopEstimate> {
    let lossy = TopEstimate {
        lost: Some((123, 123)),
        ..estimate("fra-ams", "ams-fra", "video", 4_213_456)
    };
    let weak = TopEstimate { used: Some(12), ..estimate("lon-par", "par-lon", "bulk", 900_000) };
    let unknown = TopEstimate {
        mean: TopDelay::default(),
        p50: TopDelay::default(),
        p95: TopDelay::default(),
        p99: TopDelay::default(),
        lost: None,
        reason: Some("the epoch of par-zrh is missing".to_owned()),
        ..estimate("par-zrh", "zrh-par", "voice", 1)
    };
    vec![lossy, weak, unknown, estimate("fra-ams", "ams-fra", "voice", 18_250_000)]
}

fn segments() -> TopState {
    let span_ns = (NOON_NS - 60 * SECOND_NS, NOON_NS);
    let mut courses = Courses::default();
    for second in (0..60).filter(|second| !(20..25).contains(second)) {
        let delay_ns = if second < 40 { 4_000_000 } else { 4_000_000 * (second - 38) };
        let start_ns = span_ns.0 + second * SECOND_NS;
        courses.add(start_ns, &estimate("fra-ams", "ams-fra", "voice", delay_ns));
    }
    let mut state = TopState::of_collector("http://127.0.0.1:9443");
    let news = News::Segments { totals: estimates(), courses, span_ns, remark: None };
    state.apply(news, NOON_NS);
    let cell = state.wanted().heat.expect("a line is selected");
    let column = |second: i64| HeatColumn {
        start_ns: span_ns.0 + second * SECOND_NS,
        end_ns: span_ns.0 + (second + 1) * SECOND_NS - 1,
        first: if second < 40 { 176 } else { 176 + (second as i32 - 40) },
        packets: vec![5.0, 80.0, 10.0, 1.0],
    };
    let columns = (0..60).filter(|second| !(20..25).contains(second)).map(column).collect();
    state.apply(News::Heat { cell, answer: Ok(HeatMap { span_ns, scale: 3, columns }) }, NOON_NS);
    state
}

fn typed(state: &mut TopState, keys: &str) {
    for key in keys.chars() {
        assert!(state.press(TopKey::Letter(key)));
    }
}

#[test]
fn segments_on_a_small_terminal() {
    check(
        &segments(),
        (80, 24),
        &expect![[r#"
            twixt top  http://127.0.0.1:9443  12:00:00 UTC
            last 60 s · 4 of 4 by p99
            segment           class          mean ± 95 %     p95     p99     loss over time
            fra-ams > ams-fra voice    18.250 ± 0.046 ms 36.5 ms 54.8 ms      0 % ▁▁▁▁▁▁▁▃▆█
            fra-ams > ams-fra video     4.213 ± 0.011 ms 8.43 ms 12.6 ms   1.23 %
            lon-par > par-lon bulk        900.0 ± 2.2 µs 1.80 ms 2.70 ms      0 %
            par-zrh > zrh-par voice                    –       –       –        –







            by lda
             30.8 ms                                                                   ▓▓███
                                                                                   ▓▓▓███▓
                                                                                ▓▓████▓
                                                                           ▓▓█████▓
                                                                       ▓▓▓███▓
                     ▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓      ▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓████▓
             4.19 ms ███████████████████████      ████████████████████▓
                     11:59:00                                                       12:00:00
            ? help · q quit · Enter flows · s sort · o order · / filter · r refresh
        "#]],
    );
}

#[test]
fn segments_on_a_large_terminal() {
    check(
        &segments(),
        (200, 50),
        &expect![[r#"
            twixt top  http://127.0.0.1:9443  12:00:00 UTC
            last 60 s · 4 of 4 by p99
            segment                                                                 class          mean ± 95 %     p50     p95     p99     loss packets over time
            fra-ams > ams-fra                                                       voice    18.250 ± 0.046 ms 16.4 ms 36.5 ms 54.8 ms      0 %   10.0k ▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁     ▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▂▂▂▃▃▃▄▄▅▅▅▆▆▆▇▇▇██
            fra-ams > ams-fra                                                       video     4.213 ± 0.011 ms 3.79 ms 8.43 ms 12.6 ms   1.23 %   10.0k
            lon-par > par-lon                                                       bulk        900.0 ± 2.2 µs  810 µs 1.80 ms 2.70 ms      0 %   10.0k
            par-zrh > zrh-par                                                       voice                    –       –       –       –        –   10.0k























            by lda
             30.8 ms                                                                                                                                                                                         ▓▓▓▓▓▓▓
                                                                                                                                                                                                          ▓▓▓▓▓▓████
                                                                                                                                                                                                    ▓▓▓▓▓▓██████▓▓▓▓
                                                                                                                                                                                                ▓▓▓▓▓▓▓███▓▓▓
                                                                                                                                                                                             ▓▓▓▓▓▓▓███▓▓▓
                                                                                                                                                                                       ▓▓▓▓▓▓███████▓▓▓
                                                                                                                                                                                    ▓▓▓▓▓▓███▓▓▓
                                                                                                                                                                                ▓▓▓▓▓▓▓███▓▓▓
                                                                                                                                                                          ▓▓▓▓▓▓███████▓▓▓
                                                                                                                                                                       ▓▓▓▓▓▓███▓▓▓▓
                                                                                                                                                                    ▓▓▓▓▓▓███▓▓▓
                                                                                                                                                             ▓▓▓▓▓▓▓██████▓▓▓
                                                                                                                                                          ▓▓▓▓▓▓▓███▓▓▓
                                                                                                                                                       ▓▓▓▓▓▓████▓▓▓
                     ▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓                ▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓██████▓▓▓▓
                     ███████████████████████████████████████████████████████████████                ███████████████████████████████████████████████████▓▓▓
             4.19 ms ▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓                ▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓
                     11:59:00                                                                                                                                                                               12:00:00
            ? help · q quit · Enter flows · s sort · o order · / filter · r refresh
        "#]],
    );
}

#[test]
fn a_narrow_terminal_has_fewer_columns_and_no_picture() {
    check(
        &segments(),
        (50, 12),
        &expect![[r#"
            twixt top  http://127.0…  12:00:00 UTC
            last 60 s · 4 of 4 by p99
            segment                       mean ± 95 %     loss
            fra-ams > ams-fra       18.250 ± 0.046 ms      0 %
            fra-ams > ams-fra        4.213 ± 0.011 ms   1.23 %
            lon-par > par-lon          900.0 ± 2.2 µs      0 %
            par-zrh > zrh-par                       –        –



            by lda
            ? help · q quit · Enter flows · s sort · o order …
        "#]],
    );
}

#[test]
fn a_tiny_terminal_is_told_what_it_takes() {
    check(
        &segments(),
        (30, 4),
        &expect![[r#"
        terminal too small: 30x4, at
        least 44x10 needed


    "#]],
    );
    for size in [(1, 1), (0, 0), (44, 10), (44, 200), (500, 10)] {
        let _ = screen(&segments(), size, Palette::Colours);
    }
}

#[test]
fn values_that_are_old_are_called_so() {
    let mut state = segments();
    state.answered_ns = Some(NOON_NS - 15 * SECOND_NS);
    state.apply(News::Failed("connection refused".to_owned()), NOON_NS);
    let shown = letters(&screen(&state, (80, 24), Palette::Plain));
    let head = shown.lines().next().unwrap();
    assert!(head.ends_with("values of 11:59:45, 15 s ago: connection refu…"), "{head}");
    assert!(shown.contains("fra-ams > ams-fra"), "they stay");
    let mut never = TopState::of_collector("http://127.0.0.1:1");
    never.apply(News::Failed("connection refused".to_owned()), NOON_NS);
    check(
        &never,
        (80, 10),
        &expect![[r#"
            twixt top  http://127.0.0.1:1  no answer: connection refused

            waiting for the first answer of http://127.0.0.1:1
            no answer: connection refused





            ? help · q quit · Enter flows · s sort · o order · / filter · r refresh
        "#]],
    );
}

#[test]
fn help_fits_a_small_terminal() {
    let mut state = segments();
    typed(&mut state, "?");
    check(
        &state,
        (80, 24),
        &expect![[r#"
        twixt top  http://127.0.0.1:9443  12:00:00 UTC
        last 60 s · 4 of 4 by p99
        ↑ ↓  j k    one line
        PgUp PgDn   ten lines; Home, End: first and last
        s  o        sort by the next column; the other way round
        /           filter: lines with this text in their names (points,
                    classes, flows); Enter keeps it, Esc ends it
        Enter  Esc  flows of the selected line, and back
        r           ask again now
        q  Ctrl-C   quit

        ±           95 % interval of the mean
        dim         weak: fewer than 100 packets, or half an interval
                    of more than a quarter of the value
        –           unknown; below the table stands why








        ? help · q quit · Enter flows · s sort · o order · / filter · r refresh
    "#]],
    );
}

#[test]
fn what_was_typed_is_seen() {
    let mut state = segments();
    typed(&mut state, "/vid");
    check(
        &state,
        (80, 12),
        &expect![[r#"
            twixt top  http://127.0.0.1:9443  12:00:00 UTC
            last 60 s · 1 of 4 by p99 · filter: vid_
            segment           class          mean ± 95 %     p95     p99     loss over time
            fra-ams > ams-fra video     4.213 ± 0.011 ms 8.43 ms 12.6 ms   1.23 %






            by lda
            type a part of a name · Enter keeps it · Esc drops it
        "#]],
    );
    typed(&mut state, "x");
    let shown = letters(&screen(&state, (80, 12), Palette::Plain));
    assert!(shown.contains("0 of 4") && shown.contains("no name has this in it"), "{shown}");
}

#[test]
fn no_name_steers_the_terminal() {
    let evil = "\u{1b}]0;x\u{7}\u{1b}[2J\u{202e}<b>'\"\r\n".to_owned() + &"長".repeat(2_000);
    let mut state = TopState::of_collector(evil.clone());
    let hostile = TopEstimate {
        reason: Some(evil.clone()),
        algorithm: evil.clone(),
        ..estimate(&evil, &evil, &evil, 7)
    };
    let span_ns = (i64::MIN, i64::MAX);
    let news = News::Segments {
        totals: vec![hostile.clone()],
        courses: Courses::default(),
        span_ns,
        remark: Some(evil.clone()),
    };
    state.apply(news, i64::MIN);
    let cell = hostile.cell.clone();
    state.apply(News::Heat { cell: cell.clone(), answer: Err(evil.clone()) }, i64::MAX);
    typed(&mut state, "/");
    let mut screens = vec![letters(&screen(&state, (80, 24), Palette::Colours))];
    assert!(state.press(TopKey::Escape) && state.press(TopKey::Enter));
    let flows = vec![TopEstimate { scope: evil.clone(), ..hostile }];
    state.apply(News::Flows { cell, flows, remark: Some(evil.clone()) }, 0);
    screens.push(letters(&screen(&state, (80, 24), Palette::Colours)));
    state.apply(News::Failed(evil), 0);
    screens.push(letters(&screen(&state, (200, 50), Palette::Colours)));
    for shown in screens {
        let is_hostile =
            |letter: char| letter != '\n' && (letter.is_control() || letter == '\u{202e}');
        assert!(!shown.contains(is_hostile), "{shown:?}");
        assert!(shown.contains("長"), "names are shown otherwise: {shown}");
    }
}

#[test]
fn weak_values_are_dim_and_loss_is_red() {
    let state = segments();
    let buffer = screen(&state, (80, 24), Palette::Colours);
    let text = letters(&buffer);
    let style_of = |word: &str| {
        let line = text.lines().position(|line| line.contains(word)).expect("it is shown");
        let at = text.lines().nth(line).unwrap().find(word).unwrap();
        let column = text.lines().nth(line).unwrap()[..at].chars().count();
        buffer[(column as u16, line as u16)].style()
    };
    assert!(style_of("900").add_modifier.contains(Modifier::DIM));
    assert!(!style_of("4.213").add_modifier.contains(Modifier::DIM));
    assert_eq!(style_of("1.23 %").fg, Some(Color::Red));
}
