//! Several writers, and readers beside a writer.

use std::sync::atomic::{AtomicI64, Ordering};
use std::thread;

use twixt_store::{Query, StoreError};

use crate::support::{Folder, append, epochs};

#[test]
fn a_file_has_one_writer_and_points_do_not_hinder_each_other() {
    let folder = Folder::new();
    let mut first = folder.log.writer("paris").unwrap();
    append(&mut first, "paris", 0).unwrap();
    let mut second = folder.log.writer("paris").unwrap();
    let refused = append(&mut second, "paris", 1).unwrap_err();
    assert!(matches!(refused, StoreError::Busy { .. }), "{refused}");
    append(&mut folder.log.writer("rome").unwrap(), "rome", 1).unwrap();
    append(&mut second, "paris", 1440).unwrap();
    drop(first);
    append(&mut second, "paris", 1).unwrap();
    assert_eq!(epochs(&folder.log, Query::all().at_point("paris")).0, [0, 1, 1440]);
}

#[test]
fn readers_see_all_that_was_appended_before_they_began() {
    const RECORDS: i64 = 2000;
    let folder = Folder::new();
    let appended = AtomicI64::new(0);
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut writer = folder.log.writer("paris").unwrap();
            for number in 0..RECORDS {
                append(&mut writer, "paris", number).unwrap();
                appended.store(number + 1, Ordering::Release);
            }
        });
        let mut reads = 0;
        loop {
            let before = appended.load(Ordering::Acquire);
            if before > 0 {
                let (found, report) = epochs(&folder.log, Query::all());
                assert!(found.len() as i64 >= before);
                assert!(found.iter().copied().eq(0..found.len() as i64));
                assert_eq!(report.damaged, 0, "{report:?}");
                reads += 1;
            }
            if before == RECORDS {
                break;
            }
        }
        assert!(reads > 1);
    });
}
