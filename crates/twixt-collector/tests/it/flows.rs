//! What the running collector tells of single flows.

use serde_json::Value;
use twixt_collector::flows::EPOCHS_MAX;
use twixt_history::moment_text;
use twixt_measure::Sealed;
use twixt_model::Timestamp;
use twixt_synopsis::Purpose;

use crate::api::{ask, ask_until, patient};
use crate::epochs::{Agent, DELAY_NS, EPOCH_NS, body, epoch_now};
use crate::running::Running;

const EPOCHS: i64 = 20;
/// Epochs of upstream's that downstream has whole even if its clock is ahead.
const MIDDLE: i64 = 10;
/// Flows of the agents' packets.
const FLOWS: usize = 7;

/// A collector that has so many epochs of these agents, and has compared `known` of them.
fn fed(folder: &std::path::Path, agents: &[Agent], epochs: i64, known: i64) -> (Running, i64) {
    /// Agents take turns: no more than so many epochs of one wait for those of the other.
    const TURN: usize = 30;
    let collector = patient(folder);
    let first = epoch_now() - epochs;
    let sealed: Vec<Vec<Sealed>> = agents.iter().map(|agent| agent.seal(first, epochs)).collect();
    for turn in 0..(epochs as usize).div_ceil(TURN) {
        for part in sealed.iter().filter_map(|sealed| sealed.chunks(TURN).nth(turn)) {
            collector.send(&body(part)).counts();
        }
    }
    let compared = |document: &Value| document["completeness"]["epochs"].as_i64() >= Some(known);
    ask_until(&collector, "/v1/estimates?segment=up:down&step=hour", compared);
    (collector, first)
}

/// The flows of epochs from one to another.
fn flows(collector: &Running, first: i64, epochs: i64) -> (u16, Value) {
    let moment = |epoch: i64| moment_text(Timestamp::from_nanos(epoch * EPOCH_NS));
    let (start, end) = (moment(first), moment(first + epochs - 1));
    ask(collector, &format!("/v1/flows?segment=up:down&start={start}&end={end}&min_packets=2"))
}

/// Checks the flows of epochs in the middle: their mean, or why there are none.
#[track_caller]
fn check(agents: &[Agent], mean_ns: Option<i64>, reason: Option<&str>) {
    let folder = tempfile::tempdir().unwrap();
    let (collector, first) = fed(folder.path(), agents, EPOCHS, MIDDLE + 4);
    let (status, document) = flows(&collector, first + 2, MIDDLE);
    assert_eq!(status, 200, "{document}");
    let found = document["flows"].as_array().unwrap();
    assert_eq!(found.len(), if mean_ns.is_some() { FLOWS } else { 0 }, "{document}");
    for flow in found {
        assert_eq!(flow["mean_ns"].as_i64(), mean_ns, "{flow}");
        assert_eq!((&flow["lost"], flow["epochs"].as_i64()), (&0.into(), Some(MIDDLE)));
    }
    assert_eq!(document["completeness"]["complete"], true, "{document}");
    assert_eq!(document["completeness"]["epochs"], MIDDLE);
    match (document["reason"].as_str(), reason) {
        (Some(told), Some(reason)) => assert!(told.contains(reason), "{told}"),
        (told, reason) => assert_eq!(told, reason),
    }
}

fn ends(algorithm: &'static str, delay_ns: i64) -> [Agent; 2] {
    [Agent::at("up"), Agent::at("down").after(delay_ns)]
        .map(|agent| agent.keeping(Purpose::Delay, algorithm))
}

#[test]
fn flows_are_named_by_the_epochs_or_by_a_table_beside_them() {
    check(&ends("exact", DELAY_NS), Some(DELAY_NS), None);
    check(&ends("sample", DELAY_NS), None, Some("sample keeps no flow keys"));
    let table = Agent::at("up").keeping(Purpose::Heavy, "space-saving");
    let [up, down] = ends("sample", DELAY_NS);
    check(&[table, up, down], Some(DELAY_NS), Some("the large flows whose keys up keeps"));
}

#[test]
fn clocks_that_are_epochs_apart_change_nothing() {
    let apart_ns = 5 * EPOCH_NS + DELAY_NS;
    check(&ends("exact", apart_ns), Some(apart_ns), None);
}

#[test]
fn one_question_takes_only_so_many_epochs() {
    let folder = tempfile::tempdir().unwrap();
    let epochs = EPOCHS_MAX as i64 + 30;
    let (collector, first) = fed(folder.path(), &ends("exact", DELAY_NS), epochs, epochs - 2);
    let (status, document) = flows(&collector, first, epochs);
    let told = document["error"].as_str().unwrap_or_default();
    assert!(status == 400 && told.contains("more than 600 epochs"), "{status} {document}");
    let (status, document) = flows(&collector, first + 10, EPOCHS_MAX as i64);
    assert_eq!((status, &document["completeness"]["epochs"]), (200, &EPOCHS_MAX.into()));
    // Where nothing came before, packets in flight look like lost ones.
    let (_, document) = flows(&collector, first, 3);
    let flow = &document["flows"][0];
    assert!(flow["lost"].is_null() && flow["reason"].is_string(), "{flow}");
}

#[test]
fn one_flow_is_had_epoch_by_epoch_and_as_its_sum_in_the_list() {
    let folder = tempfile::tempdir().unwrap();
    let (collector, first) = fed(folder.path(), &ends("exact", DELAY_NS), EPOCHS, MIDDLE + 4);
    let (_, all) = flows(&collector, first + 2, MIDDLE);
    let listed = &all["flows"][3];
    let scope = listed["scope"].as_str().unwrap();
    let written = scope.replace(' ', "%20").replace('>', "%3E");
    let moment = |epoch: i64| moment_text(Timestamp::from_nanos(epoch * EPOCH_NS));
    let (start, end) = (moment(first + 2), moment(first + 1 + MIDDLE));
    let path =
        |scope: &str| format!("/v1/flow?segment=up:down&start={start}&end={end}&scope={scope}");
    let (status, one) = ask(&collector, &path(&written));
    assert_eq!(status, 200, "{one}");
    assert_eq!((&one["scope"], &one["total"]), (&scope.into(), &Value::from(vec![listed.clone()])));
    let rows = one["estimates"].as_array().unwrap();
    assert_eq!(rows.len() as i64, MIDDLE, "{one}");
    let starts: Vec<i64> = rows.iter().map(|row| row["start_ns"].as_i64().unwrap()).collect();
    assert!(starts.is_sorted(), "{starts:?}");
    assert_eq!(starts[0], (first + 2) * EPOCH_NS);
    let packets = rows.iter().map(|row| row["packets"].as_i64().unwrap()).sum::<i64>();
    assert_eq!(Some(packets), listed["packets"].as_i64());
    assert!(rows.iter().all(|row| row["scope"] == scope && row["mean_ns"] == DELAY_NS));
    // A flow that was not seen is no error, and has no rows.
    let (status, none) = ask(&collector, &path("tcp%2010.0.0.1:1%20%3E%2010.0.0.2:2"));
    assert_eq!((status, &none["estimates"]), (200, &Value::Array(Vec::new())), "{none}");
    let (status, refused) = ask(&collector, "/v1/flow?segment=up:down");
    assert!(status == 400 && refused["error"].as_str().unwrap().contains("scope"), "{refused}");
}
