//! How far the system clock can be believed.

use std::path::Path;

use twixt_capture::{KernelClock, kernel_clock};
use twixt_model::Delay;

use super::finding::Finding;
use crate::output::units;

const NAME: &str = "clock";
/// One-way delays of a wide-area segment still mean something with such an error.
const ERROR_GOOD: Delay = Delay::from_nanos(1_000_000);
const REMEDY: &str = "apt-get install -y chrony && systemctl enable --now chrony";

/// Who keeps clocks in step, and the socket or file that shows that they run.
const KEEPERS: [(&str, &str); 4] = [
    ("chrony", "/run/chrony/chronyd.sock"),
    ("ptp4l", "/run/ptp4l"),
    ("ptp4l", "/var/run/ptp4l"),
    ("systemd-timesyncd", "/run/systemd/timesync/synchronized"),
];

pub(super) fn examine() -> Vec<Finding> {
    let keepers = running_keepers(|path| Path::new(path).exists());
    match kernel_clock() {
        Ok(clock) => vec![judge(clock, &keepers)],
        Err(error) => vec![Finding::warn(NAME, "system", format!("cannot be queried: {error}"))],
    }
}

fn running_keepers(exists: impl Fn(&str) -> bool) -> Vec<&'static str> {
    let mut running: Vec<_> =
        KEEPERS.into_iter().filter(|(_, path)| exists(path)).map(|(name, _)| name).collect();
    running.dedup();
    running
}

fn judge(clock: KernelClock, keepers: &[&str]) -> Finding {
    let by = match keepers {
        [] => String::new(),
        keepers => format!(" by {}", keepers.join(" and ")),
    };
    let error = |error: Delay| units::duration(error.as_nanos() as f64);
    if !clock.synchronised {
        let who = match keepers {
            [] => "not synchronised".to_owned(),
            keepers => format!("{} runs, but the clock is not synchronised", keepers.join(" and ")),
        };
        let detail = format!("{who}: delays between two machines are meaningless");
        return Finding::warn(NAME, "system", detail).mended_by(match keepers {
            [] => REMEDY,
            ["chrony", ..] => "chronyc waitsync; chronyc sources -v",
            ["ptp4l", ..] => "phc2sys -a -r; pmc -u -b 0 'GET TIME_STATUS_NP'",
            _ => "timedatectl timesync-status",
        });
    }
    let bound = error(clock.error_max);
    if clock.error_max <= ERROR_GOOD {
        return Finding::ok(NAME, "system", format!("synchronised{by}, error at most {bound}"));
    }
    let estimated = error(clock.error_estimate);
    let detail = format!(
        "synchronised{by}, error at most {bound}, probably {estimated}; delays between two \
         machines are no more accurate"
    );
    let keeper_is_good = keepers.iter().any(|keeper| matches!(*keeper, "chrony" | "ptp4l"));
    let finding = match keeper_is_good {
        true => Finding::ok(NAME, "system", detail),
        false => Finding::warn(NAME, "system", detail),
    };
    if keeper_is_good { finding } else { finding.mended_by(REMEDY) }
}

#[cfg(test)]
mod tests {
    use super::super::finding::Status;
    use super::*;

    #[track_caller]
    fn check(synchronised: bool, error_us: i64, keepers: &[&str], expected: (Status, &str)) {
        let clock = KernelClock {
            synchronised,
            error_max: Delay::from_nanos(error_us * 1000),
            error_estimate: Delay::from_nanos(error_us * 100),
        };
        let finding = judge(clock, keepers);
        assert_eq!(finding.status, expected.0, "{finding:?}");
        assert!(finding.detail.contains(expected.1), "{finding:?}");
        assert_eq!(finding.status == Status::Ok, finding.fix.is_none(), "{finding:?}");
    }

    #[test]
    fn clocks_are_good_tolerable_or_alone() {
        check(true, 80, &["ptp4l"], (Status::Ok, "synchronised by ptp4l, error at most 80.00 µs"));
        check(true, 80, &[], (Status::Ok, "synchronised, error at most 80.00 µs"));
        check(true, 20_000, &["chrony"], (Status::Ok, "probably 2.000 ms"));
        check(true, 400_000, &["systemd-timesyncd"], (Status::Warn, "error at most 400.0 ms"));
        check(false, 16_000_000, &[], (Status::Warn, "not synchronised"));
        check(false, 16_000_000, &["chrony"], (Status::Warn, "chrony runs, but"));
    }

    #[test]
    fn keepers_are_known_by_their_sockets() {
        assert_eq!(running_keepers(|_| false), [""; 0]);
        assert_eq!(running_keepers(|path| path.ends_with("ptp4l")), ["ptp4l"]);
        assert_eq!(running_keepers(|path| path.contains("chrony")), ["chrony"]);
    }
}
