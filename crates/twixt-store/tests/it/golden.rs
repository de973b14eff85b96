//! Every version of the format that was ever released can be read.

use std::fs;
use std::path::PathBuf;

use twixt_model::{Epoch, Timestamp};
use twixt_store::{Durability, EpochEntry, Query, Queue, Queued, real_disk};

use crate::support::{Folder, ask, minute};

/// Two records, one of which is packed.
const RECORDS: [(&str, i64, &[u8]); 2] = [("lda", 5, b"short"), ("lds", 6, &[7; 300])];

#[test]
fn released_files_are_read() {
    let golden = |ending: &str| {
        PathBuf::from(env!("CARGO_MANIFEST_DIR"))
            .join(format!("../../testdata/golden/store-v1.{ending}"))
    };
    let folder = Folder::new();
    let mut writer = folder.log.writer("paris").unwrap();
    for (stream, number, payload) in RECORDS {
        let entry = EpochEntry { stream, span: minute(number), epoch: Epoch(number) };
        writer.append(&entry, payload, Durability::Written).unwrap();
    }
    drop(writer);
    for (ending, file) in [("twxl", folder.data()), ("twxi", folder.index())] {
        if std::env::var_os("TWIXT_BLESS").is_some() && !golden(ending).exists() {
            fs::copy(&file, golden(ending)).unwrap();
        }
        fs::copy(golden(ending), file).unwrap();
    }
    let (found, report) = ask(&folder.log, Query::all());
    assert!(report.is_whole() && report.unindexed_bytes == 0, "{report:?}");
    let found: Vec<_> = found
        .iter()
        .map(|record| (record.stream.as_str(), record.epoch.0, record.payload.as_slice()))
        .collect();
    assert_eq!(found, RECORDS);
}

/// Two records of a queue, of which the first is confirmed.
#[test]
fn released_queues_are_read() {
    let golden = |name: &str| {
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../testdata/golden").join(name)
    };
    let files =
        [("queue-v1.twxq", "00000000000000000000.twxq"), ("queue-v1.twxc", "confirmed.twxc")];
    let folder = Folder::new();
    let mut queue = Queue::open(real_disk(), folder.path(), 1 << 20).unwrap();
    for (label, payload) in [(5, b"first".as_slice()), (-6, b"second")] {
        queue.append(label, Timestamp::from_nanos(1000 + label), payload).unwrap();
    }
    queue.peek(1, 100).unwrap();
    queue.confirm(0).unwrap();
    drop(queue);
    for (name, file) in files {
        let file = folder.path().join(file);
        if std::env::var_os("TWIXT_BLESS").is_some() && !golden(name).exists() {
            fs::copy(&file, golden(name)).unwrap();
        }
        assert_eq!(fs::read(&file).unwrap(), fs::read(golden(name)).unwrap(), "{name}");
        fs::copy(golden(name), file).unwrap();
    }
    let mut queue = Queue::open(real_disk(), folder.path(), 1 << 20).unwrap();
    let found = queue.peek(10, 100).unwrap();
    let second = Queued { number: 1, label: -6, payload: b"second".to_vec() };
    assert_eq!((found.records, found.damaged), (vec![second], vec![]));
    assert_eq!(queue.counts().oldest, Some(Timestamp::from_nanos(1005)), "of its chunk");
}
