//! What filters select, and how they complain.

use proptest::prelude::*;
use twixt_wire::{FILTER_BYTES_MAX, Filter, FilterError, Packet};

use crate::build::{Tcp, V4, echo, ethernet, ipv4, ipv6, mpls, parsed, udp, vlan};

/// TCP from 10.0.0.1:40312 to 10.0.1.9:443, VLAN 7, code point ef, 57 bytes.
fn web() -> Packet {
    let packet = V4 { tos: 0xb8, ..V4::default() }.carrying(6, &Tcp::default().carrying(b"hello"));
    parsed(&ethernet(0x8100, &vlan(7, 0x0800, &packet))).unwrap()
}

#[track_caller]
fn check(text: &str, packet: &Packet, expected: bool) {
    let filter: Filter = text.parse().unwrap();
    assert_eq!(filter.matches(packet), expected, "{text}");
    let again: Filter = filter.to_string().parse().unwrap();
    assert_eq!(again, filter, "{filter} reads back");
}

#[track_caller]
fn check_web(text: &str, expected: bool) {
    check(text, &web(), expected);
}

#[test]
fn addresses() {
    check_web("host 10.0.0.1", true);
    check_web("host 10.0.1.9", true);
    check_web("host 10.0.0.2", false);
    check_web("src host 10.0.0.1", true);
    check_web("dst host 10.0.0.1", false);
    check_web("src 10.0.0.1", true);
    check_web("10.0.1.9", true);
    check_web("net 10.0.0.0/16", true);
    check_web("dst net 10.0.1.0/24", true);
    check_web("src net 10.0.1.0/24", false);
    check_web("10.0.1.0/24", true);
    check_web("src and dst net 10.0.0.0/8", true);
    check_web("src and dst net 10.0.0.0/24", false);
    check_web("src or dst net 10.0.0.0/24", true);
    check_web("net 0.0.0.0/0", true);
    check_web("net ::/0", false);
    let six = parsed(&ethernet(0x86dd, &ipv6(17, &udp(1, 2, b"")))).unwrap();
    check("src host 2001:db8::1 and ip6", &six, true);
    check("net 2001:db8::/32", &six, true);
    check("net 2001:db9::/32", &six, false);
    check("net 0.0.0.0/0", &six, false);
    check("ip", &six, false);
}

#[test]
fn ports_and_protocols() {
    check_web("port 443", true);
    check_web("src port 443", false);
    check_web("tcp dst port 443", true);
    check_web("udp port 443", false);
    check_web("portrange 400-500", true);
    check_web("src portrange 400-500", false);
    check_web("proto 6", true);
    check_web("proto udp", false);
    check_web("ip proto tcp", true);
    check_web("ip host 10.0.0.1", true);
    check_web("ip6 host 10.0.0.1", false);
    for (name, number) in [("icmp", 1), ("esp", 50), ("icmp6", 58), ("sctp", 132)] {
        let packet = parsed(&ethernet(0x0800, &ipv4(number, &[0; 12]))).unwrap();
        check(name, &packet, true);
        check_web(name, false);
    }
    let ping = parsed(&ethernet(0x0800, &ipv4(1, &echo(1, 2)))).unwrap();
    check("port 0", &ping, false);
    let later = V4 { fragment: 9, ..V4::default() }.carrying(6, &[0; 30]);
    check("portrange 0-65535", &parsed(&ethernet(0x0800, &later)).unwrap(), false);
}

#[test]
fn marks_and_lengths() {
    check_web("vlan", true);
    check_web("vlan 7", true);
    check_web("vlan 8", false);
    check_web("mpls", false);
    check_web("dscp ef", true);
    check_web("dscp 46", true);
    check_web("dscp af11 or cs6", false);
    check_web("less 57", true);
    check_web("less 56", false);
    check_web("greater 57", true);
    check_web("greater 58", false);
    let bare = parsed(&ethernet(0x8847, &mpls(1, &ipv4(89, &[0; 9])))).unwrap();
    check("mpls and not vlan", &bare, true);
}

#[test]
fn operators() {
    check_web("not udp", true);
    check_web("!tcp", false);
    check_web("tcp&&port 443", true);
    check_web("udp||(tcp)", true);
    check_web("not (udp or port 80)", true);
    check_web("not udp and port 80", false);
    check_web("port 80 or 443", true);
    check_web("tcp port 80 or 443 and not host 10.9.9.9", true);
    check_web("host 10.9.9.9 or 10.0.0.0/24", true);
    check_web("not not tcp", true);
    check_web("vlan and tcp", true);
    // As in tcpdump, both bind equally: (tcp or udp) and port 80.
    check_web("tcp or udp and port 80", false);
    check_web("tcp or (udp and port 80)", true);
}

#[track_caller]
fn check_error(text: &str, expected: &str) {
    assert_eq!(text.parse::<Filter>().unwrap_err().to_string(), expected);
}

#[test]
fn errors_say_where_and_what() {
    let condition = "a condition such as host, net, port or tcp";
    check_error("", &format!("at character 1: expected {condition}, found the end"));
    check_error("tcp and", &format!("at character 8: expected {condition}, found the end"));
    check_error("prot 6", &format!("at character 1: expected {condition}, found \"prot\""));
    check_error("tcp or or udp", &format!("at character 8: expected {condition}, found \"or\""));
    check_error("tcp udp", "at character 5: expected and, or, or the end, found \"udp\"");
    check_error("tcp & udp", "at character 5: expected and, or, or the end, found \"&\"");
    check_error(
        "(tcp",
        "at character 5: expected and, or, or a closing parenthesis, found the end",
    );
    check_error("tcp)", "at character 4: expected and, or, or the end, found \")\"");
    check_error("port 65536", "at character 6: expected a port from 0 to 65535, found \"65536\"");
    check_error("port +1", "at character 6: expected a port from 0 to 65535, found \"+1\"");
    check_error("host 10.0.0", "at character 6: expected an IP address, found \"10.0.0\"");
    check_error(
        "portrange 9-1",
        "at character 11: expected two ports such as 8000-8080, found \"9-1\"",
    );
    check_error(
        "vlan 4096",
        "at character 6: expected a VLAN number from 0 to 4095, found \"4096\"",
    );
    check_error(
        "src tcp",
        "at character 5: expected an address, a prefix, host, net or port, found \"tcp\"",
    );
    check_error("port äöü", "at character 6: expected a port from 0 to 65535, found \"äöü\"");
}

#[test]
fn length_and_depth_are_bounded() {
    let long = "tcp or ".repeat(FILTER_BYTES_MAX / 7 + 1);
    assert_eq!(long.parse::<Filter>(), Err(FilterError::TooLong { found: long.len() }));
    let wide = format!("{}tcp", "tcp or ".repeat(1000));
    assert!(wide.parse::<Filter>().is_ok());
    let nested = format!("{}tcp{}", "(".repeat(1000), ")".repeat(1000));
    assert_eq!(nested.parse::<Filter>(), Err(FilterError::TooDeep));
    assert_eq!("not ".repeat(1000).parse::<Filter>(), Err(FilterError::TooDeep));
    let alternating = format!("{}tcp", "ip and ip or ".repeat(500));
    assert_eq!(alternating.parse::<Filter>(), Err(FilterError::TooDeep));
}

proptest! {
    #![proptest_config(twixt_testing::cases(2000))]

    /// Words in any order never make the reader panic, and what it accepts reads back.
    #[test]
    fn any_words_are_read_or_refused(words in prop::collection::vec(word(), 0..12)) {
        let text = words.join(" ");
        if let Ok(filter) = text.parse::<Filter>() {
            let _ = filter.matches(&web());
            prop_assert_eq!(filter.to_string().parse::<Filter>().unwrap(), filter, "{}", text);
        }
    }

    #[test]
    fn any_text_is_read_or_refused(text in "\\PC{0,60}") {
        let _ = text.parse::<Filter>();
    }
}

fn word() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "and",
        "or",
        "not",
        "(",
        ")",
        "src",
        "dst",
        "host",
        "net",
        "port",
        "portrange",
        "proto",
        "tcp",
        "ip",
        "ip6",
        "vlan",
        "mpls",
        "dscp",
        "ef",
        "less",
        "greater",
        "10.0.0.1",
        "::1",
        "10.0.0.0/8",
        "80",
        "443",
        "1-9",
        "&",
        "é",
    ])
}
