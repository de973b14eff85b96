//! Captures, alone and in pairs with known delays.

use std::fs;
use std::path::Path;

use twixt_capture::PcapWriter;
use twixt_model::Timestamp;

use super::frames::Packet;
use super::{Run, twixt_in};

/// When captures begin, nanoseconds since 1970: not on a round second, as in life.
pub(crate) const START: i64 = 1_700_000_000_123_456_789;
/// In nanoseconds.
pub(crate) const SECOND: i64 = 1_000_000_000;
/// In nanoseconds.
pub(crate) const MILLISECOND: i64 = 1_000_000;

/// Frames with their times, to be written as pcap; as pcapng if frames were dropped.
#[derive(Clone, Debug, Default)]
pub(crate) struct Capture {
    frames: Vec<(i64, Vec<u8>)>,
    snap_length: Option<usize>,
    dropped: Option<u64>,
    /// Frames are written queue by queue.
    queues: usize,
    /// Frames are written in the order in which they were added.
    in_order_added: bool,
}

impl Capture {
    /// Adds a frame at a time in nanoseconds after [`START`].
    pub(crate) fn add(&mut self, time_ns: i64, frame: Vec<u8>) {
        self.frames.push((START + time_ns, frame));
    }

    /// Keeps so many bytes of each frame.
    pub(crate) fn cut(self, snap_length: usize) -> Self {
        Self { snap_length: Some(snap_length), ..self }
    }

    /// As if each of so many queues had been captured by itself, and the files appended.
    pub(crate) fn by_queue(self, queues: usize) -> Self {
        Self { queues, ..self }
    }

    /// Frames stay in the order in which they were added, as they do where a clock is set back.
    pub(crate) fn in_order_added(self) -> Self {
        Self { in_order_added: true, ..self }
    }

    /// As if the clock had been ahead by so much.
    pub(crate) fn shifted(mut self, ahead_ns: i64) -> Self {
        for (time, _) in &mut self.frames {
            *time += ahead_ns;
        }
        self
    }

    /// As if the capture had run only between two times after [`START`], both included.
    pub(crate) fn between(mut self, start_ns: i64, end_ns: i64) -> Self {
        self.frames.retain(|(time, _)| (START + start_ns..=START + end_ns).contains(time));
        self
    }

    /// As if the kernel had dropped all frames between two times after [`START`]. The file says at
    /// its end how many.
    pub(crate) fn dropping(mut self, start_ns: i64, end_ns: i64) -> Self {
        let before = self.frames.len();
        self.frames.retain(|(time, _)| !(START + start_ns..START + end_ns).contains(time));
        let dropped = (before - self.frames.len()) as u64;
        Self { dropped: Some(self.dropped.unwrap_or(0) + dropped), ..self }
    }

    /// How many frames there are.
    pub(crate) fn len(&self) -> usize {
        self.frames.len()
    }

    /// The capture as nanosecond pcap, in the order of times.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut frames = self.frames.clone();
        if !self.in_order_added {
            frames.sort_by_key(|(time, _)| *time);
        }
        if self.queues > 1 {
            let mut numbered: Vec<_> = frames.into_iter().enumerate().collect();
            numbered.sort_by_key(|(number, _)| number % self.queues);
            frames = numbered.into_iter().map(|(_, frame)| frame).collect();
        }
        if let Some(dropped) = self.dropped {
            return pcapng(&frames, dropped);
        }
        let snap_length = self.snap_length.unwrap_or(65535);
        let mut writer =
            PcapWriter::new(Vec::new(), 1, snap_length as u32).expect("memory can be written to");
        for (time, frame) in frames {
            writer
                .write(Timestamp::from_nanos(time), &frame, frame.len() as u32)
                .expect("memory can be written to");
        }
        writer.into_inner()
    }

    /// Writes the capture to a file.
    pub(crate) fn write(&self, path: impl AsRef<Path>) {
        fs::write(path, self.bytes()).expect("the folder can be written to");
    }
}

/// Frames as pcapng, with a statistics block behind them.
fn pcapng(frames: &[(i64, Vec<u8>)], dropped: u64) -> Vec<u8> {
    let words =
        |words: &[u32]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
    let time = |time: i64| [(time >> 32) as u32, time as u32];
    let mut bytes = Vec::new();
    let mut block = |kind: u32, body: &[u8]| {
        let length = body.len() as u32 + 12;
        bytes.extend([words(&[kind, length]), body.to_vec(), words(&[length])].concat());
    };
    block(0x0a0d_0d0a, &words(&[0x1a2b_3c4d, 1, u32::MAX, u32::MAX]));
    // Ethernet, in nanoseconds.
    block(1, &[words(&[1, 65535]), vec![9, 0, 1, 0, 9, 0, 0, 0], words(&[0])].concat());
    for (at, frame) in frames {
        let [high, low] = time(*at);
        let length = frame.len() as u32;
        let mut body = [words(&[0, high, low, length, length]), frame.clone()].concat();
        body.resize(body.len().next_multiple_of(4), 0);
        block(6, &body);
    }
    let [high, low] = time(frames.last().map_or(START, |(time, _)| *time));
    let option = [vec![5, 0, 8, 0], dropped.to_le_bytes().to_vec()].concat();
    block(5, &[words(&[0, high, low]), option, words(&[0])].concat());
    bytes
}

/// Packets on their way, by when they pass the first point and how long they then take.
#[derive(Clone, Debug, Default)]
pub(crate) struct Crossing {
    pub(crate) upstream: Capture,
    pub(crate) downstream: Capture,
    delays_ns: Vec<i64>,
    lost: i64,
}

impl Crossing {
    /// `packets` UDP packets of one flow, a millisecond apart; the delay of each by its number,
    /// `None` for one that is lost. A router in between takes one from the time to live.
    pub(crate) fn of(packets: u16, delay_ns: impl Fn(u16) -> Option<i64>) -> Self {
        let mut crossing = Self::default();
        for number in 0..packets {
            let packet = Packet::udp("10.0.0.1:5000", "10.0.1.9:53", number);
            crossing.send(i64::from(number) * MILLISECOND, &packet, delay_ns(number));
        }
        crossing
    }

    /// A second, with delays from 1 to about 4 ms, in no order; every fiftieth packet is lost.
    pub(crate) fn varied() -> Self {
        Self::of(1000, |number| {
            let extra_ns = i64::from(number) * 7_919_317 % (3 * MILLISECOND);
            (number % 50 != 20).then_some(MILLISECOND + extra_ns)
        })
    }

    /// Names over UDP and a transfer over TCP, a packet of each per millisecond. Transfers take
    /// 2 ms; names take as long as given, or are all lost.
    pub(crate) fn names_and_transfer(packets: u16, name_delay_ns: Option<i64>) -> Self {
        let mut crossing = Self::default();
        for number in 0..packets {
            let time_ns = i64::from(number) * MILLISECOND;
            let name = Packet::udp("10.0.0.1:5000", "10.0.1.9:53", number);
            let transfer = Packet::tcp("10.0.0.1:40000", "10.0.1.9:443", number);
            crossing.send(time_ns, &name, name_delay_ns);
            crossing.send(time_ns + 9, &transfer, Some(2 * MILLISECOND));
        }
        crossing
    }

    /// A packet that goes downstream, through a router.
    pub(crate) fn send(&mut self, time_ns: i64, packet: &Packet, delay_ns: Option<i64>) {
        let arriving = packet.clone().ttl(63).frame();
        self.pass(time_ns, packet.frame(), delay_ns.map(|delay| (delay, arriving)));
    }

    /// A frame that goes downstream, with its delay and what arrives.
    pub(crate) fn pass(&mut self, time_ns: i64, frame: Vec<u8>, arrival: Option<(i64, Vec<u8>)>) {
        self.upstream.add(time_ns, frame);
        match arrival {
            Some((delay_ns, arriving)) => {
                self.downstream.add(time_ns + delay_ns, arriving);
                self.delays_ns.push(delay_ns);
            }
            None => self.lost += 1,
        }
    }

    /// A packet that goes the other way, through a router.
    pub(crate) fn send_back(&mut self, time_ns: i64, packet: &Packet, delay_ns: i64) {
        self.downstream.add(time_ns, packet.frame());
        self.upstream.add(time_ns + delay_ns, packet.clone().ttl(63).frame());
    }

    /// Packets sent downstream, arrived and lost: what `packets`, `used` and `lost` must say.
    pub(crate) fn evidence(&self) -> [i64; 3] {
        let arrived = self.delays_ns.len() as i64;
        [arrived + self.lost, arrived, self.lost]
    }

    /// Mean delay downstream, to the nearest nanosecond.
    pub(crate) fn mean_ns(&self) -> i64 {
        let sum: i64 = self.delays_ns.iter().sum();
        (sum as f64 / self.delays_ns.len() as f64).round() as i64
    }

    /// Smallest and largest delay.
    pub(crate) fn range_ns(&self) -> (i64, i64) {
        let delays = || self.delays_ns.iter().copied();
        (delays().min().expect("something arrived"), delays().max().expect("something arrived"))
    }

    /// Writes both captures into a folder of their own.
    pub(crate) fn scene(&self) -> Scene {
        Scene::new(&self.upstream, &self.downstream)
    }
}

/// A folder with `up.pcap` and `down.pcap`.
pub(crate) struct Scene {
    folder: tempfile::TempDir,
}

impl Scene {
    /// Of two captures.
    pub(crate) fn new(upstream: &Capture, downstream: &Capture) -> Self {
        let folder = super::folder();
        upstream.write(folder.path().join("up.pcap"));
        downstream.write(folder.path().join("down.pcap"));
        Self { folder }
    }

    /// The folder.
    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Runs `twixt delay up.pcap down.pcap` with further options.
    pub(crate) fn delay(&self, options: &str) -> Run {
        self.run(&format!("delay up.pcap down.pcap {options}"))
    }

    /// Runs the command in the folder.
    pub(crate) fn run(&self, arguments: &str) -> Run {
        twixt_in(self.path(), arguments)
    }
}
