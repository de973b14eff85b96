//! Packets that are left out of an estimate since they are identical to others, and what that says of its mean.

use twixt_model::{Delay, DelayEstimate, FlowHash, PacketDigest, Timestamp};

/// The mean of the others is not shown if those left out change it by more than this share.
const SHIFT_MOST: f64 = 0.1;

/// Identical packets that take another time than all others, such as heartbeats in another queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Heartbeats {
    /// Their digest.
    pub digest: PacketDigest,
    /// Their flow.
    pub flow: FlowHash,
    /// How many upstream saw.
    pub packets: u64,
    /// How much longer than others they take on average, at least; shorter if negative.
    pub apart: Delay,
    /// Whether downstream surely saw the same ones. At the ends of what is compared, packets count by the
    /// usual delays: as many of these may be missing at one end as are too many at the other, which no count
    /// shows. An algorithm that adds up times leaves those out that are not complete.
    pub are_complete: bool,
}

/// How much longer than a range of delays packets took on average, at least, whichever of those sent was
/// whichever of those received; shorter if negative. Both are ascending.
#[must_use]
pub fn least_apart(sent: &[Timestamp], received: &[Timestamp], range: (Delay, Delay)) -> Delay {
    let apart = received.iter().map(|&arrived| {
        // In order of sending delays become shorter.
        let place = sent.partition_point(|&left| arrived - left > range.1);
        let longer = place.checked_sub(1).map(|place| arrived - sent[place] - range.1);
        let shorter = sent.get(place).map(|&left| (arrived - left - range.0).min(Delay::ZERO));
        let nearest = [longer, shorter].into_iter().flatten();
        nearest.min_by_key(|apart| apart.as_nanos().unsigned_abs()).unwrap_or(Delay::ZERO)
    });
    let sum: i128 = apart.map(|apart| i128::from(apart.as_nanos())).sum();
    let mean_ns = sum / i128::try_from(received.len().max(1)).expect("it is a length");
    Delay::from_nanos(i64::try_from(mean_ns).expect("none of those added up is beyond"))
}

/// Packets that are left out.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Excluded {
    pub(crate) packets: u64,
    /// How much longer or shorter than others all of them took together, at least.
    apart_ns: f64,
}

impl Excluded {
    pub(crate) fn of<'a>(alike: impl IntoIterator<Item = &'a Heartbeats>) -> Self {
        let mut excluded = Self::default();
        alike.into_iter().for_each(|alike| excluded.add(alike.packets, alike.apart));
        excluded
    }

    /// Adds packets that took so much longer than others on average, at least. Saturates: counts may be hostile.
    pub(crate) fn add(&mut self, packets: u64, apart: Delay) {
        self.packets = self.packets.saturating_add(packets);
        self.apart_ns += packets as f64 * apart.as_nanos().unsigned_abs() as f64;
    }

    /// Whether the mean of `arrived` packets is far from that of the others.
    pub(crate) fn hides(&self, mean_ns: f64, arrived: u64) -> bool {
        self.apart_ns > SHIFT_MOST * mean_ns.abs() * arrived.max(1) as f64
    }

    /// Takes its interval from the delay of those that arrived, and the mean too where it is not that of all. Says why.
    pub(crate) fn doubt(&self, delay: &mut Option<DelayEstimate>, arrived: u64) -> Option<String> {
        if self.packets == 0 {
            return None;
        }
        let is_hidden = delay.is_some_and(|delay| self.hides(delay.mean_ns(), arrived));
        *delay = delay.filter(|_| !is_hidden);
        delay.iter_mut().for_each(|delay| delay.half_width_ns = None);
        let no_mean = if is_hidden { "no mean: " } else { "" };
        Some(format!(
            "{no_mean}{} identical packets are left out, which take another time than others",
            self.packets
        ))
    }

    /// Why a part of the packets has no interval, of which it is not known how many of these it has.
    pub(crate) fn elsewhere(&self) -> String {
        format!(
            "no interval: {} packets, of these or of others, are identical, and take another time than others",
            self.packets
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    #[track_caller]
    fn check(sent_ms: &[i64], received_ms: &[i64], expected_ns: i64) {
        let times = |times: &[i64]| -> Vec<Timestamp> {
            times.iter().map(|time| Timestamp::from_nanos(time * MS)).collect()
        };
        let usual = (Delay::from_nanos(MS), Delay::from_nanos(3 * MS));
        let apart = least_apart(&times(sent_ms), &times(received_ms), usual);
        assert_eq!(apart, Delay::from_nanos(expected_ns));
    }

    #[test]
    fn packets_are_as_far_from_the_usual_delays_as_they_are_by_any_match() {
        check(&[0, 1_000], &[2, 1_003], 0);
        check(&[0, 1_000], &[250, 1_250], 247 * MS);
        // By the nearest that was sent, before or after.
        check(&[0, 100, 200, 300], &[60, 160, 260], -41 * MS);
        check(&[0, 100, 200, 300], &[40, 140, 240], 37 * MS);
        check(&[10], &[2, 513], (500 - 9) * MS / 2);
        check(&[], &[1], 0);
        check(&[1], &[], 0);
    }

    #[test]
    fn a_mean_is_not_shown_where_those_excluded_change_it() {
        let known = Some(DelayEstimate {
            count: 990,
            sum_ns: 990 * 2_000_000,
            deviation_ns: None,
            half_width_ns: Some(0.0),
            order: None,
            order_range: None,
        });
        for (apart_ns, is_known) in [(19 * MS, true), (21 * MS, false), (-21 * MS, false)] {
            let (mut excluded, mut delay) = (Excluded::default(), known);
            excluded.add(10, Delay::from_nanos(apart_ns));
            let reason = excluded.doubt(&mut delay, 1_000).unwrap();
            assert_eq!(delay.is_some(), is_known, "{apart_ns}");
            assert_eq!(reason.starts_with("no mean: "), !is_known, "{reason}");
            assert_eq!(delay.and_then(|delay| delay.half_width_ns), None);
        }
        let mut delay = known;
        assert_eq!(Excluded::default().doubt(&mut delay, 1_000), None);
        assert_eq!(delay, known);
    }

    #[test]
    fn hostile_counts_do_not_overflow() {
        let mut excluded = Excluded::default();
        (0..2).for_each(|_| excluded.add(u64::MAX, Delay::from_nanos(i64::MIN)));
        assert_eq!(excluded.packets, u64::MAX);
        assert!(excluded.hides(1e18, u64::MAX));
    }
}
