//! Names of numbers in filters.

/// Protocols that are conditions by their name alone.
const PROTOCOLS: [(&str, u8); 13] = [
    ("icmp", 1),
    ("igmp", 2),
    ("ipip", 4),
    ("tcp", 6),
    ("udp", 17),
    ("gre", 47),
    ("esp", 50),
    ("ah", 51),
    ("icmp6", 58),
    ("ospf", 89),
    ("pim", 103),
    ("vrrp", 112),
    ("sctp", 132),
];

pub(super) fn protocol(name: &str) -> Option<u8> {
    PROTOCOLS.iter().find(|(known, _)| *known == name).map(|&(_, number)| number)
}

pub(super) fn of_protocol(number: u8) -> Option<&'static str> {
    PROTOCOLS.iter().find(|(_, known)| *known == number).map(|&(name, _)| name)
}

/// Code points of RFC 2474 (`cs`), RFC 2597 (`af`), RFC 3246 (`ef`), RFC 5865 (`va`) and
/// RFC 8622 (`le`).
pub(super) fn dscp(name: &str) -> Option<u8> {
    match name.as_bytes() {
        b"be" => Some(0),
        b"le" => Some(1),
        b"va" => Some(44),
        b"ef" => Some(46),
        [b'c', b's', class @ b'0'..=b'7'] => Some((class - b'0') * 8),
        [b'a', b'f', class @ b'1'..=b'4', precedence @ b'1'..=b'3'] => {
            Some((class - b'0') * 8 + (precedence - b'0') * 2)
        }
        _ => None,
    }
}

/// The name of a code point, or its number where it has none.
#[must_use]
pub fn dscp_name(code_point: u8) -> String {
    let classes = (0..8).map(|class| format!("cs{class}"));
    let assured = (1..5).flat_map(|class| (1..4).map(move |drop| format!("af{class}{drop}")));
    let single = ["be", "le", "va", "ef"].into_iter().map(str::to_owned);
    let mut names = single.chain(assured).chain(classes);
    names.find(|name| dscp(name) == Some(code_point)).unwrap_or_else(|| code_point.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_points_have_their_registered_values() {
        let named = [("cs0", 0), ("cs6", 48), ("af11", 10), ("af23", 22), ("af41", 34), ("ef", 46)];
        for (name, value) in named {
            assert_eq!(dscp(name), Some(value), "{name}");
        }
        for name in ["cs8", "af44", "af51", "af1", "EF", ""] {
            assert_eq!(dscp(name), None, "{name}");
        }
    }

    #[test]
    fn code_points_have_their_usual_names() {
        let named = [(0, "be"), (1, "le"), (8, "cs1"), (10, "af11"), (46, "ef"), (63, "63")];
        for (code_point, name) in named {
            assert_eq!(dscp_name(code_point), name);
        }
    }
}
