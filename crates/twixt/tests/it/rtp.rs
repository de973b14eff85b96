//! RTP streams between two captures, and how calls sound.

use std::process::Command;

use serde_json::Value;
use twixt_testing::require;

use crate::support::{Capture, Crossing, MILLISECOND, Packet, number};

const FROM: &str = "10.0.0.1:20000";
const TO: &str = "10.0.1.9:30000";
const SSRC: u32 = 0xdead_beef;
const FRAME: i64 = 20 * MILLISECOND;

fn packet(payload_type: u8, index: u16) -> Packet {
    let mut payload = vec![0x80, payload_type];
    payload.extend((65_500_u16.wrapping_add(index)).to_be_bytes());
    payload.extend((160 * u32::from(index)).to_be_bytes());
    payload.extend(SSRC.to_be_bytes());
    payload.extend([index as u8; 160]);
    Packet::udp(FROM, TO, index).payload(&payload)
}

/// A call of a minute whose packets take so long, or are lost.
fn call(payload_type: u8, delay_ns: impl Fn(u16) -> Option<i64>) -> Crossing {
    let mut crossing = Crossing::of(0, |_| None);
    for index in 0..3_000 {
        let sent = i64::from(index) * FRAME;
        crossing.send(sent, &packet(payload_type, index), delay_ns(index));
        // The other end is silent, but for a packet now and then that tells the clocks.
        if index % 50 == 0 {
            let back = Packet::udp(FROM, TO, index).reversed();
            crossing.send_back(sent + 7 * MILLISECOND, &back, 10 * MILLISECOND);
        }
    }
    crossing
}

/// What two points see of a call that loses packets.
pub(crate) fn lossy_call() -> [Capture; 2] {
    let Crossing { upstream, downstream, .. } = call(0, lossy);
    [upstream, downstream]
}

fn lossy(index: u16) -> Option<i64> {
    let jitter = i64::from(index % 11 * 37 % 11) * MILLISECOND / 10;
    (index % 50 != 20).then_some(40 * MILLISECOND + jitter)
}

/// The only stream.
#[track_caller]
fn stream(crossing: &Crossing) -> Value {
    let document = crossing.scene().delay("--rtp -F json").expect(0).json();
    let streams = &document["segments"][0]["streams"];
    assert_eq!(streams.as_array().map(Vec::len), Some(1), "{document}");
    streams[0].clone()
}

#[test]
fn a_call_is_named_and_scored() {
    let stream = stream(&call(0, lossy));
    assert_eq!(stream["scope"], "udp 10.0.0.1:20000 > 10.0.1.9:30000");
    assert_eq!((&stream["ssrc"], &stream["codec"]), (&"0xdeadbeef".into(), &"G.711".into()));
    assert_eq!(["/packets", "/lost", "/late"].map(|key| number(&stream, key)), [3_000, 60, 0]);
    // 41 ms of playout and a frame of 20 ms, 2 % random loss: 84.49 by the equations of G.107.
    let rating = stream["r_factor"].as_f64().expect("it has a score");
    assert!((rating - 84.49).abs() < 0.01, "{stream}");
    let bounds = ["r_factor_low", "r_factor_high"].map(|key| stream[key].as_f64().unwrap());
    assert!(bounds[0] < rating && rating < bounds[1], "{stream}");
}

#[test]
fn streams_are_those_of_tshark() {
    require!(program "tshark");
    let crossing = call(0, lossy);
    let stream = stream(&crossing);
    let scene = crossing.scene();
    let output = Command::new("tshark")
        .args(["-r", "down.pcap", "-d", "udp.port==30000,rtp", "-q", "-z", "rtp,streams"])
        .current_dir(scene.path())
        .output()
        .expect("tshark starts");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let line = text.lines().find(|line| line.contains("0xDEADBEEF")).expect("tshark finds it");
    let words: Vec<&str> = line.split_whitespace().collect();
    let ssrc = words.iter().position(|word| *word == "0xDEADBEEF").expect("it was found");
    // SSRC, payload, packets, lost, (share), deltas, then jitter: least, mean, most.
    let [arrived, lost] = [ssrc + 2, ssrc + 3].map(|at| words[at].parse::<i64>().unwrap());
    let [packets, missing] = ["/packets", "/lost"].map(|key| number(&stream, key));
    assert_eq!([arrived, lost], [packets - missing, missing], "{line}");
    let jitter_ms: f64 = words[ssrc + 9].parse().expect("a number");
    let ours_ms = number(&stream, "/jitter_ns") as f64 / 1e6;
    assert!((jitter_ms - ours_ms).abs() < 0.001, "{ours_ms} is not {jitter_ms}: {line}");
}

#[test]
fn what_cannot_be_scored_says_why() {
    let why = |crossing: &Crossing| {
        let stream = stream(crossing);
        assert_eq!([&stream["r_factor"], &stream["mos"]], [&Value::Null; 2], "{stream}");
        stream["reason"].as_str().expect("there is a reason").to_owned()
    };
    assert!(why(&call(9, lossy)).contains("G.722, which is wideband"));
    assert!(why(&call(34, lossy)).contains("it is video"));
    let behind = why(&call(0, |_| Some(-40 * MILLISECOND)));
    assert!(behind.contains("use --clock correct"), "{behind}");
    let dynamic = stream(&call(111, lossy));
    assert_eq!((&dynamic["codec_assumed"], dynamic["mos"].is_number()), (&true.into(), true));
    assert_eq!(dynamic["reason"], "payload type 111 is dynamic: scored as G.711");
}

#[test]
fn other_packets_are_no_calls() {
    let run = Crossing::varied().scene().delay("--rtp").expect(4);
    run.says(&["no RTP stream goes from the first capture to the second"]);
}
