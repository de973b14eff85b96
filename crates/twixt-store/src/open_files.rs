//! How many files this process may have open.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the limit of open files to what the system allows this process: how many; `None` if there
/// is no bound, or it is not known.
pub fn raise_open_files_max() -> Option<usize> {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let most = Rlimit { current: maximum, maximum };
    let is_raised = current == maximum || setrlimit(Resource::Nofile, most).is_ok();
    let allowed = if is_raised { maximum } else { current };
    allowed.and_then(|allowed| usize::try_from(allowed).ok())
}

#[cfg(test)]
mod tests {
    #[test]
    fn there_are_some() {
        assert!(super::raise_open_files_max().is_none_or(|files| files > 3));
    }
}
