//! What a name of a domain, point or class may be.

use std::fmt;

/// Longest name, in bytes.
pub const NAME_BYTES_MAX: usize = 255;

/// Why a text is not a name. Choose another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NameError {
    /// There is nothing.
    Empty,
    /// There is too much.
    TooLong {
        /// Its length.
        length_bytes: usize,
    },
    /// It has a character that cannot be seen, or changes how others are shown.
    Character {
        /// The first such character.
        character: char,
    },
}

impl fmt::Display for NameError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => formatter.write_str("a name must not be empty"),
            Self::TooLong { length_bytes } => {
                write!(
                    formatter,
                    "a name of {length_bytes} bytes, at most {NAME_BYTES_MAX} are allowed"
                )
            }
            Self::Character { character } => {
                write!(formatter, "a name must not contain {}", character.escape_unicode())
            }
        }
    }
}

impl std::error::Error for NameError {}

/// Checks the name of a domain, point or class: any text that can be shown.
///
/// # Errors
/// When it is empty, too long, or has a character that [`is_hidden`].
pub fn check_name(name: &str) -> Result<(), NameError> {
    match name.chars().find(|&character| is_hidden(character)) {
        _ if name.is_empty() => Err(NameError::Empty),
        _ if name.len() > NAME_BYTES_MAX => Err(NameError::TooLong { length_bytes: name.len() }),
        Some(character) => Err(NameError::Character { character }),
        None => Ok(()),
    }
}

/// Whether a character cannot be seen, or changes the lines, direction or colours of what stands
/// around it: text of others could forge lines of a log with it.
#[must_use]
pub fn is_hidden(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            // Soft hyphen, Arabic letter mark, and the invisible part of Mongolian.
            '\u{ad}' | '\u{61c}' | '\u{180e}'
            // Zero width, directions, line and paragraph separators, invisible operators.
            | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            // Byte order mark, interlinear annotation, tags.
            | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}'
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(name: &str, problem: Option<&str>) {
        let found = check_name(name).err().map(|error| error.to_string());
        assert_eq!(found.as_deref(), problem);
    }

    #[test]
    fn a_name_is_text_that_can_be_seen() {
        check("r-in", None);
        check("Zürich core/1:eth0 (北)", None);
        check(&"x".repeat(NAME_BYTES_MAX), None);
        check("", Some("a name must not be empty"));
        check(&"x".repeat(256), Some("a name of 256 bytes, at most 255 are allowed"));
        check("a\nERROR forged", Some("a name must not contain \\u{a}"));
        check("\u{1b}[31mred", Some("a name must not contain \\u{1b}"));
        check("a\u{9b}31m", Some("a name must not contain \\u{9b}"));
        check("\u{202e}reversed", Some("a name must not contain \\u{202e}"));
        check("two\u{2028}lines", Some("a name must not contain \\u{2028}"));
    }
}
