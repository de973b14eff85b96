//! Old days go, whole, the oldest first.

use twixt_model::Timestamp;
use twixt_store::{Query, RemovedDays};

use crate::support::{DAY, Folder, START, append, epochs};

fn days(folder: &Folder, point: &str, days: std::ops::Range<i64>) {
    for day in days {
        folder.store(point, day * 1440..day * 1440 + 2);
    }
}

#[test]
fn days_that_are_over_expire() {
    let folder = Folder::new();
    days(&folder, "paris", 0..4);
    days(&folder, "rome", 2..4);
    let before = |day: i64| Timestamp::from_nanos(START + day * DAY);
    let removed = folder.log.expire(before(3)).unwrap();
    assert_eq!((removed.days, removed.busy), (4, 0));
    assert!(removed.bytes > 4 * 300, "{removed:?}");
    let (found, report) = epochs(&folder.log, Query::all());
    assert_eq!(found, [4320, 4321, 4320, 4321]);
    assert!(report.is_whole(), "what expired is not missing");
    let within = Timestamp::from_nanos(START + 4 * DAY - 1);
    assert_eq!(folder.log.expire(within).unwrap(), RemovedDays::default());
    assert_eq!(folder.log.expire(before(4)).unwrap().days, 2);
    assert!(!folder.log.exists());
}

#[test]
fn the_oldest_days_go_when_there_is_too_much() {
    let folder = Folder::new();
    days(&folder, "paris", 0..4);
    days(&folder, "rome", 1..3);
    let all = folder.log.bound(u64::MAX).unwrap();
    assert_eq!((all.days, all.bytes), (0, 0));
    let total = all.left_bytes.unwrap();
    let removed = folder.log.bound(total * 6 / 10).unwrap();
    assert_eq!(removed.days, 3, "paris's first day, then the second of both");
    assert_eq!(removed.bytes + removed.left_bytes.unwrap(), total);
    assert_eq!(epochs(&folder.log, Query::all().at_point("rome")).0, [2 * 1440, 2 * 1440 + 1]);
    assert_eq!(folder.log.bound(0).unwrap().left_bytes, Some(0));
}

#[test]
fn a_day_that_is_being_written_stays() {
    let folder = Folder::new();
    days(&folder, "paris", 0..2);
    let mut writer = folder.log.writer("paris").unwrap();
    append(&mut writer, "paris", 5).unwrap();
    let removed = folder.log.bound(0).unwrap();
    assert_eq!((removed.days, removed.busy), (1, 1));
    append(&mut writer, "paris", 6).unwrap();
    drop(writer);
    assert_eq!(epochs(&folder.log, Query::all()).0, [0, 1, 5, 6]);
}
