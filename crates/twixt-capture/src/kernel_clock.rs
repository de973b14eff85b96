//! What the kernel says of its own clock. Whether that is true is for others to judge.

#![allow(unsafe_code, reason = "a system call")]

use std::io;

use twixt_model::Delay;

/// The state of the kernel clock, as reported by the daemon that synchronises it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelClock {
    /// It is synchronised.
    pub synchronised: bool,
    /// Maximum error, if it is synchronised.
    pub error_max: Delay,
    /// It is probably wrong by this much.
    pub error_estimate: Delay,
}

/// Asks the kernel (`adjtimex`), which changes nothing and needs no rights.
///
/// # Errors
/// Where there is no such call, or it is forbidden.
#[cfg(target_os = "linux")]
pub fn kernel_clock() -> io::Result<KernelClock> {
    // SAFETY: a C struct of integers, for which zeros are values; `modes` 0 asks only.
    let mut answer: libc::timex = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel writes to the struct, which lives through the call.
    let state = unsafe { libc::adjtimex(&raw mut answer) };
    if state < 0 {
        return Err(io::Error::last_os_error());
    }
    #[allow(clippy::useless_conversion, reason = "not where a long has 32 bits")]
    let microseconds = |value: libc::c_long| {
        let value: i64 = value.into();
        Delay::from_nanos(value.saturating_mul(1000))
    };
    Ok(KernelClock {
        synchronised: state != libc::TIME_ERROR && answer.status & libc::STA_UNSYNC == 0,
        error_max: microseconds(answer.maxerror),
        error_estimate: microseconds(answer.esterror),
    })
}

/// There is no such call here.
///
/// # Errors
/// Always.
#[cfg(not(target_os = "linux"))]
pub fn kernel_clock() -> io::Result<KernelClock> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use twixt_testing::require;

    use super::*;

    #[test]
    fn the_kernel_answers() {
        let answer = kernel_clock();
        require!(that answer.is_ok(), "adjtimex, which is forbidden here");
        let clock = answer.unwrap();
        assert!(clock.error_max >= Delay::ZERO && clock.error_estimate >= Delay::ZERO);
    }
}
