//! Incident bundles of any origin: opened, and asked all that one may ask of a collector's directory.

use std::fs;
use std::io::Cursor;
use std::path::Path;

use twixt_collector::bundle::{check_bundle, open_bundle};
use twixt_collector::flows::{FlowsAsked, flows};
use twixt_collector::{EPOCHS_FOLDER, ESTIMATES_FOLDER};
use twixt_history::{HistoryReader, RowQuestion, Step, totals};
use twixt_measure::Sealed;
use twixt_store::{Log, Options, Query, SectionWriter};

use crate::FuzzResult;
use crate::log::Folder;

/// Sections of an input at most.
const SECTIONS_MAX: usize = 64;

/// Takes the bytes as a file, and as sections of a file whose checksums match: each is its kind (one byte),
/// its length (two bytes) and its content.
pub fn bundle(bytes: &[u8]) -> FuzzResult {
    let [one, other] = [open(bytes), open(&in_sections(bytes))];
    FuzzResult::of(one || other)
}

fn in_sections(mut bytes: &[u8]) -> Vec<u8> {
    let mut writer = SectionWriter::new(Vec::new()).expect("memory can be written to");
    for _ in 0..SECTIONS_MAX {
        let Some((head, rest)) = bytes.split_first_chunk::<3>() else { break };
        let length = usize::from(u16::from_le_bytes([head[1], head[2]])).min(rest.len());
        let (content, behind) = rest.split_at(length);
        writer.add(u16::from(head[0]).max(1), content).expect("it is short enough");
        bytes = behind;
    }
    writer.finish().expect("memory can be written to")
}

fn open(bytes: &[u8]) -> bool {
    let folder = Folder::new();
    let inside = folder.path().join("inside");
    fs::create_dir(&inside).expect("the folder can be written to");
    let opened = open_bundle(Cursor::new(bytes), &inside);
    if opened.is_ok() {
        let manifest = check_bundle(bytes).expect("it was read just now");
        let asked = FlowsAsked {
            segment: manifest.segment(),
            class: None,
            algorithm: None,
            span: manifest.span(),
            scope: None,
        };
        ask(&inside, &asked);
    }
    let around = fs::read_dir(folder.path()).expect("the folder is there");
    assert!(around.count() <= 2, "something was written beside the folder");
    opened.is_ok()
}

fn ask(folder: &Path, asked: &FlowsAsked) {
    let reader = HistoryReader::open(&folder.join(ESTIMATES_FOLDER));
    let log = Log::open(folder.join(EPOCHS_FOLDER), Options::default());
    for step in Step::ALL {
        let segment = Some(asked.segment.clone());
        let question = RowQuestion { segment, histograms: true, ..RowQuestion::all(step) };
        let answer = reader.answer(&question).expect("folders can be listed");
        assert_eq!(answer.problems, [], "what was written just now can be read");
        let _ = answer.epochs();
        let _ = totals(&answer.rows);
    }
    let _ = flows(&log, |question| reader.answer(question), asked);
    for found in log.scan(Query::all()).expect("folders can be listed") {
        let _ = Sealed::from_bytes(&found.payload);
    }
}
