//! Datagrams on every cable, evenly, until all is over.

use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::SEGMENTS;

/// Datagrams of a segment in a second.
const RATE: u32 = 200;
const FLOWS: u64 = 50;

/// Returns how many were sent.
pub(crate) fn send_until(over: &AtomicBool) -> u64 {
    let bind = |segment: usize| UdpSocket::bind(format!("10.0.{segment}.1:5000")).unwrap();
    let sockets: Vec<UdpSocket> = (0..SEGMENTS).map(bind).collect();
    let (start, mut sent, mut rounds) = (Instant::now(), 0, 0);
    while !over.load(Ordering::Relaxed) {
        for (segment, socket) in sockets.iter().enumerate() {
            let port = 6000 + (mixed(sent) % FLOWS) as u16;
            let payload = sent.to_be_bytes();
            socket.send_to(&payload, (format!("10.0.{segment}.2").as_str(), port)).unwrap();
            sent += 1;
        }
        rounds += 1;
        let due = start + Duration::from_secs(1) * rounds / RATE;
        thread::sleep(due.saturating_duration_since(Instant::now()));
    }
    sent
}

/// Flows come in no order.
const fn mixed(number: u64) -> u64 {
    number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32
}
