//! Pictures of `top` for the book: real screens, of the demo.

mod drawing;

use std::path::PathBuf;

use serde_json::{Value, json};
use twixt_testing::{OnTerminal, require, wait_until};

use super::{demo, on_terminal};
use crate::support::folder;
use drawing::{DARK, LIGHT, drawn};

/// Columns and lines of a picture.
const SIZE: (u16, u16) = (110, 30);

/// Writes the screen as it is, light and dark, to the folder of the book, if it is to be renewed.
fn take(screen: &mut OnTerminal, name: &str) {
    let lines = screen.step(&json!({ "show": true }))["lines"].clone();
    for (theme, mode) in [(&LIGHT, "light"), (&DARK, "dark")] {
        let picture = drawn(&lines, theme);
        let book = std::env::var_os("TWIXT_PICTURES").map(|book| PathBuf::from(book).join("top"));
        if let Some(book) = book {
            std::fs::create_dir_all(&book).unwrap();
            std::fs::write(book.join(format!("{name}-{mode}.svg")), &picture).unwrap();
        }
    }
}

/// The words of a screen are those of its picture.
fn check_whole(lines: &Value) {
    let picture = drawn(lines, &LIGHT);
    // The heat map is there as well.
    assert!(picture.matches("<rect").count() > 20, "{picture}");
    for run in lines.as_array().unwrap().iter().flat_map(|line| line.as_array().unwrap()) {
        for word in run[0].as_str().unwrap().split_whitespace().filter(|word| word.is_ascii()) {
            let word = word.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
            assert!(picture.contains(&word), "{word} is not in the picture");
        }
    }
}

#[test]
fn pictures_of_the_demo() {
    require!(program "python3");
    let folder = folder();
    // Simulated time keeps pace with the clock: the incidents come in their first minute.
    let (_running, address) = demo(folder.path(), "127.0.0.1:0");
    let arguments = format!("top --collector http://{address} --window 2m");
    let mut screen = on_terminal(SIZE, &arguments);
    // The segments are there from the start, and the worst of them is known once its queue was seen.
    screen.wait("ams-fra");
    screen.wait("▀");
    check_whole(&screen.step(&json!({ "show": true }))["lines"]);
    if std::env::var_os("TWIXT_PICTURES").is_some() {
        await_incident(&mut screen);
    }
    take(&mut screen, "segments");
    screen.keys("\r");
    screen.wait(" > 198.");
    take(&mut screen, "flows");
    screen.keys("q");
    assert_eq!(screen.ends(0), "");
}

/// Waits until the queue of the demo has come and gone: the heat map shows both.
fn await_incident(screen: &mut OnTerminal) {
    let is_over = |shown: &str| {
        let course = shown.lines().nth(3).unwrap_or_default();
        let letters: Vec<char> = course.chars().filter(|of| ('▁'..='█').contains(of)).collect();
        let is_calm = letters.last().is_some_and(|last| *last < '▃');
        letters.contains(&'█') && is_calm && letters.len() > 9
    };
    wait_until("the queue has come and gone", || is_over(&screen.shown()));
}

#[test]
fn a_picture_shows_letters_blocks_and_colours() {
    let lines = json!([
        [["a < b & c", null, null, "b"], ["  ", null, null, ""]],
        [["▀ ", 220, 16, ""], ["▁█", null, null, "r"], ["dim", null, null, "d"]],
    ]);
    let picture = drawn(&lines, &DARK);
    assert!(picture.contains(">a &lt; b &amp; c</text>"), "{picture}");
    assert!(picture.contains("#ffd700"), "colour 220 of the 256: {picture}");
    assert!(!picture.contains('▀') && !picture.contains('█'), "blocks are drawn: {picture}");
}
