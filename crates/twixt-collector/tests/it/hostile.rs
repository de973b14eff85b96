//! Whatever bytes come, the collector stays up and others are served.

use std::io::Write;
use std::net::TcpStream;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use twixt_testing::{seed, wait_for};

use crate::epochs::{Agent, body, epoch_now};
use crate::running::{Running, client, config, logged, try_send};

const SEED: u64 = 1;
const ROUNDS: usize = 400;

/// Changes, removes, repeats or cuts some of the bytes.
fn mutate(bytes: &mut Vec<u8>, random: &mut ChaCha8Rng) {
    for _ in 0..=random.next_u32() % 4 {
        let place = random.next_u32() as usize % bytes.len().max(1);
        match random.next_u32() % 5 {
            0 => bytes.truncate(place),
            1 => bytes.extend_from_within(place..),
            2 => drop(bytes.drain(place..bytes.len().min(place + 8))),
            _ if bytes.is_empty() => bytes.push(0),
            3 => bytes[place] = random.next_u32() as u8,
            _ => bytes[place] ^= 1 << (random.next_u32() % 8),
        }
    }
}

#[test]
fn damaged_bodies_take_nobody_down() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = config(folder.path());
    config.limits.epochs_burst = 1 << 20;
    let collector = Running::start(config);
    let mut random = ChaCha8Rng::seed_from_u64(seed(SEED));
    let (first, agent) = (epoch_now() - 1_000, client());
    let whole = body(&Agent::at("mad").seal(first, 2));
    let mut statuses = std::collections::BTreeMap::new();
    for round in 0..ROUNDS {
        let mut bytes = whole.clone();
        let is_packed = round % 4 == 3;
        if is_packed {
            bytes = zstd::encode_all(&*bytes, 1).unwrap();
        }
        mutate(&mut bytes, &mut random);
        let encoding = if is_packed { "zstd" } else { "identity" };
        let answer =
            try_send(&agent, &collector.url(), &[("content-encoding", encoding)], &bytes).unwrap();
        assert!([200, 400, 413].contains(&answer.status), "round {round}: {answer:?}");
        *statuses.entry(answer.status).or_insert(0) += 1;
    }
    assert!(statuses[&400] > ROUNDS / 2, "{statuses:?}");
    let good = body(&Agent::at("good").seal(first, 2));
    assert_eq!(collector.send(&good).counts(), (2, 0));
    // Nothing but what is whole got in.
    let found = logged(folder.path());
    assert!(found.iter().all(|(_, epoch)| (first..first + 2).contains(epoch)), "{found:?}");
}

#[test]
fn what_is_no_request_takes_nobody_down() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = config(folder.path());
    // All come at once, from one address.
    config.limits.connections_per_address_max = 512;
    let collector = Running::start(config);
    let mut random = ChaCha8Rng::seed_from_u64(seed(SEED));
    let request = b"POST /v1/epochs HTTP/1.1\r\nhost: x\r\ncontent-length: 4\r\n\r\nTWXE".to_vec();
    for _ in 0..200 {
        let mut bytes = request.clone();
        mutate(&mut bytes, &mut random);
        let mut stream = TcpStream::connect(collector.addresses.listen).unwrap();
        let _ = stream.write_all(&bytes);
    }
    // On a busy machine some of them are still being answered, as the same caller's.
    let good = body(&Agent::at("good").seal(epoch_now(), 1));
    let answer = wait_for("an answer but 429", || {
        let answer = collector.send(&good);
        if answer.status == 429 { Err(answer) } else { Ok(answer) }
    });
    assert_eq!(answer.counts(), (1, 0));
}
