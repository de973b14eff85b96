//! Switches from root to another user, keeping the right to capture.

#![allow(unsafe_code, reason = "system calls")]

use std::io;

/// Why the user could not be switched.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PrivilegeError {
    /// No such user. Create the user: `useradd --system --no-create-home NAME`.
    #[error("no user {name:?}; create one with: useradd --system --no-create-home {name}")]
    NoSuchUser {
        /// The name as given.
        name: String,
    },
    /// Only root may switch users. Start as root, or as that user, and name no user.
    #[error("only root can switch to user {name:?}: start as root, or omit the user")]
    NotRoot {
        /// The name as given.
        name: String,
    },
    /// The system refused. The source says why.
    #[error("{attempt} failed")]
    System {
        /// What was tried.
        attempt: &'static str,
        /// The system error.
        source: io::Error,
    },
}

/// A user of this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct User {
    /// Number of the user.
    pub user: u32,
    /// Number of the user's group.
    pub group: u32,
}

#[cfg(target_os = "linux")]
pub use linux::{become_user, find_user};

#[cfg(target_os = "linux")]
mod linux {
    use std::ffi::CString;
    use std::mem::zeroed;
    use std::ptr;

    use libc::{c_int, c_ulong};

    use super::{PrivilegeError, User, io};

    /// From linux/capability.h; libc has neither the structs nor the numbers.
    const CAPABILITY_VERSION_3: u32 = 0x2008_0522;
    const CAP_NET_RAW: u32 = 13;
    /// Room for the strings of a user's entry.
    const ENTRY_BYTES: usize = 1 << 14;

    #[repr(C)]
    struct CapabilityHeader {
        version: u32,
        process: c_int,
    }

    #[repr(C)]
    #[derive(Clone, Copy, Default)]
    struct CapabilityWord {
        effective: u32,
        permitted: u32,
        inheritable: u32,
    }

    /// Looks a user up.
    ///
    /// # Errors
    /// When there is none of that name, or it cannot be looked up.
    pub fn find_user(name: &str) -> Result<User, PrivilegeError> {
        let missing = || PrivilegeError::NoSuchUser { name: name.to_owned() };
        let text = CString::new(name).map_err(|_| missing())?;
        let mut room = vec![0; ENTRY_BYTES];
        let mut found = ptr::null_mut();
        // SAFETY: integers and pointers, for which zeros are values.
        let mut entry: libc::passwd = unsafe { zeroed() };
        let (start, length) = (room.as_mut_ptr(), room.len());
        // SAFETY: everything lives through the call, and the buffer is as long as stated.
        let code = unsafe {
            libc::getpwnam_r(text.as_ptr(), &raw mut entry, start, length, &raw mut found)
        };
        if code != 0 {
            let source = io::Error::from_raw_os_error(code);
            return Err(PrivilegeError::System { attempt: "looking the user up", source });
        }
        match found.is_null() {
            true => Err(missing()),
            false => Ok(User { user: entry.pw_uid, group: entry.pw_gid }),
        }
    }

    /// Becomes another user, of that user's group only, and keeps of all rights the one to open
    /// packet sockets, if there was that. Call it before threads are started: rights are those of
    /// a thread, and the threads that it starts later.
    ///
    /// # Errors
    /// When there is no such user, or the process may not. It may then be half of both: end it.
    pub fn become_user(name: &str) -> Result<(), PrivilegeError> {
        let User { user, group } = find_user(name)?;
        // SAFETY: no pointers.
        let present = unsafe { libc::geteuid() };
        if present == user {
            return Ok(());
        }
        if present != 0 {
            return Err(PrivilegeError::NotRoot { name: name.to_owned() });
        }
        let may_capture = capabilities()? & (1 << CAP_NET_RAW);
        let one: c_ulong = 1;
        // SAFETY: integers only.
        step("keeping capabilities", unsafe { libc::prctl(libc::PR_SET_KEEPCAPS, one) })?;
        // SAFETY: one number, which lives through the call.
        step("leaving groups", unsafe { libc::setgroups(1, &raw const group) })?;
        // SAFETY: no pointers.
        step("changing the group", unsafe { libc::setgid(group) })?;
        // SAFETY: no pointers.
        step("changing the user", unsafe { libc::setuid(user) })?;
        keep(may_capture)
    }

    /// The first 32 rights that are in effect.
    fn capabilities() -> Result<u32, PrivilegeError> {
        let header = CapabilityHeader { version: CAPABILITY_VERSION_3, process: 0 };
        let mut words = [CapabilityWord::default(); 2];
        // SAFETY: version 3 has two words; both pointers live through the call.
        let code =
            unsafe { libc::syscall(libc::SYS_capget, &raw const header, words.as_mut_ptr()) };
        step("reading capabilities", code as c_int)?;
        Ok(words[0].effective)
    }

    /// Gives up all rights but these.
    fn keep(rights: u32) -> Result<(), PrivilegeError> {
        let header = CapabilityHeader { version: CAPABILITY_VERSION_3, process: 0 };
        let kept = CapabilityWord { effective: rights, permitted: rights, inheritable: 0 };
        let words = [kept, CapabilityWord::default()];
        // SAFETY: version 3 has two words; both pointers live through the call.
        let code = unsafe { libc::syscall(libc::SYS_capset, &raw const header, words.as_ptr()) };
        step("dropping capabilities", code as c_int)
    }

    fn step(attempt: &'static str, code: c_int) -> Result<(), PrivilegeError> {
        if code < 0 {
            return Err(PrivilegeError::System { attempt, source: io::Error::last_os_error() });
        }
        Ok(())
    }
}

/// No user is known here.
///
/// # Errors
/// Always.
#[cfg(not(target_os = "linux"))]
pub fn find_user(name: &str) -> Result<User, PrivilegeError> {
    Err(PrivilegeError::NoSuchUser { name: name.to_owned() })
}

/// Needs Linux.
///
/// # Errors
/// Always.
#[cfg(not(target_os = "linux"))]
pub fn become_user(name: &str) -> Result<(), PrivilegeError> {
    find_user(name).map(drop)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn users_are_found_by_name() {
        assert_eq!(find_user("root").unwrap(), User { user: 0, group: 0 });
        let problem = find_user("no such user").unwrap_err().to_string();
        assert!(problem.contains("no user \"no such user\""), "{problem}");
        assert!(find_user("zero\0byte").is_err());
    }
}
