//! Every version of the format that was ever released can be read.

use std::fs;
use std::path::PathBuf;

use twixt_model::Epoch;
use twixt_store::{Durability, Entry, Query};

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
        let entry = Entry { stream, span: minute(number), epoch: Epoch(number) };
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
