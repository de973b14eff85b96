//! Worked examples, and an independent implementation's output.

use twixt_model::{Delay, Observation, PacketDigest, Span, Timestamp};

use super::*;
use crate::lda::LdaConfig;
use crate::sums::Sums;
use crate::synopsis::{Synopsis, TwoPoint};

fn cell(packets: u64, delay_sum_ns: i64) -> Option<Usable> {
    Some(Usable { packets, delay_sum_ns })
}

fn question() -> Question<'static> {
    Question::about(Span::at(Timestamp::from_nanos(0)))
}

fn packet(digest: u64, time_ns: i64) -> Observation {
    let time = Timestamp::from_nanos(time_ns);
    Observation { time, digest: PacketDigest(digest), length: 100, ..Observation::default() }
}

fn lda(rows: u32, packets: &[(u64, i64)]) -> Lda {
    let mut lda = Lda::new(&LdaConfig::new(rows, &[1.0]).unwrap());
    for &(digest, time_ns) in packets {
        lda.update(&packet(digest, time_ns));
    }
    lda
}

/// Fig. 2 of the paper: cells of 5, 2 and 1 packets and one with a loss, mean 90 / 8.
#[test]
fn the_papers_own_example() {
    let cells = [cell(5, 60), None, cell(2, 22), cell(1, 8)];
    let delay = delay(&cells, 0, 8, false).delay.unwrap();
    assert_eq!(delay.mean_ns(), 11.25);
    assert_eq!(delay.count, 8);
}

/// w = 2, 4, 6: the variance is 8/3 (printed with its divisor misplaced: 13.3).
#[test]
fn single_packet_cells_give_the_textbook_variance() {
    let cells = [cell(1, 2), cell(1, 4), cell(1, 6)];
    // Over single packets the centred form is the sample variance, 4; its population form is 8/3.
    let variance = centred_variance(&cells, 4.0).unwrap();
    assert!((variance - 4.0).abs() < 1e-12);
    assert!((variance * 2.0 / 3.0 - 2.6667).abs() < 1e-4);
}

/// Rows (5, 7) upstream and (4, 8) downstream add up to the same, but neither is usable.
#[test]
fn a_stray_packet_in_the_neighbouring_row_does_not_pass() {
    let config = LdaConfig::new(2, &[1.0]).unwrap();
    let rows: Vec<Vec<u64>> = (0..2)
        .map(|row| {
            (0..).filter(|&id| config.cell_for(PacketDigest(id)) == Some(row)).take(9).collect()
        })
        .collect();
    let filled = |first: usize, second: usize| {
        let ids = rows[0][..first].iter().chain(&rows[1][..second]);
        lda(2, &ids.map(|&id| (id, 0)).collect::<Vec<_>>())
    };
    let (upstream, downstream) = (filled(5, 7), filled(4, 8));
    let estimate =
        &Lda::estimate(Pair { upstream: &upstream, downstream: &downstream }, &question())[0];
    assert_eq!(estimate.evidence.used, 0);
    assert!(estimate.delay.is_none());
    assert!(estimate.reason.is_some());
}

/// One lost and one stray packet in a cell: equal counts, unequal digests.
#[test]
fn a_lost_and_a_stray_packet_are_found_out() {
    let upstream = lda(1, &[(1, 0), (2, 0)]);
    let downstream = lda(1, &[(1, 10), (3, 10)]);
    let estimate =
        &Lda::estimate(Pair { upstream: &upstream, downstream: &downstream }, &question())[0];
    assert!(estimate.delay.is_none());
    // Identical packets do not cancel, as they would with an exclusive or.
    let twice = lda(1, &[(7, 0), (7, 0)]);
    assert_ne!(twice.cells[0].digests, 0);
}

/// Times near the end of 64 bits: sums wrap, differences do not care.
#[test]
fn wrapped_sums_still_give_exact_delays() {
    let late = i64::MAX - 1000;
    let ids: Vec<u64> = (0..100).collect();
    let at = |offset: i64| ids.iter().map(|&id| (id, late + offset)).collect::<Vec<_>>();
    let (upstream, downstream) = (lda(4, &at(0)), lda(4, &at(250)));
    let estimate =
        &Lda::estimate(Pair { upstream: &upstream, downstream: &downstream }, &question())[0];
    assert_eq!(estimate.delay.unwrap().mean().as_nanos(), 250);
}

/// Ten years apart, a hundred packets in a cell: the sum of delays itself exceeds 64 bits.
#[test]
fn clocks_years_apart_need_and_have_a_reference() {
    let years_ns = 315_360_000_000_000_000;
    let at = |offset: i64| (0..100).map(|id| (id, 1_000 + offset)).collect::<Vec<_>>();
    let (upstream, downstream) = (lda(1, &at(0)), lda(1, &at(years_ns + 7)));
    let question = Question { reference: Delay::from_nanos(years_ns - 5), ..question() };
    let estimate =
        &Lda::estimate(Pair { upstream: &upstream, downstream: &downstream }, &question)[0];
    assert_eq!(estimate.delay.unwrap().mean().as_nanos(), years_ns + 7);
}

#[test]
fn loss_is_the_difference_of_all_packets_and_unknown_when_negative() {
    let (more, fewer) = (lda(4, &[(1, 0), (2, 0), (3, 0)]), lda(4, &[(1, 5)]));
    let lost = Lda::estimate(Pair { upstream: &more, downstream: &fewer }, &question());
    assert_eq!(lost[0].evidence.lost, Some(2));
    let gained = Lda::estimate(Pair { upstream: &fewer, downstream: &more }, &question());
    assert_eq!(gained[0].evidence.lost, None);
    assert!(gained[0].reason.as_ref().unwrap().contains("more packets downstream"));
}

#[test]
fn nothing_in_is_nothing_known() {
    let empty = lda(4, &[]);
    let estimate = &Lda::estimate(Pair { upstream: &empty, downstream: &empty }, &question())[0];
    assert!(estimate.delay.is_none());
    assert_eq!(estimate.evidence.lost, Some(0));
}

/// Hostile counts: nothing overflows.
#[test]
fn absurd_counts_do_not_panic() {
    let mut hostile = lda(2, &[]);
    hostile.totals.packets = u64::MAX;
    hostile.cells.fill(Sums { times: 1, packets: u64::MAX, digests: 7 });
    let mut other = hostile.clone();
    other.cells[0].times = u64::MAX / 2;
    let pair = Pair { upstream: &hostile, downstream: &other };
    for reference in [0, i64::MIN, i64::MAX] {
        let question = Question { reference: Delay::from_nanos(reference), ..question() };
        let delay = Lda::estimate(pair, &question)[0].delay.unwrap();
        assert!(delay.interval().is_some());
        let _ = delay.mean();
    }
}

/// Mean, sample and collapsed second moment of an independent (Java) implementation, which was
/// given the same packets in the same rows.
#[test]
fn an_independent_implementation_agrees() {
    let folder = twixt_testing::require!(shared "reference/lda");
    let read = |name: &str| twixt_testing::text_of(folder.join(name));
    let output = read("java_output.txt");
    for trace in ["loss0", "loss0.2pct", "loss0.2pct_prop4ms"] {
        let cells =
            cells_of(&read(&format!("trace_{trace}.csv")), &read(&format!("rows_{trace}.csv")));
        let section = output.split(&format!("== {trace}\n")).nth(1).unwrap();
        let expected = |name: &str| -> f64 {
            let value = section.split(&format!("{name}=")).nth(1).unwrap();
            value.split_whitespace().next().unwrap().parse().unwrap()
        };
        let outcome = delay(&cells, 0, u64::MAX, false).delay.unwrap();
        close(outcome.mean_ns() / 1e9, expected("ref_mean"));
        close(outcome.count as f64, expected("ref_good_packets"));
        close(collapsed_second_moment(&cells, 0.0).unwrap() / 1e18, expected("ref_F"));
    }
}

#[track_caller]
fn close(ours: f64, theirs: f64) {
    assert!(((ours - theirs) / theirs).abs() < 1e-9, "{ours} against {theirs}");
}

/// The cells that 1024 rows have after a trace, packets placed as the independent program did.
fn cells_of(trace: &str, rows: &str) -> Vec<Option<Usable>> {
    let (mut upstream, mut downstream) = (vec![Sums::default(); 1024], vec![Sums::default(); 1024]);
    for (packet, row) in trace.lines().skip(1).zip(rows.lines().skip(1)) {
        let fields: Vec<&str> = packet.split(',').collect();
        let Ok(row) = row.split(',').nth(1).unwrap().parse::<usize>() else { continue };
        let digest = fields[0].parse().unwrap();
        let seen = |seconds: &str| {
            self::packet(digest, (seconds.parse::<f64>().unwrap() * 1e9).round() as i64)
        };
        upstream[row].add(&Sums::of(&seen(fields[1])));
        if fields[3] == "0" {
            downstream[row].add(&Sums::of(&seen(fields[2])));
        }
    }
    upstream.iter().zip(&downstream).map(|(one, other)| Usable::of(one, other, 0)).collect()
}
