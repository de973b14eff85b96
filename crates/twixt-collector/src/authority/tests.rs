use std::fs;
use std::os::unix::fs::PermissionsExt;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

use super::*;
use crate::access::caller_of;

fn patterns(points: &[&str]) -> Vec<PointPattern> {
    points.iter().map(|point| point.parse().unwrap()).collect()
}

fn made(folder: &Path) -> [Issued; 2] {
    init(folder, &["localhost".to_owned(), "127.0.0.1".to_owned()], 10).unwrap()
}

#[test]
fn what_is_issued_names_its_points() {
    let folder = tempfile::tempdir().unwrap();
    made(folder.path());
    let issued = issue(folder.path(), "rack-1", &patterns(&["r-in", "x-*"]), 10).unwrap();
    let certificate = CertificateDer::from_pem_file(&issued.certificate).unwrap();
    let caller = caller_of(&certificate).unwrap();
    assert_eq!(caller.name, "certificate rack-1");
    for (point, allowed) in [("r-in", true), ("r-inn", false), ("x-9", true), ("y", false)] {
        assert_eq!(caller.may_write(point), allowed, "{point}");
    }
}

#[test]
fn the_collectors_own_certificate_names_nobody() {
    let folder = tempfile::tempdir().unwrap();
    let [_, collector] = made(folder.path());
    let certificate = CertificateDer::from_pem_file(&collector.certificate).unwrap();
    assert_eq!(caller_of(&certificate), None);
}

#[test]
fn keys_are_for_their_owner_only() {
    let folder = tempfile::tempdir().unwrap();
    for issued in made(folder.path()) {
        assert_eq!(fs::metadata(issued.key).unwrap().permissions().mode() & 0o777, 0o600);
    }
}

#[test]
fn nothing_is_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    let [authority, _] = made(folder.path());
    let before = fs::read(&authority.key).unwrap();
    let again = init(folder.path(), &["localhost".to_owned()], 10);
    assert!(matches!(again, Err(AuthorityError::Exists { .. })));
    assert_eq!(fs::read(&authority.key).unwrap(), before);
    issue(folder.path(), "a", &patterns(&["a"]), 10).unwrap();
    let again = issue(folder.path(), "a", &patterns(&["b"]), 10);
    assert!(matches!(again, Err(AuthorityError::Exists { .. })));
}

#[test]
fn what_makes_no_sense_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let missing = issue(folder.path(), "a", &patterns(&["a"]), 10);
    assert!(matches!(missing, Err(AuthorityError::Missing { .. })));
    made(folder.path());
    for name in ["", "ca", "collector", "../a", ".a", "a b", "a-key", &"a".repeat(65)] {
        let refused = issue(folder.path(), name, &patterns(&["a"]), 10);
        assert!(matches!(refused, Err(AuthorityError::Name { .. })), "{name}");
    }
    assert!(matches!(issue(folder.path(), "a", &[], 10), Err(AuthorityError::Empty(_))));
    let refused = init(&folder.path().join("b"), &["zürich".to_owned()], 10);
    assert!(matches!(refused, Err(AuthorityError::Text { .. })));
}
