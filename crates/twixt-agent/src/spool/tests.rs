//! Epochs in, batches out, across restarts.

use super::*;

/// Bytes that do not compress.
fn payload(number: u64, length: usize) -> Vec<u8> {
    let words = (0..length as u64 / 8).map(|at| twixt_model::mix(number * 1_000_003 + at));
    words.flat_map(u64::to_le_bytes).collect()
}

fn append(spool: &Spool, numbers: std::ops::Range<u64>, length: usize) {
    for number in numbers {
        spool.append(Epoch(number as i64), &payload(number, length)).unwrap();
    }
}

fn numbers(batch: &[Spooled]) -> Vec<i64> {
    batch.iter().map(|spooled| spooled.epoch.0).collect()
}

#[test]
fn what_is_not_confirmed_is_there_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let spool = Spool::open(folder.path(), 1 << 20).unwrap();
    append(&spool, 0..5, 800);
    let batch = spool.batch(3, 1 << 20);
    assert_eq!(numbers(&batch), [0, 1, 2]);
    assert_eq!(batch[1].payload, payload(1, 800));
    spool.confirm(&batch[1]);
    assert_eq!(numbers(&spool.batch(10, 1 << 20)), [2, 3, 4]);
    assert_eq!(spool.counts().epochs, 3);
    drop(spool);

    let spool = Spool::open(folder.path(), 1 << 20).unwrap();
    append(&spool, 5..6, 800);
    let batch = spool.batch(10, 1 << 20);
    assert_eq!(numbers(&batch), [2, 3, 4, 5]);
    spool.confirm(&batch[3]);
    assert_eq!((spool.counts().epochs, spool.counts().oldest), (0, None));
    append(&spool, 6..7, 800);
    assert_eq!(numbers(&spool.batch(10, 1 << 20)), [6]);
}

#[test]
fn what_is_confirmed_is_deleted() {
    let folder = tempfile::tempdir().unwrap();
    let spool = Spool::open(folder.path(), 1 << 20).unwrap();
    for number in 0..300 {
        append(&spool, number..number + 1, 8000);
        let batch = spool.batch(10, 1 << 20);
        assert_eq!(numbers(&batch), [number as i64]);
        spool.confirm(&batch[0]);
        // One segment, and what made it full.
        assert!(spool.counts().bytes < (1 << 20) / SEGMENTS + 10_000);
    }
    assert_eq!(spool.counts().discarded, 0);
}

#[test]
fn batches_are_bounded_but_never_empty() {
    let folder = tempfile::tempdir().unwrap();
    let spool = Spool::open(folder.path(), 1 << 20).unwrap();
    append(&spool, 0..10, 8000);
    assert_eq!(numbers(&spool.batch(10, 20_000)), [0, 1]);
    assert_eq!(numbers(&spool.batch(10, 10)), [0]);
    assert_eq!(numbers(&spool.batch(4, 1 << 20)), [0, 1, 2, 3]);
}

#[test]
fn a_full_spool_discards_the_oldest_and_counts_them() {
    let folder = tempfile::tempdir().unwrap();
    let bytes_max = 200_000;
    let spool = Spool::open(folder.path(), bytes_max).unwrap();
    for number in 0..200 {
        append(&spool, number..number + 1, 8000);
        assert!(spool.counts().bytes <= bytes_max);
    }
    let counts = spool.counts();
    assert_eq!(counts.epochs + counts.discarded, 200);
    assert!((10..25).contains(&counts.epochs), "a bound of 25 epochs holds {}", counts.epochs);
    let left = numbers(&spool.batch(1000, 1 << 20));
    assert_eq!(left, (200 - counts.epochs as i64..200).collect::<Vec<_>>());
    // One that is larger than everything.
    spool.append(Epoch(200), &payload(200, 300_000)).unwrap();
    assert_eq!(spool.counts().discarded, counts.discarded + 1);
    drop(spool);
    let smaller = Spool::open(folder.path(), bytes_max / 2).unwrap();
    assert!(smaller.counts().bytes <= bytes_max / 2);
}

#[test]
fn damage_costs_the_epochs_that_it_hit() {
    let folder = tempfile::tempdir().unwrap();
    let spool = Spool::open(folder.path(), 1 << 20).unwrap();
    append(&spool, 0..6, 8000);
    drop(spool);
    let segment = numbers_of_segments(folder.path())[0];
    let data = folder.path().join(format!("{segment:012}/epochs/1970-01-01.twxl"));
    let mut bytes = fs::read(&data).unwrap();
    bytes[20_000] ^= 1; // in the third
    fs::write(&data, bytes).unwrap();
    let spool = Spool::open(folder.path(), 1 << 20).unwrap();
    assert_eq!(numbers(&spool.batch(10, 1 << 20)), [0, 1, 3, 4, 5]);
    assert_eq!(spool.counts().damaged, 1);
}

fn numbers_of_segments(folder: &Path) -> Vec<u64> {
    segment::numbers(folder).unwrap()
}

#[test]
fn records_that_a_power_failure_took_do_not_count_as_confirmed_again() {
    let folder = tempfile::tempdir().unwrap();
    let spool = Spool::open(folder.path(), 1 << 20).unwrap();
    append(&spool, 0..6, 800);
    spool.confirm(&spool.batch(10, 1 << 20)[5]);
    drop(spool);
    let segment = numbers_of_segments(folder.path())[0];
    let file =
        |ending: &str| folder.path().join(format!("{segment:012}/epochs/1970-01-01.{ending}"));
    fs::remove_file(file("twxi")).unwrap();
    let data = File::options().write(true).open(file("twxl")).unwrap();
    data.set_len(3000).unwrap(); // in the fourth
    drop(data);
    let spool = Spool::open(folder.path(), 1 << 20).unwrap();
    append(&spool, 6..8, 800);
    assert_eq!(numbers(&spool.batch(10, 1 << 20)), [6, 7]);
}

#[test]
fn a_spool_is_one_agents() {
    let folder = tempfile::tempdir().unwrap();
    let _first = Spool::open(folder.path(), 1 << 20).unwrap();
    let problem = Spool::open(folder.path(), 1 << 20).unwrap_err().to_string();
    assert!(problem.contains("used by another agent"), "{problem}");
}
