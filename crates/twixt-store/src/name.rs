//! Names of points as names of folders: any text, safely, and back.

/// Longest name of a folder on the file systems in use.
const FOLDER_BYTES_MAX: usize = 255;

/// The folder of a point. Letters, digits and a few signs stay as they are, other bytes become
/// `%` and two hexadecimal digits. `None` if that is too long for a file system.
#[must_use]
pub fn folder_of(point: &str) -> Option<String> {
    let mut folder = String::new();
    for (index, letter) in point.char_indices() {
        let plain = letter.is_alphanumeric() || "-_+@=,".contains(letter);
        if plain || (letter == '.' && index > 0) {
            folder.push(letter);
        } else {
            let mut bytes = [0; 4];
            for byte in letter.encode_utf8(&mut bytes).bytes() {
                folder += &format!("%{byte:02X}");
            }
        }
    }
    if point.is_empty() {
        folder.push('%');
    }
    (folder.len() <= FOLDER_BYTES_MAX).then_some(folder)
}

/// The point of a directory; `None` if twixt did not name it.
#[must_use]
pub fn point_of(folder: &str) -> Option<String> {
    if folder == "%" {
        return Some(String::new());
    }
    let mut bytes = Vec::new();
    let mut rest = folder.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => hexadecimal(rest.next()?)? << 4 | hexadecimal(rest.next()?)?,
            plain => plain,
        });
    }
    let point = String::from_utf8(bytes).ok()?;
    // One name, one folder: others are not ours.
    (folder_of(&point).as_deref() == Some(folder)).then_some(point)
}

fn hexadecimal(digit: u8) -> Option<u8> {
    (digit as char).to_digit(16).map(|value| value as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(point: &str, folder: &str) {
        assert_eq!(folder_of(point).as_deref(), Some(folder));
        assert_eq!(point_of(folder).as_deref(), Some(point));
    }

    #[test]
    fn names_become_folders_and_names_again() {
        check("paris-core-1", "paris-core-1");
        check("eth0.5", "eth0.5");
        check("zürich", "zürich");
        check("", "%");
        check(".", "%2E");
        check("..", "%2E.");
        check("../etc", "%2E.%2Fetc");
        check("a b/c%d\0\n", "a%20b%2Fc%25d%00%0A");
        check("→", "%E2%86%92");
    }

    #[test]
    fn only_one_folder_is_that_of_a_name() {
        for folder in ["%2e", "%61", "%2", "%", "%zz", "a/b", "..", "%FF", "lost+found"] {
            let point = point_of(folder);
            assert!(point.is_none_or(|point| folder_of(&point).as_deref() == Some(folder)));
        }
        assert_eq!(point_of("%2e"), None);
        assert_eq!(point_of("%FF"), None);
    }

    #[test]
    fn names_too_long_for_a_file_system_are_refused() {
        assert!(folder_of(&"a".repeat(255)).is_some());
        assert!(folder_of(&"a".repeat(256)).is_none());
        assert!(folder_of(&" ".repeat(86)).is_none());
    }
}
