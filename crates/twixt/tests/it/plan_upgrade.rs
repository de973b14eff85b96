//! `twixt plan upgrade`: what it prints, and what it refuses.

use std::fs;

use expect_test::{Expect, expect};
use serde_json::Value;
use twixt_testing::require;

use crate::support::{Run, folder, twixt, twixt_fed};

/// Five routers in a line, by weights of both directions.
const LINE: &str = "a b 1\nb a 1\nb c 1\nc b 1\nc d 1\nd c 1\nd e 1\ne d 1\n";

/// Runs the command on a topology that comes by standard input.
fn plan(topology: &str, arguments: &str) -> Run {
    let folder = folder();
    let arguments = format!("plan upgrade --topology - {arguments}");
    twixt_fed(folder.path(), &arguments, topology.as_bytes())
}

#[track_caller]
fn check_output(topology: &str, arguments: &str, expected: &Expect) {
    expected.assert_eq(&plan(topology, arguments).expect(0).silent().stdout);
}

#[track_caller]
fn column(document: &Value, key: &str) -> Vec<Value> {
    let steps = document["steps"].as_array().expect("there are steps");
    steps.iter().map(|step| step[key].clone()).collect()
}

#[test]
fn a_line_for_people() {
    check_output(
        LINE,
        "--count 4",
        &expect![[r#"
            -   (5 routers, 4 links, greedy)

            upgraded  router  paths  probe hops  saved    share  granularity  max
            0              –     20          40      –        –         2.00    4
            1              c     12          16     24  60.00 %         1.33    2
            2              b     10          12      4  10.00 %         1.20    2
            3              d      8           8      4  10.00 %         1.00    1
            4              a      8           8      0      0 %         1.00    1

            gain     flat after 3: each later one saves less than 1.00 % of the hops before any
            savings  50 % with 1, 90 % with 3, 99 % with 3 of what all routers would save
            least    8 probe hops, with all routers upgraded
        "#]],
    );
}

#[test]
fn a_line_drawn() {
    let folder = folder();
    for (file, begins) in [("hops.svg", &b"<svg"[..]), ("hops.png", b"\x89PNG")] {
        let arguments = format!("plan upgrade --topology - --count 3 --plot {file}");
        twixt_fed(folder.path(), &arguments, LINE.as_bytes()).expect(0).silent();
        let drawn = fs::read(folder.path().join(file)).expect("the plot is there");
        assert!(drawn.starts_with(begins), "{file}");
    }
}

#[test]
fn a_line_for_programs() {
    let document = plan(LINE, "--count 3 -F json").expect(0).silent().json();
    assert_eq!((&document["routers"], &document["links"]), (&5.into(), &4.into()));
    assert_eq!(document["least_probe_hops"], 8);
    assert_eq!(column(&document, "upgraded"), [0, 1, 2, 3]);
    assert_eq!(column(&document, "probe_hops"), [40, 16, 12, 8]);
    assert_eq!(column(&document, "paths"), [20, 12, 10, 8]);
    assert_eq!(column(&document, "granularity_max"), [4, 2, 2, 1]);
    assert_eq!(column(&document, "granularity_min"), [1, 1, 1, 1]);
    assert_eq!(column(&document, "granularity_mean"), [2.0, 16.0 / 12.0, 1.2, 1.0]);
    assert_eq!(column(&document, "router"), [Value::Null, "c".into(), "b".into(), "d".into()]);
    assert_eq!(column(&document, "saved_hops"), [Value::Null, 24.into(), 4.into(), 4.into()]);
}

#[test]
fn rows_for_programs() {
    check_output(
        LINE,
        "--count 1 -F csv",
        &expect![[r#"
        upgraded,router,paths,probe_hops,saved_hops,granularity_mean,granularity_min,granularity_max
        0,,20,40,,2.0,1,4
        1,c,12,16,24,1.3333333333333333,1,2
    "#]],
    );
    assert_eq!(plan(LINE, "--count 2 -F jsonl").expect(0).json_lines().len(), 3);
}

#[test]
fn random_choices_follow_from_the_seed() {
    let routers = |seed: u32| {
        let arguments = format!("--count 5 --strategy random --seed {seed} -F json");
        let document = plan(LINE, &arguments).expect(0).json();
        assert_eq!((&document["strategy"], &document["seed"]), (&"random".into(), &seed.into()));
        column(&document, "router")
    };
    assert_eq!(routers(1), routers(1));
    assert!((2..10).any(|seed| routers(seed) != routers(1)));
}

#[test]
fn what_was_left_out_or_made_up_is_said() {
    let topology = r#"{"routers": ["a", "b", "c"], "links": [{"from": "a", "to": "b"},
        {"from": "b", "to": "a", "weight": 2}, {"from": "c", "to": "c", "weight": 1}]}"#;
    let said = [
        "2 directed links without a weight",
        "2 directed links parallel to a cheaper or equal one",
        "2 directed links from a router to itself",
        "4 ordered pairs of routers have no path",
        "only 3 routers",
    ];
    plan(topology, "--count 9").expect(0).says(&said);
}

#[test]
fn what_is_no_topology_is_refused() {
    plan("a b 1\nb c -2\n", "--count 1")
        .expect(1)
        .says(&["-: line 2", "\"-2\" is not a valid weight"]);
    plan("hello", "--count 1").expect(1).says(&["neither Rocketfuel weights, GML, GraphML"]);
    let missing = ["plan", "upgrade", "--topology", "missing.gml", "--count", "1"];
    twixt(missing).expect(1).says(&["cannot open missing.gml"]);
    plan(LINE, "").expect(2).says(&["--count"]);
}

/// Too many paths of equal cost end with a message, and soon.
#[test]
fn too_many_paths_are_refused() {
    let diamonds = (0..70).flat_map(|diamond| {
        let at = 3 * diamond;
        [(at, at + 1), (at, at + 2), (at + 1, at + 3), (at + 2, at + 3)]
    });
    let links: Vec<String> = diamonds.map(|(from, to)| format!("{from} {to} 1\n")).collect();
    plan(&links.concat(), "--count 1").expect(1).says(&["too many shortest paths of equal cost"]);
}

/// Figure 9 of the mPlane paper, through the command.
#[test]
fn sprint_as_published() {
    let file = require!(shared "topologies/rocketfuel/1239/weights.intra");
    let topology = fs::read_to_string(file).expect("readable");
    let document = plan(&topology, "--count 60 -F json").expect(0).silent().json();
    assert_eq!((&document["routers"], &document["links"]), (&315.into(), &972.into()));
    let hops = column(&document, "probe_hops");
    assert_eq!((&hops[0], &hops[45]), (&965_384.into(), &5_704.into()));
}
