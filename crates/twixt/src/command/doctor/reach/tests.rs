use std::net::TcpListener;

use super::super::finding::Status;
use super::*;

#[track_caller]
fn check_url(url: &str, expected: Option<(bool, &str, u16)>) {
    let collector = url.parse::<Collector>().ok();
    let parts = collector.as_ref().map(|known| (known.encrypted, known.host.as_str(), known.port));
    assert_eq!(parts, expected, "{url}");
}

#[test]
fn addresses_of_collectors_are_read() {
    check_url("https://collector:9443", Some((true, "collector", 9443)));
    check_url("https://collector.example/", Some((true, "collector.example", 443)));
    check_url("http://127.0.0.1:9443/v1", Some((false, "127.0.0.1", 9443)));
    check_url("http://[::1]:9443", Some((false, "::1", 9443)));
    check_url("http://[2001:db8::1]", Some((false, "2001:db8::1", 80)));
    for wrong in ["collector:9443", "ftp://collector", "http://", "http://a:99999", "http://u@a"] {
        check_url(wrong, None);
    }
}

#[track_caller]
fn check_folder(folder: &Path, expected: Status) {
    let finding = examine_folder("spool", folder);
    assert_eq!(finding.status, expected, "{finding:?}");
    assert_eq!(finding.fix.is_some(), expected != Status::Ok, "{finding:?}");
}

#[test]
fn folders_are_tried() {
    let folder = tempfile::tempdir().unwrap();
    assert_ne!(examine_folder("spool", folder.path()).status, Status::Fail);
    assert_eq!(folder.path().read_dir().unwrap().count(), 0, "nothing is left behind");
    check_folder(&folder.path().join("none"), Status::Fail);
    let file = folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    check_folder(&file, Status::Fail);
}

#[test]
fn little_room_is_told() {
    assert_eq!(judge_room("store", "/x".to_owned(), 1 << 20).status, Status::Warn);
    assert_eq!(judge_room("store", "/x".to_owned(), 1 << 40).status, Status::Ok);
}

#[track_caller]
fn check_collector(url: &str, expected: Status, detail: &str) {
    let finding = url.parse::<Collector>().unwrap().examine(None);
    assert_eq!(finding.status, expected, "{finding:?}");
    assert!(finding.detail.contains(detail), "{finding:?}");
}

#[test]
fn certificates_that_cannot_be_read_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("ca.pem");
    let check = |problem: &str| {
        // No connection is made.
        let collector: Collector = "https://192.0.2.1".parse().unwrap();
        let finding = collector.examine(Some(&file));
        assert_eq!(finding.status, Status::Fail);
        assert!(finding.detail.contains(problem), "{finding:?}");
    };
    check("No such file");
    std::fs::write(&file, "no PEM").unwrap();
    check("it contains no certificate");
}

#[test]
fn collectors_are_connected_to() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    check_collector(&format!("http://127.0.0.1:{port}"), Status::Ok, "without encryption");
    let answering = std::thread::spawn(move || {
        // The first is that of above.
        for stream in listener.incoming().take(2) {
            io::Write::write_all(&mut stream.unwrap(), b"SSH-2.0-OpenSSH\r\n\r\n\r\n").unwrap();
        }
    });
    check_collector(&format!("https://127.0.0.1:{port}"), Status::Fail, "not in TLS");
    answering.join().unwrap();
    check_collector(&format!("http://127.0.0.1:{port}"), Status::Fail, "cannot be reached");
}
