//! The dashboard as a browser shows it, of the demo.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use twixt_testing::{check_in_browser, require};

use crate::demo::Running;
use crate::support::{command, folder};

#[test]
fn a_browser_finds_the_incidents_of_the_demo_and_outlives_it() {
    require!(browser);
    let temporary = folder();
    let mut child = command()
        .args(["demo", "--listen", "127.0.0.1:0", "--seed", "1"])
        .env("TMPDIR", temporary.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let pid = child.id().to_string();
    let mut said = String::new();
    BufReader::new(child.stderr.take().unwrap()).read_line(&mut said).unwrap();
    let url = said.split_once("dashboard on ").unwrap().1.split_once(';').unwrap().0.to_owned();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let _running = Running(child);
    // The summary comes when its minute is estimated.
    let summary = lines.by_ref().map(Result::unwrap).find(|line| line.contains("Ctrl-C"));
    assert!(summary.is_some());
    check_in_browser("demo.spec.ts", &url, &[]);
    check_in_browser("dying.spec.ts", &url, &[("TWIXT_PID", &pid)]);
}
