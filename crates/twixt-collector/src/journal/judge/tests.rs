use twixt_measure::{Meter, MeterConfig};
use twixt_model::{Batch, Delay, EpochRule, Observation, PointId};
use twixt_synopsis::{Purpose, find};

use super::*;
use crate::clock::WallClock;
use crate::journal::EpochRetention;

const HOUR_NS: i64 = 3_600 * 1_000_000_000;
/// By the collector's clock, in hours since 1970.
const NOW: i64 = 10_000;

fn at(hour: i64) -> Timestamp {
    Timestamp::from_nanos(hour * HOUR_NS)
}

fn judge() -> Judge {
    let config = JournalConfig {
        domain: None,
        retention: EpochRetention::default(),
        points_max: 10,
        writers_max: 1,
        clock: WallClock::system(),
    };
    Judge::new(&config, [])
}

/// An epoch of a minute that begins with this hour.
fn epoch(point: &str, hour: i64) -> Sealed {
    let rule = EpochRule::every(HOUR_NS / 60).unwrap();
    let synopsis = (find(Purpose::Delay, "lda").unwrap().start)(&toml::Table::new()).unwrap();
    let mut meter = Meter::new(MeterConfig::new(PointId("p".to_owned()), rule), synopsis).unwrap();
    let packet = Observation { time: at(hour) + Delay::from_nanos(1), ..Observation::default() };
    meter.observe(Batch::of(&[packet]));
    meter.finish();
    let mut sealed = meter.poll().expect("an epoch with a packet");
    sealed.point = PointId(point.to_owned());
    sealed
}

/// Stores it if that is allowed.
fn offer(judge: &mut Judge, sealed: &Sealed, now: i64) -> Result<(), Refusal> {
    let span = judge.admit(sealed, at(now), at(now))?;
    judge.note(sealed, span, at(now));
    Ok(())
}

/// Each epoch a little less than a day after the one before: the limit followed the newest epoch of
/// any point, and so led one agent, and with it all others, to any date.
#[test]
fn no_agent_leads_the_limit_into_the_future() {
    let mut judge = judge();
    let accepted: Vec<i64> = (0..100)
        .map(|step| NOW + step * 23)
        .filter(|&hour| offer(&mut judge, &epoch("ratchet", hour), NOW).is_ok())
        .collect();
    assert_eq!(accepted, [NOW, NOW + 23]);
    let other = offer(&mut judge, &epoch("other", NOW + 40), NOW);
    assert_eq!(other, Err(Refusal::Future), "nor for others");
}

#[test]
fn a_clock_that_was_set_back_keeps_nobody_out_who_is_right() {
    let mut judge = judge();
    offer(&mut judge, &epoch("a", NOW), NOW).unwrap();
    let set_back = NOW - 9_000;
    for hour in NOW..NOW + 20 {
        offer(&mut judge, &epoch("a", hour), set_back).unwrap();
    }
    assert_eq!(offer(&mut judge, &epoch("a", NOW + 30), set_back), Err(Refusal::Future));
}

#[test]
fn a_name_that_could_forge_a_line_of_the_log_is_refused() {
    let mut judge = judge();
    for name in ["a\n2026-01-01 ERROR forged", "\u{202e}a", "", "\u{1b}[2J"] {
        let refused = offer(&mut judge, &epoch(name, NOW), NOW).unwrap_err();
        assert_eq!(refused.code(), RefusalCode::InvalidName, "{name:?}");
        let shown = refused.to_string();
        assert!(!shown.chars().any(twixt_model::is_hidden), "{shown:?}");
    }
    let mut sealed = epoch("a", NOW);
    sealed.class = "voice\r".to_owned();
    assert_eq!(offer(&mut judge, &sealed, NOW).unwrap_err().code(), RefusalCode::InvalidName);
}
