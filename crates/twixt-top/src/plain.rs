//! Texts from outside, as they may be shown on a terminal.

use unicode_width::UnicodeWidthChar;

/// Stands for a character that is not shown.
const HIDDEN: char = '\u{fffd}';

/// A text without characters that steer a terminal or turn the direction of writing, in at most
/// `columns` columns. What is left out is marked.
#[must_use]
pub fn plain(text: &str, columns: usize) -> String {
    let mut shown = String::new();
    let mut used = 0;
    // Where the mark goes, if not all of the text fits.
    let mut end = 0;
    for letter in text.chars() {
        let letter = if is_hidden(letter) { HIDDEN } else { letter };
        let width = letter.width().unwrap_or(0);
        if used + width > columns {
            shown.truncate(end);
            if columns > 0 {
                shown.push('…');
            }
            return shown;
        }
        shown.push(letter);
        used += width;
        if used < columns {
            end = shown.len();
        }
    }
    shown
}

/// Control characters, marks that change the direction, and characters without any width, which may
/// be stacked without end.
fn is_hidden(letter: char) -> bool {
    letter.is_control() || letter.width().unwrap_or(0) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, columns: usize, expected: &str) {
        assert_eq!(plain(text, columns), expected);
    }

    #[test]
    fn what_steers_a_terminal_is_marked() {
        check("a\u{1b}[31mb\n\u{7}\u{9b}2J", 20, "a\u{fffd}[31mb\u{fffd}\u{fffd}\u{fffd}2J");
        check("fra\u{202e}sma\u{2066}\u{200b}", 20, "fra\u{fffd}sma\u{fffd}\u{fffd}");
        check("e\u{301}\u{301}\u{301}", 20, "e\u{fffd}\u{fffd}\u{fffd}");
    }

    #[test]
    fn long_texts_are_cut_where_they_fit() {
        check("abcdef", 6, "abcdef");
        check("abcdef", 5, "abcd…");
        check("日本語", 5, "日本…");
        check("日本語", 4, "日…");
        check("abc", 0, "");
        assert_eq!(plain(&"x".repeat(4_096), 10), "xxxxxxxxx…");
    }
}
