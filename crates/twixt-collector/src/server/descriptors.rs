//! File descriptors: how many there are, and how many connections and open logs that leaves room
//! for. Without one for a file, what agents send could not be stored.

use super::Limits;

/// Descriptors that are kept for hours that are not sealed, for answers that are being read, and for
/// whatever else there is.
const OTHERS: usize = 256;
/// Descriptors of a point's log that is open: records, and their index.
const PER_WRITER: usize = 2;
/// Logs that stay open, however few descriptors there are, and however many.
const WRITERS_MIN: usize = 128;
const WRITERS_MAX: usize = 4_096;
/// Descriptors that connections leave for files.
const RESERVED: usize = OTHERS + PER_WRITER * WRITERS_MIN;
/// Connections that there are room for, however few descriptors there are.
const CONNECTIONS_MIN: usize = 16;

impl Limits {
    /// With no more connections than there are descriptors for, and what to say if these are fewer
    /// than were asked for.
    pub(crate) fn within(self, descriptors: Option<usize>) -> (Self, Option<String>) {
        let Some(descriptors) = descriptors else { return (self, None) };
        let room = descriptors.saturating_sub(RESERVED).max(CONNECTIONS_MIN);
        if self.connections_max <= room {
            return (self, None);
        }
        let text = format!(
            "only {descriptors} file descriptors are allowed, and {RESERVED} are reserved for \
             files: connections_max is {room} instead of {}; raise the limit (ulimit -n, or \
             LimitNOFILE= of the service)",
            self.connections_max
        );
        (Self { connections_max: room, ..self }, Some(text))
    }

    /// Logs of points that may stay open beside so many connections. One for each point is best: to
    /// open one again takes reading what its day has.
    pub(crate) fn writers_max(&self, descriptors: Option<usize>) -> usize {
        let taken = self.connections_max.saturating_add(OTHERS);
        let room = descriptors.map_or(WRITERS_MAX, |all| all.saturating_sub(taken) / PER_WRITER);
        room.clamp(WRITERS_MIN, WRITERS_MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(connections_max: usize, descriptors: Option<usize>, expected: usize) {
        let limits = Limits { connections_max, ..Limits::default() };
        let (bounded, warning) = limits.within(descriptors);
        assert_eq!(bounded, Limits { connections_max: expected, ..limits });
        assert_eq!(warning.is_some(), expected != connections_max, "{warning:?}");
    }

    #[test]
    fn connections_leave_room_for_files() {
        check(512, Some(1_024), 512);
        check(513, Some(1_024), 512);
        check(20_000, Some(20_000), 20_000 - RESERVED);
        check(20_000, None, 20_000);
        check(100, Some(64), CONNECTIONS_MIN);
        check(8, Some(64), 8);
    }

    #[test]
    fn logs_stay_open_where_connections_leave_room() {
        let limits = Limits { connections_max: 512, ..Limits::default() };
        let writers = [Some(64), Some(1_024), Some(2_768), Some(1 << 20), None];
        let writers = writers.map(|descriptors| limits.writers_max(descriptors));
        assert_eq!(writers, [WRITERS_MIN, WRITERS_MIN, 1_000, WRITERS_MAX, WRITERS_MAX]);
    }
}
