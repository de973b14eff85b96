//! `twixt top` on a pseudo-terminal, as users see it.

mod access;
mod large;
mod late;
#[cfg(target_os = "linux")]
mod live;
mod pictures;

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;

use serde_json::json;
use twixt_testing::{OnTerminal, require};

use crate::demo::Running;
use crate::support::{command, folder, twixt};

/// The command on a terminal.
fn on_terminal(size: (u16, u16), arguments: &str) -> OnTerminal {
    let program = Path::new(env!("CARGO_BIN_EXE_twixt"));
    OnTerminal::start(size, program, arguments.split_whitespace(), &[])
}

/// A demo that answers queries, at this address.
fn demo(folder: &Path, listen: &str) -> (Running, String) {
    let mut child = command()
        .args(["demo", "--listen", listen, "--seed", "5"])
        .env("TMPDIR", folder)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = String::new();
    BufReader::new(child.stderr.take().unwrap()).read_line(&mut said).unwrap();
    let address = said.split_once("http://").unwrap().1.split_once(';').unwrap().0.to_owned();
    (Running(child), address)
}

#[test]
fn a_collector_on_a_terminal_while_it_lives_and_after() {
    require!(program "python3");
    let folder = folder();
    let (running, address) = demo(folder.path(), "127.0.0.1:0");
    let mut screen = on_terminal((80, 24), &format!("top --collector http://{address}"));
    let shown = screen.wait("ams-fra");
    assert!(shown.contains("segment") && shown.contains("mean ± 95 %"), "{shown}");
    // A heat map of the selected segment, in halves of letters.
    screen.wait("▀");
    // Keys: a filter, the flows of what is left, help.
    screen.keys("/voice\r");
    screen.wait("filter: voice");
    screen.gone("backup");
    screen.keys("\r");
    let flows = screen.wait("udp ");
    assert!(flows.contains("flows of"), "{flows}");
    screen.keys("?");
    screen.wait("95 % interval of the mean");
    screen.keys("?\u{1b}");
    screen.wait("last 60 s");
    // Other sizes.
    screen.step(&json!({ "size": [200, 50] }));
    screen.wait("packets");
    screen.step(&json!({ "size": [30, 6] }));
    screen.wait("too small");
    screen.step(&json!({ "size": [100, 30] }));
    // The collector dies: values stay and are called old. It is back: they go on.
    drop(running);
    let old = screen.wait("values of");
    assert!(old.contains("ago") && old.contains("ams-fra"), "{old}");
    let (_running, _) = demo(folder.path(), &address);
    screen.gone("values of");
    screen.keys("q");
    assert_eq!(screen.ends(0), "");
}

#[test]
fn signals_and_control_c_leave_the_terminal_as_it_was() {
    require!(program "python3");
    // Nothing listens there: the view waits.
    let arguments = "top --collector http://127.0.0.1:1";
    for end in [json!({ "signal": 15 }), json!({ "signal": 2 }), json!({ "keys": "\u{3}" })] {
        let mut screen = on_terminal((80, 24), arguments);
        screen.wait("no answer");
        screen.step(&end);
        screen.ends(130);
    }
}

#[test]
fn a_capture_on_a_terminal() {
    require!(program "python3");
    let folder = folder();
    let out = folder.path().join("simulated").display().to_string();
    let made = format!("simulate --out {out} --seed 1 --flows 20 --packets 2000 --rate 10kpps");
    twixt(made.split_whitespace()).expect(0);
    let arguments = format!("top -r {out}/upstream.pcap --interval 200ms");
    let mut screen = on_terminal((80, 24), &arguments);
    let shown = screen.wait("no more packets");
    assert!(shown.contains("2000 packets"), "{shown}");
    assert!(shown.contains("round trips") && shown.contains("certain"), "{shown}");
    screen.keys("q");
    assert_eq!(screen.ends(0), "");
    let none = twixt(["top", "-r", "/nonexistent.pcap"]).expect(2);
    assert!(none.stderr.contains("terminal"), "{}", none.stderr);
}

#[test]
fn without_a_terminal_it_names_what_to_use_instead() {
    for arguments in ["top --collector http://127.0.0.1:1", "top -r x.pcap"] {
        let run = twixt(arguments.split_whitespace()).expect(2);
        assert_eq!(run.stderr.lines().count(), 1, "{}", run.stderr);
        assert!(run.stderr.contains("twixt query --collector URL"), "{}", run.stderr);
    }
    let run = twixt(["top"]).expect(2);
    assert!(run.stderr.contains("--collector"), "{}", run.stderr);
}
