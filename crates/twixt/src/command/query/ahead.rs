//! Reads ahead: records are read and unpacked on several processors while those before are paired.

use std::num::NonZero;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;

/// Threads that read. More would wait for the one that pairs.
const THREADS_MAX: usize = 4;
/// How far each thread may read ahead.
const AHEAD_MAX: usize = 8;
/// For fewer records than this no thread is started.
const RECORDS_MIN: usize = 16;

/// Hands what `read` makes of every record to `take`, in the order of records. Each thread reads
/// with something of its own that `start` makes, such as a buffer.
pub(super) fn read_ahead<R: Sync, S, T: Send, A>(
    records: &[R],
    start: impl Fn() -> S + Sync,
    read: impl Fn(&mut S, &R) -> T + Sync,
    take: impl FnOnce(&mut dyn Iterator<Item = T>) -> A,
) -> A {
    let threads = thread::available_parallelism().map_or(1, NonZero::get).min(THREADS_MAX);
    if threads == 1 || records.len() < RECORDS_MIN {
        let mut own = start();
        return take(&mut records.iter().map(|record| read(&mut own, record)));
    }
    let (start, read) = (&start, &read);
    thread::scope(|scope| {
        let every = |first: usize| -> Receiver<T> {
            let (sender, receiver) = sync_channel(AHEAD_MAX);
            scope.spawn(move || {
                let mut own = start();
                let mut records = records.iter().skip(first).step_by(threads);
                // Stops when the reader is gone.
                records.all(|record| sender.send(read(&mut own, record)).is_ok())
            });
            receiver
        };
        let read: Vec<Receiver<T>> = (0..threads).map(every).collect();
        let in_order = (0..records.len()).map(|index| read[index % threads].recv());
        take(&mut in_order.map_while(Result::ok))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(records: usize, taken: usize) {
        let numbers: Vec<usize> = (0..records).collect();
        let squares = read_ahead(
            &numbers,
            || 0,
            |read_before, number| {
                *read_before += 1;
                number * number
            },
            |squares| squares.take(taken).collect::<Vec<_>>(),
        );
        let expected: Vec<usize> = (0..records).take(taken).map(|number| number * number).collect();
        assert_eq!(squares, expected);
    }

    #[test]
    fn all_records_come_in_order() {
        for records in [0, 1, RECORDS_MIN - 1, RECORDS_MIN, 1001] {
            check(records, usize::MAX);
        }
    }

    #[test]
    fn threads_end_when_nobody_asks_any_more() {
        check(1000, 3);
        check(1000, 0);
    }
}
