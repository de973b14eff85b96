//! Epochs that are estimated long after their time, as `top` shows them.

use std::sync::atomic::Ordering;

use twixt_testing::{OnTerminal, require, wait_until};

use super::on_terminal;
use crate::collector::process::Process;
use crate::collector::sender::{Shared, epoch_now, send_all};
use crate::support::folder;

/// Epochs that come late: more than `top` asks for again each time.
const LATE: i64 = 30;
/// Epochs of a letter: 24 seconds in 60 letters.
const EPOCHS_OF_LETTER: i64 = 4;

#[test]
fn courses_have_the_epochs_that_were_estimated_late() {
    require!(program "python3");
    let folder = folder();
    let collector = Process::start(folder.path(), 0);
    let [shared, late] = [0, 1].map(|_| Shared::new(collector.address));
    let first = epoch_now() - 2 * LATE;
    late.last.store(first + LATE - 1, Ordering::Relaxed);
    std::thread::scope(|threads| {
        // Whatever happens, they end.
        let ends = EndsWith(&shared);
        threads.spawn(|| send_all(&shared, "up", 0, first));
        threads.spawn(|| send_all(&shared, "down", 2_000_000, first + LATE));
        let url = format!("http://{}", collector.address);
        let arguments = format!("top --collector {url} --window 24s --interval 500ms");
        let mut screen = on_terminal((200, 24), &arguments);
        wait_until("a course", || course(&mut screen) > 10);
        drop(ends);
        let most = (shared.last.load(Ordering::Relaxed) - first - LATE) / EPOCHS_OF_LETTER + 2;
        send_all(&late, "down", 2_000_000, first);
        wait_until("more letters than epochs that came in time have", || {
            screen.keys("r");
            course(&mut screen) as i64 > most + 3
        });
        screen.keys("q");
        assert_eq!(screen.ends(0), "");
    });
}

/// Ends the senders when it goes.
struct EndsWith<'a>(&'a Shared);

impl Drop for EndsWith<'_> {
    fn drop(&mut self) {
        self.0.last.store(epoch_now(), Ordering::Relaxed);
    }
}

/// Letters of the course, each a second.
fn course(screen: &mut OnTerminal) -> usize {
    let shown = screen.shown();
    let line = shown.lines().find(|line| line.starts_with("up > down")).unwrap_or_default();
    line.chars().filter(|letter| ('▁'..='█').contains(letter)).count()
}
