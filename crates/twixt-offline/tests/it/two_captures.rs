//! What the library tells of two captures, and what it reports beside that.

use std::fs;

use twixt_model::EpochRule;
use twixt_offline::{ErrorKind, Files, OfflineError, Remark, Split, one_read, two_reads};
use twixt_synopsis::By;

use crate::captures::{Captures, KeptReports, plan, simulation};

#[test]
fn two_reads_tell_delay_and_loss_of_a_simulated_segment() {
    let simulation = simulation();
    let captures = Captures::of(&simulation);
    let reports = KeptReports::default();
    let measured = two_reads(&plan("exact"), captures.files(), false, &reports).unwrap();
    assert!(!measured.partial);
    let estimate = &measured.segments[0].concluded[0].estimates[0];
    let truth = simulation.truth().all;
    assert_eq!(
        estimate.delay.unwrap().mean(),
        truth.delay.unwrap().mean(),
        "no sampling, no error"
    );
    // Packets near the ends of the overlap may have passed while the other point was not capturing.
    let lost = estimate.evidence.lost.unwrap();
    assert!(
        lost <= truth.evidence.lost.unwrap() && lost + 2 >= truth.evidence.lost.unwrap(),
        "{lost} of {}",
        truth.evidence.lost.unwrap()
    );
    let size = |path| fs::metadata(path).unwrap().len();
    let Files { upstream, downstream } = captures.files();
    // Simulated frames have headers only, so that the survey is repeated with what they have.
    let expected = 3 * (size(upstream) + size(downstream));
    assert_eq!(reports.read_bytes(), expected, "two surveys and the measurement");
    assert_eq!(reports.remarks(), []);
}

#[test]
fn one_read_and_two_reads_agree_where_the_captures_cover_the_same_time() {
    let captures = Captures::of(&simulation());
    let reports = KeptReports::default();
    let one = one_read(&plan("lda"), captures.files(), &reports).unwrap();
    let two = two_reads(&plan("lda"), captures.files(), false, &reports).unwrap();
    let mean = |measured: &twixt_offline::PairMeasured| {
        measured.segments[0].concluded[0].estimates[0].delay.unwrap().mean().as_nanos()
    };
    assert_eq!(mean(&one), 5_000_000);
    assert_eq!(mean(&two), 5_000_000);
}

#[test]
fn a_capture_that_is_cut_short_is_used_up_to_there_and_reported() {
    let captures = Captures::of(&simulation());
    let path = captures.files().downstream;
    let bytes = fs::read(path).unwrap();
    fs::write(path, &bytes[..bytes.len() - 5]).unwrap();
    let reports = KeptReports::default();
    let measured = two_reads(&plan("exact"), captures.files(), false, &reports).unwrap();
    assert!(measured.partial);
    let remarks = reports.remarks();
    assert!(
        matches!(&remarks[..], [Remark::EndedEarly { path: found, .. }] if found == path),
        "{remarks:?}"
    );
}

#[test]
fn captures_in_the_wrong_order_are_told_from_those_that_share_nothing() {
    let captures = Captures::of(&simulation());
    let error =
        |files| two_reads(&plan("exact"), files, false, &KeptReports::default()).unwrap_err();
    let swapped = error(captures.files().swapped());
    assert!(matches!(swapped, OfflineError::OtherWayOnly), "{swapped}");
    let empty = captures.folder.path().join("empty.pcap");
    fs::write(&empty, &fs::read(captures.files().upstream).unwrap()[..24]).unwrap();
    let nothing = error(Files { upstream: &empty, ..captures.files() });
    assert!(matches!(nothing, OfflineError::NothingToMeasure { .. }), "{nothing}");
    assert_eq!(nothing.kind(), ErrorKind::NoAnswer);
    let missing = error(Files { upstream: "none.pcap".as_ref(), ..captures.files() });
    assert_eq!(missing.kind(), ErrorKind::Failure);
}

#[test]
fn a_plan_that_makes_no_sense_is_a_usage_error() {
    let by_flow = twixt_offline::Plan { split: Split::By(By::Flow), ..plan("lda") };
    let error = by_flow.check().unwrap_err();
    assert_eq!(
        (error.kind(), error.to_string().as_str()),
        (ErrorKind::Usage, "lda does not separate flows")
    );
    let captures = Captures::of(&simulation());
    let short = twixt_offline::Plan { rule: EpochRule::every(1).unwrap(), ..plan("exact") };
    let error = two_reads(&short, captures.files(), false, &KeptReports::default()).unwrap_err();
    assert!(matches!(error, OfflineError::EpochsTooShort { length_ns: 1, .. }), "{error}");
}
