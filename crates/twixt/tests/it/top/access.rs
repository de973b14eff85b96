//! A collector behind TLS that asks for a token, as `top` meets it.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::process::Stdio;

use twixt_testing::{OnTerminal, require};

use super::large::store_now;
use super::on_terminal;
use crate::demo::Running;
use crate::support::{command, folder, twixt_in};

/// A collector that listens on an address with TLS, and answers who shows this token.
fn guarded(folder: &Path, address: SocketAddr, token: &str) -> Running {
    fs::write(folder.join("reader.token"), token).unwrap();
    let config = format!(
        "listen = \"{address}\"\ndirectory = \"collector\"\n\
         [tls]\ncertificate = \"ca/collector.pem\"\nkey = \"ca/collector-key.pem\"\n\
         [[reader]]\nname = \"wall\"\ntoken_file = \"reader.token\"\n"
    );
    fs::write(folder.join("collector.toml"), config).unwrap();
    let mut child = command()
        .args(["collector", "--config", "collector.toml"])
        .current_dir(folder)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
    assert!(lines.any(|line| line.contains("listening on")), "it listens");
    std::thread::spawn(move || lines.for_each(drop));
    Running(child)
}

fn free_address() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

#[test]
fn a_token_that_is_missing_wrong_or_revoked_is_explained_and_the_right_one_admits() {
    require!(program "python3");
    let folder = folder();
    let file = |name: &str| folder.path().join(name).display().to_string();
    twixt_in(folder.path(), "collector ca init ca --name localhost").expect(0);
    store_now(&folder.path().join("collector"), 1, &["voice"], 20);
    let (first, second) = ("the-first-token-of-a-reader", "the-second-token-of-a-reader");
    let address = free_address();
    let running = guarded(folder.path(), address, first);
    let [right, wrong] = [("right", first), ("wrong", second)].map(|(name, token)| {
        fs::write(folder.path().join(name), format!("{token}\n")).unwrap();
        file(name)
    });
    let url = format!("https://localhost:{}", address.port());
    let start = |options: &str| -> OnTerminal {
        on_terminal((80, 24), &format!("top --collector {url} --interval 200ms {options}"))
    };
    let ca = format!("--ca {}", file("ca/ca.pem"));
    for (options, said) in [
        (ca.clone(), "use --token-file"),
        (format!("{ca} --token-file {wrong}"), "is wrong, or no longer valid"),
        // Nobody vouches for the collector.
        (format!("--token-file {right}"), "certificate"),
    ] {
        let mut screen = start(&options);
        let shown = screen.wait(said);
        assert!(shown.contains("no answer") && !shown.contains("mean ± 95 %"), "{shown}");
        screen.keys("q");
        assert_eq!(screen.ends(0), "");
    }
    let mut screen = start(&format!("{ca} --token-file {right}"));
    screen.wait("r000-a > r001-b");
    // The collector comes back, and has forgotten this token: values stay, and are called old.
    drop(running);
    let _running = guarded(folder.path(), address, second);
    screen.step(&serde_json::json!({ "size": [200, 24] }));
    let shown = screen.wait("no longer valid");
    assert!(shown.contains("values of") && shown.contains("r000-a > r001-b"), "{shown}");
    screen.keys("q");
    assert_eq!(screen.ends(0), "");
}

#[test]
fn files_that_cannot_be_used_are_reported_before_the_terminal_is_taken() {
    require!(program "python3");
    let folder = folder();
    let empty = folder.path().join("empty");
    fs::write(&empty, "").unwrap();
    for (options, said) in [
        ("--token-file /nonexistent".to_owned(), "cannot read the token in /nonexistent"),
        (format!("--ca {}", empty.display()), "has no certificate"),
    ] {
        let screen =
            on_terminal((80, 24), &format!("top --collector https://localhost:1 {options}"));
        let said_then = screen.ends(if options.contains("--ca") { 2 } else { 1 });
        assert!(said_then.contains(said), "{said_then}");
    }
}
