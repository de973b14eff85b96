use twixt_store::real_disk;

use super::*;

const MINUTE_NS: i64 = 60_000_000_000;

/// How an alert stands in the window that ends then.
fn message(state: &str, end_ns: i64) -> AlertMessage {
    let text = serde_json::json!({
        "alert": "slow", "state": state, "before": "clear", "domain": "lab", "upstream": "a",
        "downstream": "b", "class": "", "algorithm": "lda", "measure": "mean", "unit": "ns",
        "value": 7.0, "above": 5.0, "clear_below": null, "start_ns": end_ns - MINUTE_NS,
        "end_ns": end_ns, "packets": 100, "epochs": 60, "gaps": 0, "reason": null, "late": false,
        "acknowledged": null, "silenced": null,
    });
    serde_json::from_value(text).unwrap()
}

fn target() -> AlertTarget {
    AlertTarget::of(&message("raised", 0))
}

fn by_ann() -> Acknowledgement {
    Acknowledgement { by: "ann".to_owned(), at_ns: 1 }
}

fn until(until_ns: i64) -> Option<Silence> {
    Some(Silence { by: "ann".to_owned(), until_ns })
}

fn completed(marks: &Marks, mut message: AlertMessage) -> AlertMessage {
    marks.complete(&mut message);
    message
}

#[test]
fn an_acknowledgement_lasts_until_the_alert_is_clear() {
    let folder = tempfile::tempdir().unwrap();
    let mut marks = Marks::open(real_disk(), folder.path().join("marks.json"));
    marks.acknowledge(&target(), Some(by_ann())).unwrap();
    for state in ["raised", "unknown"] {
        marks.note(&message(state, MINUTE_NS));
        assert_eq!(completed(&marks, message(state, MINUTE_NS)).acknowledged, Some(by_ann()));
    }
    marks.note(&message("clear", 2 * MINUTE_NS));
    assert_eq!(completed(&marks, message("clear", 2 * MINUTE_NS)).acknowledged, None);
    assert!(marks.marks.is_empty(), "nothing is kept of what is over");
}

#[test]
fn a_silence_covers_windows_by_their_end() {
    let folder = tempfile::tempdir().unwrap();
    let mut marks = Marks::open(real_disk(), folder.path().join("marks.json"));
    marks.silence(&target(), until(10 * MINUTE_NS)).unwrap();
    let is_silent =
        |marks: &Marks, end_ns| completed(marks, message("raised", end_ns)).silenced.is_some();
    assert!(is_silent(&marks, 10 * MINUTE_NS - 1) && !is_silent(&marks, 10 * MINUTE_NS));
    marks.note(&message("raised", 9 * MINUTE_NS));
    assert!(is_silent(&marks, 9 * MINUTE_NS));
    let other = AlertMessage { class: "web".to_owned(), ..message("raised", MINUTE_NS) };
    assert_eq!(completed(&marks, other).silenced, None);
    marks.note(&message("raised", 10 * MINUTE_NS));
    assert!(marks.marks.is_empty(), "it is over");
    marks.silence(&target(), until(20 * MINUTE_NS)).unwrap();
    marks.silence(&target(), None).unwrap();
    assert!(!is_silent(&marks, MINUTE_NS), "it was ended");
}

#[test]
fn marks_outlive_a_restart_and_a_damaged_file_is_none() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("marks.json");
    let mut marks = Marks::open(real_disk(), &path);
    marks.acknowledge(&target(), Some(by_ann())).unwrap();
    marks.silence(&target(), until(MINUTE_NS)).unwrap();
    assert_eq!(Marks::open(real_disk(), &path).marks, marks.marks);
    for text in ["{", r#"{"version": 2, "marks": []}"#] {
        std::fs::write(&path, text).unwrap();
        assert!(Marks::open(real_disk(), &path).marks.is_empty());
    }
}

#[test]
fn what_cannot_be_saved_does_not_count() {
    let folder = tempfile::tempdir().unwrap();
    let mut marks = Marks::open(real_disk(), folder.path().join("missing/marks.json"));
    assert!(matches!(marks.acknowledge(&target(), Some(by_ann())), Err(MarkError::Unsaved(_))));
    assert_eq!(completed(&marks, message("raised", 0)).acknowledged, None);
}

#[test]
fn marks_are_bounded() {
    let folder = tempfile::tempdir().unwrap();
    let mut marks = Marks::open(real_disk(), folder.path().join("marks.json"));
    let numbered = |number: usize| AlertTarget { alert: number.to_string(), ..target() };
    let mark = Mark { acknowledgement: Some(by_ann()), silence: None };
    marks.marks = (0..MARKS_MAX).map(|number| (numbered(number), mark.clone())).collect();
    let refused = marks.acknowledge(&numbered(MARKS_MAX), Some(by_ann()));
    assert!(matches!(refused, Err(MarkError::TooMany)));
    marks.acknowledge(&numbered(0), None).unwrap();
    marks.acknowledge(&numbered(MARKS_MAX), Some(by_ann())).unwrap();
}
