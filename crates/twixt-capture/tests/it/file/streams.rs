//! How frames come in batches, and from slow inputs.

use std::io::{self, Read};

use twixt_capture::ByteOrder::Little;
use twixt_capture::{BATCH_FRAMES_MAX, BatchEnd, CaptureFile, Ending, PacketSource};

use crate::file::build::{Pcap, Pcapng, drain, open, read};

/// Gives one byte at a time, and is interrupted in between.
struct Trickle {
    bytes: Vec<u8>,
    at: usize,
    is_interrupted: bool,
}

impl Read for Trickle {
    fn read(&mut self, target: &mut [u8]) -> io::Result<usize> {
        self.is_interrupted = !self.is_interrupted;
        if self.is_interrupted {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let Some(&byte) = self.bytes.get(self.at) else { return Ok(0) };
        target[0] = byte;
        self.at += 1;
        Ok(1)
    }
}

#[track_caller]
fn check_trickle(bytes: Vec<u8>) {
    let expected = read(&bytes);
    let input = Trickle { bytes, at: 0, is_interrupted: false };
    let mut file = CaptureFile::from_reader(Box::new(input), "pipe").unwrap();
    assert_eq!(drain(&mut file), expected);
    assert!(expected.0.len() > 1);
}

#[test]
fn a_slow_pipe_gives_the_same_frames() {
    let pcap = Pcap::new(Little, 0xa1b2_c3d4).record(1, 0, b"abc", 3).record(2, 0, b"d", 1);
    check_trickle(pcap.bytes);
    let pcapng = Pcapng::new(Little).resolution(1, 9).enhanced(0, 1, b"abc").enhanced(0, 2, b"d");
    check_trickle(pcapng.bytes);
}

/// A pipe whose writer pauses after each piece and never ends.
struct Pieces(Vec<Vec<u8>>);

impl Read for Pieces {
    fn read(&mut self, target: &mut [u8]) -> io::Result<usize> {
        assert!(!self.0.is_empty(), "nobody should wait here");
        let piece = self.0.remove(0);
        target[..piece.len()].copy_from_slice(&piece);
        Ok(piece.len())
    }
}

#[test]
fn frames_are_handed_over_before_waiting_for_more() {
    let header = Pcap::new(Little, 0xa1b2_c3d4).bytes;
    let both = Pcap::new(Little, 0xa1b2_c3d4).record(1, 0, b"abc", 3).bytes;
    let magic = header[..4].to_vec();
    let pieces = vec![magic, header[4..].to_vec(), both[24..].to_vec()];
    let mut file = CaptureFile::from_reader(Box::new(Pieces(pieces)), "pipe").unwrap();
    let mut frames = 0;
    while frames == 0 {
        assert_eq!(file.read_batch(|_| frames += 1), BatchEnd::More);
    }
    assert_eq!(frames, 1);
}

#[test]
fn batches_are_bounded_and_an_ended_file_stays_ended() {
    let mut pcap = Pcap::new(Little, 0xa1b2_c3d4);
    let mut pcapng = Pcapng::new(Little).resolution(1, 9);
    let total = BATCH_FRAMES_MAX * 2 + 1;
    for number in 0..total as u32 {
        pcap = pcap.record(number, 0, b"abc", 3);
        pcapng = pcapng.enhanced(0, u64::from(number), b"abc");
    }
    for bytes in [pcap.bytes, pcapng.bytes] {
        let mut source: Box<dyn PacketSource> = Box::new(open(&bytes).unwrap());
        let mut sizes = Vec::new();
        loop {
            let mut frames = 0;
            let end = source.next_batch(&mut |_| frames += 1).unwrap();
            sizes.push(frames);
            if end == BatchEnd::End {
                break;
            }
        }
        sizes.retain(|&size| size > 0);
        assert_eq!(sizes, [BATCH_FRAMES_MAX, BATCH_FRAMES_MAX, 1]);
        assert_eq!(source.counts().frames, total as u64);
        assert_eq!(source.next_batch(&mut |_| panic!("no more")).unwrap(), BatchEnd::End);
    }
}

#[test]
fn records_larger_than_the_buffer_are_read() {
    let frame = vec![7; 262_144];
    let mut file = Pcap::new(Little, 0xa1b2_c3d4);
    for number in 0..5 {
        file = file.record(number, 0, &frame, 300_000).record(number, 1, b"small", 5);
    }
    let (frames, ending, _) = read(&file.bytes);
    assert_eq!(ending, Ending::Complete);
    assert!(frames.iter().step_by(2).all(|seen| seen.bytes == frame));
    assert_eq!(frames.len(), 10);

    let file = Pcapng::new(Little).resolution(1, 9);
    let body = file.body().padded(&vec![1; 3 << 20]);
    let (frames, ending, _) = read(&file.block(0xbad, body).enhanced(0, 1, b"after").bytes);
    assert_eq!((frames.len(), ending), (1, Ending::Complete));
}
