//! A test that starts itself again, with less than it has, or elsewhere.

use std::any::type_name;
use std::process::Command;

use crate::requirement::{Requirement, obtain};

/// The closure that a process was started for.
const INSIDE: &str = "TWIXT_TEST_INSIDE";

/// Runs `body` in a process of its own, which is started by `wrapper`, such as `unshare --net`.
/// `body` must be a closure of the test itself, which is found by the name of its type; it may do
/// the same again.
///
/// # Panics
///
/// If it does not pass there.
#[track_caller]
pub fn run_again<Body: FnOnce()>(wrapper: &[&str], body: Body) {
    if is_inside::<Body>() {
        return body();
    }
    let name = test_of::<Body>();
    let program = std::env::current_exe().expect("a test is a program");
    let ended = Command::new(wrapper[0])
        .args(&wrapper[1..])
        .arg(program)
        .args(["--exact", name, "--nocapture", "--include-ignored"])
        .env(INSIDE, type_name::<Body>())
        .output()
        .expect("the wrapper is a program");
    let printed = String::from_utf8_lossy(&ended.stdout);
    // A name that no test has passes as well, with no test.
    assert!(
        ended.status.success() && printed.contains("1 passed"),
        "{printed}{}",
        String::from_utf8_lossy(&ended.stderr)
    );
    print!("{printed}");
}

/// Runs `body` without capabilities: permissions of files hold for it, even if root runs the test.
#[track_caller]
pub fn without_capabilities(body: impl FnOnce()) {
    if !Requirement::Root.is_met() {
        body();
    } else if obtain(Requirement::Capabilities).is_some() {
        run_again(&["setpriv", "--bounding-set=-all", "--inh-caps=-all"], body);
    }
}

/// Whether this process was started for a closure, or for one within it.
fn is_inside<Body>() -> bool {
    std::env::var(INSIDE).is_ok_and(|inside| inside.starts_with(type_name::<Body>()))
}

/// Whether this process was started for exactly this closure.
pub(crate) fn is_just_inside<Body>() -> bool {
    std::env::var(INSIDE).is_ok_and(|inside| inside == type_name::<Body>())
}

/// `it::module::name::{{closure}}` is the closure of the test `module::name`.
fn test_of<Body>() -> &'static str {
    let path = type_name::<Body>().trim_end_matches("::{{closure}}");
    path.split_once("::").map_or(path, |(_program, test)| test)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_test_is_found_by_its_closure() {
        let parent = std::process::id();
        run_again(&["env", "TWIXT_TEST_COLOUR=blue"], || {
            assert_eq!(std::env::var("TWIXT_TEST_COLOUR").unwrap(), "blue");
        });
        assert_eq!(parent, std::process::id());
    }

    #[test]
    fn a_failure_inside_is_a_failure() {
        let again = || run_again(&["env"], || panic!("as it should"));
        if std::env::var_os(INSIDE).is_some() {
            again();
        }
        let failure = std::panic::catch_unwind(again).unwrap_err();
        let message = failure.downcast::<String>().unwrap();
        assert!(message.contains("as it should"), "{message}");
    }

    #[test]
    fn permissions_hold_without_capabilities() {
        without_capabilities(|| {
            use std::os::unix::fs::PermissionsExt;
            let path = std::env::temp_dir().join(format!("closed-{}", std::process::id()));
            std::fs::write(&path, "").unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o000)).unwrap();
            let opened = std::fs::File::open(&path);
            std::fs::remove_file(&path).unwrap();
            assert!(opened.is_err());
        });
    }
}
