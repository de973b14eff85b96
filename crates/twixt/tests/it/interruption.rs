//! Ctrl-C: what was measured so far is printed and marked as partial, and nothing half-written stays.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use twixt_testing::wait_until;

use crate::support::{Capture, MILLISECOND, Packet, Run, command, folder};

fn start(folder: &Path, arguments: &str) -> Child {
    command()
        .args(arguments.split_whitespace())
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command starts")
}

fn interrupt(child: &Child) {
    let status = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(status.expect("kill starts").success());
}

fn ended(child: Child) -> Run {
    let output = child.wait_with_output().expect("the command ends");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Run { code: output.status.code(), stdout: text(&output.stdout), stderr: text(&output.stderr) }
}

/// The header of a capture, and some of its records.
fn capture() -> (Vec<u8>, Vec<u8>) {
    let mut capture = Capture::default();
    for index in 0..2000_u16 {
        let packet = Packet::tcp("10.0.0.1:40000", "10.0.1.9:443", index);
        capture.add(i64::from(index) * MILLISECOND, packet.frame());
    }
    let mut bytes = capture.bytes();
    let records = bytes.split_off(24);
    (bytes, records)
}

/// Reads a pipe that never ends, until it is interrupted.
#[track_caller]
fn check_interrupted(arguments: &str) -> Run {
    let folder = folder();
    let pipe = folder.path().join("pipe.pcap");
    assert!(Command::new("mkfifo").arg(&pipe).status().expect("mkfifo starts").success());
    let child = start(folder.path(), arguments);
    // Opens when the command has: it watches for signals from before that on.
    let mut input = OpenOptions::new().write(true).open(&pipe).expect("the pipe can be opened");
    let (header, records) = capture();
    input.write_all(&header).and_then(|()| input.write_all(&records)).expect("it reads");
    interrupt(&child);
    while input.write_all(&records).is_ok() {}
    let run = ended(child);
    assert_eq!(run.code, Some(130), "{arguments}: {}", run.stderr);
    assert!(run.stderr.contains("interrupted: partial"), "{arguments}: {}", run.stderr);
    run
}

#[test]
fn commands_of_one_point_print_what_they_measured() {
    assert!(check_interrupted("info pipe.pcap").stdout.contains("frames"));
    assert!(check_interrupted("heavy -r pipe.pcap -F json").stdout.contains("10.0.0.1:40000"));
    assert!(check_interrupted("reorder -r pipe.pcap -F json").stdout.contains("10.0.0.0/24"));
    check_interrupted("record -r pipe.pcap -w pipe.epochs");
    check_interrupted("flow export -r pipe.pcap -w pipe.ipfix");
}

/// The directory is there from when on it is written to, and gone when nothing stays in it.
#[test]
fn an_interrupted_simulation_leaves_nothing_behind() {
    let folder = folder();
    let simulate = "simulate --out made/here --seed 1 --flows 40000 --packets 3000000";
    let child = start(folder.path(), simulate);
    let directory = folder.path().join("made/here");
    wait_until("it begins to write", || directory.exists());
    interrupt(&child);
    let run = ended(child).expect(130);
    assert!(run.stderr.contains("interrupted: nothing was written"), "{}", run.stderr);
    assert_eq!(fs::read_dir(folder.path()).expect("it can be read").count(), 0);
}
