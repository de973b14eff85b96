//! Several writers, and readers beside a writer.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::mpsc;
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
    let (read_once, was_read_once) = mpsc::channel();
    let (folder, appended) = (&folder, &appended);
    // Moves the sender, so that a reader that fails lets the writer go on.
    thread::scope(move |scope| {
        scope.spawn(move || {
            let mut writer = folder.log.writer("paris").unwrap();
            for number in 0..RECORDS {
                append(&mut writer, "paris", number).unwrap();
                appended.store(number + 1, Ordering::Release);
                if number == RECORDS / 2 {
                    // However slow a reader is, it reads once before all is written.
                    was_read_once.recv().unwrap();
                }
            }
        });
        loop {
            let before = appended.load(Ordering::Acquire);
            if before > 0 {
                let (found, report) = epochs(&folder.log, Query::all());
                assert!(found.len() as i64 >= before);
                assert!(found.iter().copied().eq(0..found.len() as i64));
                assert_eq!(report.damaged, 0, "{report:?}");
                let _ = read_once.send(());
            }
            if before == RECORDS {
                break;
            }
        }
    });
}
