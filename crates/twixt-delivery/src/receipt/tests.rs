//! Receipts between releases: each side may be the older one.

use expect_test::expect_file;

use super::*;

/// Every receipt that a collector of the first release wrote, one a line.
const FIRST: &str = include_str!("../../../../testdata/golden/receipts-v1.jsonl");
/// The same of the present release. A change of the format gets a new file.
const PRESENT: &str = "../../../../testdata/golden/receipts-v2.jsonl";

/// How an agent of the first release read a receipt.
mod first_release {
    use serde::Deserialize;

    #[derive(Debug, Deserialize)]
    pub(super) struct Receipt {
        pub(super) stored: u64,
        pub(super) duplicates: u64,
        #[serde(default)]
        pub(super) refused: Vec<Refusal>,
    }

    #[derive(Debug, Deserialize)]
    #[allow(dead_code)]
    pub(super) struct Refusal {
        #[serde(default)]
        epoch: i64,
        #[serde(default)]
        reason: String,
    }
}

/// One receipt for each way in which an epoch can be refused, and one without.
fn present() -> Vec<Receipt> {
    let refused = |code: RefusalCode| {
        let is_read = !matches!(code, RefusalCode::Undecodable | RefusalCode::NewerFormat);
        RefusedEpoch {
            index: Some(1),
            point: is_read.then(|| "r-in".to_owned()),
            epoch: is_read.then_some(17),
            code: Some(code),
            reason: "because".to_owned(),
        }
    };
    let with = |refused| Receipt { stored: 1, duplicates: 2, refused };
    let codes = RefusalCode::NAMES.iter().map(|(code, _)| *code);
    let known = codes.filter(|code| *code != RefusalCode::Unknown);
    let refusals = known.map(|code| with(vec![refused(code)]));
    std::iter::once(with(Vec::new())).chain(refusals).collect()
}

fn lines(receipts: &[Receipt]) -> String {
    receipts.iter().map(|receipt| serde_json::to_string(receipt).unwrap() + "\n").collect()
}

#[test]
fn receipts_are_written_as_they_were() {
    expect_file![PRESENT].assert_eq(&lines(&present()));
}

#[test]
fn a_new_agent_reads_receipts_of_a_present_collector() {
    let read = std::fs::read_to_string(
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/receipt").join(PRESENT),
    );
    let read: Vec<Receipt> =
        read.unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(read, present());
}

/// An epoch that a collector of the first release could not decode had `"epoch":null`: the agent
/// sent it for ever.
#[test]
fn a_new_agent_reads_receipts_of_a_first_collector() {
    let receipts: Vec<Receipt> =
        FIRST.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(receipts.iter().map(Receipt::epochs).collect::<Vec<_>>(), [4, 5, 1]);
    let by_first = |line| serde_json::from_str::<first_release::Receipt>(line).is_ok();
    assert_eq!(FIRST.lines().map(by_first).collect::<Vec<_>>(), [true, true, false]);
    let refused: Vec<_> = receipts.iter().flat_map(|receipt| &receipt.refused).collect();
    assert!(refused.iter().all(|refused| refused.is_final() && refused.code.is_none()));
    assert_eq!(refused.iter().map(|refused| refused.epoch).collect::<Vec<_>>(), [Some(17), None]);
}

#[test]
fn a_first_agent_reads_receipts_of_a_present_collector() {
    for line in lines(&present()).lines() {
        let read: first_release::Receipt = serde_json::from_str(line).unwrap();
        assert_eq!((read.stored, read.duplicates, read.refused.len() <= 1), (1, 2, true), "{line}");
    }
}

/// What a release to come may add.
#[test]
fn keys_and_codes_of_a_newer_collector_do_no_harm() {
    let newer = r#"{"stored": 1, "until": "2031-01-01", "refused":
        [{"index": 1, "epoch": 3, "code": "quota", "reason": "no", "limit": {"bytes": 7}}]}"#;
    let read: Receipt = serde_json::from_str(newer).unwrap();
    assert_eq!((read.stored, read.duplicates, read.epochs()), (1, 0, 2));
    assert_eq!(read.refused[0].code, Some(RefusalCode::Unknown));
    assert!(!read.refused[0].is_final(), "the epoch stays with the agent");
}
