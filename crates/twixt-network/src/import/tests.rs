use super::*;
use crate::topology::{Remarks, RouterId};

/// The same network in every format: a to b at 2.5 and b to c at 1, both ways.
const ROCKETFUEL: &str = "# a comment\na b 2.5\nb a 2.5\n\nb c 1\nc b 1\n";
const JSON: &str = r#"{"routers": ["a", "b", "c"],
  "links": [{"from": "a", "to": "b", "weight": 2.5}, {"from": "c", "to": "b", "weight": 1}]}"#;
const GML: &str = r#"
Creator "somebody [else]"
graph [
  label "a network"
  node [ id 7 label "a" graphics [ x 1 label "not this" ] ]
  node [ id -1 label "b" ]
  edge [ source 7 target -1 weight 2.5 ]
  # a comment ]
  edge [ source -1 target 3 weight 1 LinkLabel "b
    to c" ]
  node [ id 3 label "c" ]
]"#;
const GRAPHML: &str = r#"<?xml version="1.0" encoding="utf-8"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
  <key id="d0" for="node" attr.name="label" attr.type="string"/>
  <key id="d1" for="edge" attr.name="weight"><desc>what it costs</desc><default>1</default></key>
  <graph edgedefault="undirected">
    <node id="n0"><data key="d0">a</data></node>
    <node id="n1"><data key="d0"><![CDATA[b]]></data><data key="d9">not this</data></node>
    <node id="n2"><data key="d0">&#99;</data></node>
    <edge source="n0" target="n1"><data key="d1"> 2.5 </data></edge>
    <edge source="n1" target="n2"/>
  </graph>
</graphml>"#;

#[track_caller]
fn check_refused(text: &str, message: &str) {
    assert_eq!(import(text.as_bytes()).unwrap_err().to_string(), message, "{text}");
}

/// Routers, pairs of them with a link between, and directed links.
#[track_caller]
fn check_size(text: &str, sizes: [usize; 3]) {
    let topology = import(text.as_bytes()).unwrap();
    let found = [topology.routers(), topology.adjacent_pairs(), topology.directed_links()];
    assert_eq!(found, sizes, "{text}");
}

#[test]
fn all_formats_say_the_same() {
    let [expected, others @ ..] =
        [ROCKETFUEL, JSON, GML, GRAPHML].map(|text| import(text.as_bytes()).unwrap());
    assert_eq!(expected.routers(), 3);
    assert_eq!(expected.name(RouterId::of(2)), "c");
    for other in others {
        assert_eq!(other, expected);
    }
}

#[test]
fn formats_are_told_by_content() {
    for (text, format) in [
        (ROCKETFUEL, Format::Rocketfuel),
        (JSON, Format::Json),
        (GML, Format::Gml),
        (GRAPHML, Format::GraphMl),
    ] {
        assert_eq!(Format::of(text), Some(format));
    }
    for text in ["", "# only a comment", "a graph", "these are no routers", "a b c"] {
        assert_eq!(Format::of(text), None, "{text}");
    }
}

#[test]
fn a_byte_order_mark_is_passed_over() {
    check_size(&format!("\u{feff}{JSON}"), [3, 2, 4]);
}

#[test]
fn links_may_go_one_way() {
    check_size("a b 1", [2, 1, 1]);
    check_size(r#"{"directed": true, "links": [{"from": "a", "to": "b"}]}"#, [2, 1, 1]);
    let gml = "graph [ directed 1 node [ id 1 ] node [ id 2 ] edge [ source 1 target 2 ] ]";
    check_size(gml, [2, 1, 1]);
    let graphml = "<graphml><graph edgedefault='directed'><node id='a'/><node id='b'/>\
                   <edge source='a' target='b'/></graph></graphml>";
    check_size(graphml, [2, 1, 1]);
    check_size(&graphml.replace("<edge", "<edge directed='false'"), [2, 1, 2]);
}

#[test]
fn missing_weights_are_one_and_counted() {
    let topology = import(br#"{"links": [{"from": "a", "to": "b"}]}"#).unwrap();
    assert_eq!(topology.remarks(), Remarks { unweighted_links: 2, ..Remarks::default() });
}

#[test]
fn names_are_told_apart() {
    let gml = "graph [ node [ id 1 label \"None\" ] node [ id 2 label \"M&#252;nchen\" ]
               node [ id 3 label \"None\" ] ]";
    let topology = import(gml.as_bytes()).unwrap();
    let names = [0, 1, 2].map(|router| topology.name(RouterId::of(router)));
    assert_eq!(names, ["None", "München", "None#3"]);
}

#[test]
fn errors_say_where_and_what_to_do() {
    let weight = "use a number from 0.000001 to 1000000000, or remove an unused link";
    check_refused("a b 1\nb c 0", &format!("line 2: \"0\" is not a valid weight; {weight}"));
    check_refused("a b 1\nb c nan", &format!("line 2: \"nan\" is not a valid weight; {weight}"));
    check_refused("a b 1\nb c", "line 2: \"b c\" is not source, destination and weight");
    check_refused(
        r#"{"links": [{"from": "a", "to": "b", "weight": -1}]}"#,
        &format!("element 1 of \"links\": \"-1\" is not a valid weight; {weight}"),
    );
    check_refused(
        r#"{"routers": ["a"], "links": [{"from": "a", "to": "b"}]}"#,
        "element 1 of \"links\": a link of unknown router \"b\"; add the router or correct the link",
    );
    check_refused(
        r#"{"routers": ["a", "a"], "links": []}"#,
        "element 2 of \"routers\": duplicate router \"a\"; rename one of the two",
    );
    check_refused(
        "{\"links\":\n 5}",
        "line 2: column 2: invalid type: integer `5`, expected a sequence",
    );
    check_refused("{\"links\": []}", "the topology: no routers; is this the right file?");
    check_refused(
        "neither",
        "neither Rocketfuel weights, GML, GraphML nor JSON; export the topology as one of them",
    );
}

#[test]
fn gml_errors_say_where_and_what_to_do() {
    let unclosed = "the list \"node\" has no end; is the file truncated?";
    check_refused("graph [\n node [ id 1", &format!("line 2: {unclosed}"));
    check_refused("graph [ ]\n]", "line 2: \"]\" without a \"[\" before it; remove it");
    check_refused("graph [\n node [ ] ]", "line 2: a list \"node\" without \"id\"; add it");
    check_refused("graph [\n node ]", "line 2: the key \"node\" has no value; add one");
    check_refused(
        "graph [\n 1 2 \"x\" ]",
        "line 2: a value without a key before it; write: key value",
    );
    check_refused("graph [\n a \"x ]", "line 2: a string without closing quote; add one");
    let deep = format!("graph [\n{}", "a [ ".repeat(100));
    check_refused(&deep, "line 2: lists nested more than 32 levels deep; flatten them");
}

#[test]
fn graphml_errors_say_where_and_what_to_do() {
    let cut = "the file ends before its graph does; is it truncated?";
    check_refused("<graphml>\n</graphml>", &format!("line 2: {cut}"));
    check_refused(
        "<graph>\n<node/></graph>",
        "line 2: a \"node\" without the attribute \"id\"; add it",
    );
    check_refused(
        "<graph><node id='a'>\n<graph/></node></graph>",
        "line 2: a second or nested graph; keep one graph per file",
    );
    assert!(matches!(
        import(b"<graph>\n<node id='a'></graph>"),
        Err(ImportError::Syntax { place: ProblemPlace::Line(2), .. })
    ));
}

#[test]
fn entities_do_not_grow() {
    let bomb = "<!DOCTYPE g [<!ENTITY a \"aaaaaaaaaa\"><!ENTITY b \"&a;&a;&a;\">]>
        <graphml><key id='n' for='node' attr.name='name'/><graph>
        <node id='1'><data key='n'>&b;</data></node></graph></graphml>";
    assert_eq!(import(bomb.as_bytes()).unwrap().name(RouterId::of(0)), "?");
}

#[test]
fn bytes_that_are_no_text_are_refused() {
    assert_eq!(import(b"a b 1\n\xff b 1"), Err(ImportError::NotText { line: 2 }));
    assert_eq!(import(&vec![b' '; FILE_BYTES_MAX + 1]), Err(ImportError::TooLarge));
}
