use super::*;

fn tokens() -> Tokens {
    let config = |name: &str, token: &str, points: &[&str]| TokenConfig {
        name: name.to_owned(),
        hash: TokenHash::of_token(token).unwrap(),
        points: points.iter().map(|pattern| pattern.parse().unwrap()).collect(),
    };
    Tokens::new(&[
        config("one", "0123456789abcdef", &["r-*", "core"]),
        config("two", "fedcba9876543210\n", &["x"]),
    ])
}

#[track_caller]
fn check(authorization: &str, expected: Option<&str>) {
    let caller = tokens().caller(authorization.as_bytes());
    assert_eq!(caller.as_ref().map(|caller| caller.name.as_str()), expected);
}

#[test]
fn only_a_whole_token_is_known() {
    check("Bearer 0123456789abcdef", Some("token one"));
    check("bearer  fedcba9876543210", Some("token two"));
    check("Bearer 0123456789abcde", None);
    check("Bearer 0123456789abcdef0", None);
    check("Basic 0123456789abcdef", None);
    check("Bearer ", None);
    check("", None);
}

#[test]
fn a_token_writes_its_own_points_only() {
    let caller = tokens().caller(b"Bearer 0123456789abcdef").unwrap();
    for (point, allowed) in
        [("r-in", true), ("r-", true), ("core", true), ("core1", false), ("r", false), ("", false)]
    {
        assert_eq!(caller.may_write(point), allowed, "{point}");
    }
    assert!(Caller::anonymous().may_write("anything"));
}

#[test]
fn hashes_are_those_of_sha256sum() {
    // printf 0123456789abcdef | sha256sum
    let hash = "9f9f5111f7b27a781f1f1ddde5ebc2dd2b796bfc7365c9c28b548e564176929f";
    assert_eq!(TokenHash::from_hexadecimal(hash), TokenHash::of_token("0123456789abcdef"));
    for text in ["", "9f", &hash[1..], &hash.replace('9', "g")] {
        assert_eq!(TokenHash::from_hexadecimal(text), Err(TokenError::Hash));
    }
    assert_eq!(TokenHash::of_token("short"), Err(TokenError::TooShort));
    assert_eq!(TokenHash::of_token("0123456789 abcdef"), Err(TokenError::Characters));
}

#[test]
fn patterns_have_a_star_at_the_end_or_none() {
    for text in ["a", "a*", "*"] {
        assert_eq!(text.parse::<PointPattern>().unwrap().to_string(), text);
    }
    for text in ["", "*a", "a**", "a*b"] {
        assert!(text.parse::<PointPattern>().is_err(), "{text}");
    }
}

#[test]
fn what_is_no_certificate_names_nobody() {
    assert_eq!(caller_of(b""), None);
    assert_eq!(caller_of(&[0x30; 100]), None);
}
