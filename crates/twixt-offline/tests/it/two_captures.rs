//! What the library tells of two captures, and what it reports beside that.

use std::fs;

use twixt_model::EpochRule;
use twixt_offline::{
    ErrorKind, Files, OfflineError, Plan, Remark, Split, Traffic, one_read, two_reads,
    two_reads_within,
};
use twixt_sim::{Config, Simulation};
use twixt_synopsis::By;

use crate::captures::{Captures, KeptReports, SEED, plan, simulation};

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
    // Simulated frames have headers only, which the first of them tell.
    let expected = 2 * (size(upstream) + size(downstream));
    assert_eq!(reports.read_bytes(), expected, "one survey and the measurement");
    assert_eq!(reports.remarks(), []);
}

/// Packets that were kept by the first read, or that are read again since their classes are not kept.
#[test]
fn a_second_read_of_memory_finds_what_one_of_the_file_finds() {
    let captures = Captures::of(&simulation());
    let check = |name: &str, rule: EpochRule| {
        let kept = Plan { rule, ..plan(name) };
        let [memory, file] = [kept.clone(), read_again(kept)].map(|plan| {
            let reports = KeptReports::default();
            let measured = two_reads(&plan, captures.files(), true, &reports);
            format!("{measured:#?} {:?}", reports.remarks())
        });
        assert_eq!(memory, file, "{name}, {rule:?}");
    };
    for name in ["exact", "lda", "lds", "sds", "colate", "sample"] {
        check(name, EpochRule::WHOLE);
        check(name, EpochRule::every(20_000_000).unwrap());
    }
}

/// Packets that lie in temporary files are told as those in memory are.
#[test]
fn packets_in_temporary_files_are_told_to_the_last_bit() {
    let config = Config {
        flows: 300,
        packets: Some(20_000),
        delay: "per-flow:median=2ms,spread=0.5,jitter=0.5".parse().unwrap(),
        loss: "burst:rate=0.01,length=20".parse().unwrap(),
        reorder: "uniform:rate=0.02,extent=1ms".parse().unwrap(),
        seed: SEED,
        ..Config::default()
    };
    let captures = Captures::of(&Simulation::run(&config).unwrap());
    for by in [By::All, By::Flow] {
        for rule in [EpochRule::WHOLE, EpochRule::every(5_000_000).unwrap()] {
            let plan = Plan { rule, split: Split::By(by), ..plan("exact") };
            let told = |memory_bytes| {
                let reports = KeptReports::default();
                let files = captures.files();
                let measured = two_reads_within(memory_bytes, &plan, files, false, &reports);
                format!("{:#?} {:?}", measured.unwrap(), reports.remarks())
            };
            let in_memory = told(usize::MAX);
            for memory_bytes in [2_000, 60_000] {
                assert!(in_memory == told(memory_bytes), "{by:?} {rule:?} {memory_bytes}");
            }
        }
    }
}

/// The same, by a second read of the file: classes of packets are not kept.
fn read_again(plan: Plan) -> Plan {
    let classes = vec![("tcp".to_owned(), "tcp".parse().unwrap())];
    Plan { traffic: Traffic { classes, ..Traffic::default() }, ..plan }
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
    let short = twixt_offline::Plan { rule: EpochRule::every(1).unwrap(), ..plan("lda") };
    let error = two_reads(&short, captures.files(), false, &KeptReports::default()).unwrap_err();
    assert!(matches!(error, OfflineError::EpochsTooShort { length_ns: 1, .. }), "{error}");
}

/// Delays of 1 to 9 ms and no loss, in captures long enough to be interrupted in their midst.
fn long_simulation() -> twixt_sim::Simulation {
    let config = twixt_sim::Config {
        flows: 400,
        packets: Some(60_000),
        rate: "20kpps".parse().unwrap(),
        delay: "bimodal:fraction=0.5,first=1ms,second=9ms,spread=0.1,jitter=0.1".parse().unwrap(),
        seed: 11,
        ..twixt_sim::Config::default()
    };
    println!("seed {}", config.seed);
    twixt_sim::Simulation::run(&config).unwrap()
}

/// What was read of one capture and not of the other looked lost.
#[test]
fn an_interrupted_measurement_is_one_of_shorter_captures() {
    let simulation = long_simulation();
    let captures = Captures::of(&simulation);
    let Files { upstream, downstream } = captures.files();
    let both = fs::metadata(upstream).unwrap().len() + fs::metadata(downstream).unwrap().len();
    let all = simulation.truth().all.evidence.packets;
    // One survey, as above, and then a part of the measurement.
    for share in [0.1, 0.3, 0.5] {
        for name in ["exact", "lda", "lds"] {
            let reports = KeptReports::until(both + (share * both as f64) as u64);
            // A read of memory may be over before the other thread begins.
            let plan = read_again(plan(name));
            let measured = two_reads(&plan, captures.files(), false, &reports).unwrap();
            let estimate = &measured.segments[0].concluded[0].estimates[0];
            let packets = estimate.evidence.packets;
            let measured_share = packets as f64 / all as f64;
            // How much more is read until both readers notice depends on their threads.
            assert!(measured_share > share - 0.05, "{name}: {packets} of {all}");
            assert_eq!(estimate.evidence.lost, Some(0), "{name}: {estimate:?}");
            let remarks = reports.remarks();
            assert!(matches!(remarks[..], [Remark::EndedByRequest(_)]), "{remarks:?}");
        }
    }
}

#[test]
fn nothing_is_measured_when_a_person_has_seen_enough_before() {
    let captures = Captures::of(&simulation());
    let reports = KeptReports::until(0);
    let error = two_reads(&plan("exact"), captures.files(), false, &reports).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Interrupted);
}
