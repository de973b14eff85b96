//! An interface on a terminal, with traffic. Needs root, `ip` and `unshare`.

use std::path::Path;

use twixt_testing::{OnTerminal, require, run};

use super::on_terminal;
use crate::support::live::{PACKETS, in_namespace, send};

#[test]
fn an_interface_on_a_terminal_with_real_traffic() {
    in_namespace(|| {
        require!(program "python3");
        let mut screen = on_terminal((80, 24), "top -i far --interval 200ms udp port 5000");
        let first = screen.wait("0 packets");
        assert!(first.contains("twixt top  far"), "{first}");
        send();
        let shown = screen.wait(&format!("{PACKETS} packets"));
        assert!(shown.contains("udp 10.0.0.1:4000 > 10.0.0.2:5000"), "{shown}");
        assert!(shown.contains("no round trip yet: the point must see both directions"), "{shown}");
        screen.keys("q");
        assert_eq!(screen.ends(0), "");
    });
}

#[test]
fn round_trips_of_an_interface_on_a_terminal() {
    in_namespace(|| {
        require!(program "python3");
        run("ip link set lo up");
        let mut screen = on_terminal((80, 24), "top -i lo --interval 200ms udp port 53");
        screen.wait("0 packets");
        crate::live_one_point::ask_for_names();
        let shown = screen.wait("120 packets");
        let line =
            shown.lines().find(|line| line.starts_with("dns")).expect("round trips of names");
        assert!(line.contains(" 60 ") && line.contains("ms"), "{shown}");
        screen.keys("\t");
        screen.wait("2 of 2 by packets");
        screen.keys("\u{3}");
        screen.ends(130);
    });
}

#[test]
fn an_interface_that_goes_away_leaves_the_view_and_says_so() {
    in_namespace(|| {
        require!(program "python3");
        let mut screen = on_terminal((80, 24), "top -i far --interval 200ms udp port 5000");
        screen.wait("0 packets");
        send();
        screen.wait(&format!("{PACKETS} packets"));
        run("ip link del near");
        let shown = screen.wait("disappeared");
        assert!(shown.contains("udp 10.0.0.1:4000"), "what was measured stays: {shown}");
        screen.keys("q");
        assert!(screen.ends(3).contains("far: the interface disappeared"));
    });
}

#[test]
fn what_cannot_be_captured_is_reported_before_the_terminal_is_taken() {
    require!(program "python3");
    let screen = on_terminal((80, 24), "top -i no-such-thing0");
    assert!(screen.ends(1).contains("no-such-thing0"));
    let program = Path::new("setpriv");
    require!(program "setpriv");
    let words =
        ["--bounding-set=-all", "--inh-caps=-all", env!("CARGO_BIN_EXE_twixt"), "top", "-i", "lo"];
    let screen = OnTerminal::start((80, 24), program, words, &[]);
    let said = screen.ends(1);
    assert!(said.contains("lo") && said.contains("setcap") || said.contains("root"), "{said}");
}
