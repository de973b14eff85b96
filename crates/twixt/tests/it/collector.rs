//! `twixt collector` as a process: its options, its end, and what a sudden end costs.

mod crowd;
mod kills;
pub(crate) mod process;
mod replayed;
mod sealing;
pub(crate) mod sender;

use std::process::{Command, Output};

use process::Process;

fn twixt(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_twixt")).args(args).output().unwrap()
}

#[track_caller]
fn check(args: &[&str], code: i32, says: &str) {
    let output = twixt(args);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{said}");
    assert!(said.contains(says), "{said}");
}

#[test]
fn a_configuration_is_checked_and_explained() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("collector.toml");
    let directory = folder.path().join("collector");
    let (file, directory) = (file.to_str().unwrap(), directory.to_str().unwrap());
    let write = |text: &str| std::fs::write(file, format!("directory = {directory:?}\n{text}"));
    let args = ["collector", "--config", file, "--check"];
    write("patience = \"2s\"\n[[segment]]\nupstream = \"a\"\ndownstream = \"b\"\n").unwrap();
    check(&args, 0, "the configuration is valid");
    for (text, problem) in [
        ("listne = \"127.0.0.1:1\"", "unknown field `listne`"),
        ("patience = \"2\"", "patience: \"2\" has no known unit"),
        ("listen = \"0.0.0.0:1\"", "connections would not be encrypted"),
        ("plain_http = \"always\"", "plain_http"),
        ("[[token]]\nname = \"a\"\npoints = [\"*\"]", "set either token_file or hash"),
        ("[[token]]\nname = \"a\"\nhash = \"12\"\npoints = [\"*\"]", "64 hexadecimal digits"),
        ("[tls]\ncertificate = \"nowhere\"\nkey = \"nowhere\"", "cannot read certificates"),
        ("[limits]\npoints_max = 0", "points_max must not be 0"),
        ("[[alert]]\nname = \"a\"\nmeasure = \"mean\"\nabove = 5", "alert \"a\": above"),
        (
            "[[alert]]\nname = \"a\"\nmeasure = \"mean\"\nabove = \"5ms\"\nbelow = 1",
            "unknown field",
        ),
        ("[[alert]]\nname = \"a\"\nmeasure = \"late\"\nabove = 1", "is not a measure"),
    ] {
        write(text).unwrap();
        check(&args, 2, problem);
    }
    check(&["collector"], 2, "no directory for persistent state");
    check(&["collector", "--directory", directory, "--segment", "a"], 2, "UPSTREAM:DOWNSTREAM");
}

#[test]
fn certificates_come_in_three_commands() {
    let folder = tempfile::tempdir().unwrap();
    let keys = folder.path().join("keys");
    let keys = keys.to_str().unwrap();
    check(&["collector", "ca", "init", keys, "--name", "localhost"], 0, "for 825 days");
    check(&["collector", "ca", "issue", keys, "rack-1", "--point", "r-*"], 0, "rack-1-key.pem");
    check(&["collector", "ca", "init", keys, "--name", "localhost"], 2, "not overwritten");
    check(
        &["collector", "ca", "issue", keys, "../x", "--point", "a"],
        2,
        "is not a valid certificate name",
    );
    for file in ["ca.pem", "ca-key.pem", "collector.pem", "collector-key.pem", "rack-1.pem"] {
        assert!(folder.path().join("keys").join(file).exists(), "{file}");
    }
}

#[test]
fn signals_end_it_in_their_own_way() {
    for (signal, code) in [("TERM", 0), ("INT", 130)] {
        let folder = tempfile::tempdir().unwrap();
        let mut process = Process::start(folder.path(), 0);
        process.signal(signal);
        assert_eq!(process.wait(), Some(code), "{signal}");
    }
}
