//! Interfaces that cannot be opened, and those that go and come back.

use std::time::Duration;

use twixt_capture::{LiveEnding, LiveError, LiveOptions, LiveSource};
use twixt_testing::{await_up, lay_cable, run, run_again};

use crate::live::frames::{datagram, open, read};
use crate::live::namespace::{ENDS, in_namespace};
use crate::live::sender::Sender;

#[track_caller]
fn refused(interface: &str) -> LiveError {
    LiveSource::open(interface, &LiveOptions::default()).expect_err("it cannot be opened")
}

#[test]
fn refusals_say_what_to_do() {
    in_namespace(|| {
        let check = |interface: &str, said: &str| {
            let refusal = refused(interface).to_string();
            assert!(refusal.starts_with(interface) && refusal.contains(said), "{refusal}");
        };
        check("nothing0", "there are: left, lo, right");
        check("a-name-that-is-too-long", "no such interface");
        check("", "no such interface");
        check("any", "name one interface");
        run("ip link set left down");
        check("left", "ip link set left up");
    });
}

#[test]
fn without_the_capability_the_remedy_is_said() {
    in_namespace(|| {
        run_again(&["setpriv", "--bounding-set", "-net_raw"], || {
            let refusal = refused("left");
            assert!(matches!(refusal, LiveError::NotPermitted { .. }), "{refusal}");
            assert!(refusal.to_string().contains("sudo setcap cap_net_raw"), "{refusal}");
        });
    });
}

#[test]
fn an_interface_that_goes_away_ends_the_source_until_it_is_back() {
    in_namespace(|| {
        let wait = Duration::from_millis(20);
        let (mut source, _stop) = open("right", LiveOptions { wait, ..LiveOptions::default() });
        Sender::new("left").send(&datagram(1, 10));
        assert_eq!(read(&mut source, |seen, _| !seen.is_empty()).len(), 1);
        // While the source waits for more, or just before: both must end it.
        let remover = std::thread::spawn(|| run("ip link del left"));
        assert_eq!(read(&mut source, |_, _| false).len(), 0);
        assert_eq!(source.ending(), Some(LiveEnding::InterfaceGone));
        remover.join().unwrap();
        assert!(matches!(source.reopen(), Err(LiveError::NoSuchInterface { .. })));
        assert_eq!(source.ending(), Some(LiveEnding::InterfaceGone));

        lay_cable(ENDS);
        source.reopen().unwrap();
        assert_eq!(source.ending(), None);
        Sender::new("left").send(&datagram(2, 10));
        assert_eq!(read(&mut source, |seen, _| !seen.is_empty()).len(), 1);
        assert_eq!(source.counts().frames, 2, "counts go on");
    });
}

#[test]
fn frames_that_came_before_the_interface_went_are_kept() {
    in_namespace(|| {
        let mut source = open("right", LiveOptions::default());
        let sender = Sender::new("left");
        (0..100).for_each(|number| sender.send(&datagram(number, 10)));
        let first = read(&mut source.0, |seen, _| !seen.is_empty()).len();
        run("ip link del left");
        assert_eq!(first + read(&mut source.0, |_, _| false).len(), 100);
        assert_eq!(source.0.ending(), Some(LiveEnding::InterfaceGone));
    });
}

#[test]
fn an_interface_that_goes_down_and_up_goes_on() {
    in_namespace(|| {
        let wait = Duration::from_millis(10);
        let (mut source, _stop) = open("right", LiveOptions { wait, ..LiveOptions::default() });
        let sender = Sender::new("left");
        sender.send(&datagram(1, 10));
        assert_eq!(read(&mut source, |seen, _| !seen.is_empty()).len(), 1);
        run("ip link set right down");
        read(&mut source, |_, source| source.live_counts().downs == 1);
        run("ip link set right up");
        await_up(ENDS);
        sender.send(&datagram(2, 10));
        assert_eq!(read(&mut source, |seen, _| !seen.is_empty()).len(), 1);
        assert_eq!((source.live_counts().downs, source.ending()), (1, None));
    });
}
