//! The terminal: taken over while it shows something, and left as it was, whatever ends it.

use std::io::{self, Stdout, stdout};
use std::panic;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Context;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::{Hide, Show};
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use ratatui::{Frame, Terminal};
use twixt_top::TopKey;

/// A terminal that is taken over, until this is dropped.
pub(super) struct Screen {
    terminal: Terminal<CrosstermBackend<Stdout>>,
}

/// What the user did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pressed {
    Key(TopKey),
    /// Ctrl-C, which is no signal while keys come one by one.
    Interrupt,
    /// The terminal has another size.
    Resized,
}

/// There is something to restore.
static TAKEN_OVER: AtomicBool = AtomicBool::new(false);
/// Keys that are taken at once.
const KEYS_MAX: usize = 64;

impl Screen {
    pub(super) fn enter() -> anyhow::Result<Self> {
        // In any thread: its message would be lost on a screen that vanishes.
        let report = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            restore();
            report(info);
        }));
        enable_raw_mode().context("cannot take over the terminal")?;
        TAKEN_OVER.store(true, Ordering::SeqCst);
        // From here on, whatever fails, the terminal is restored.
        let screen = Self::taken_over();
        if screen.is_err() {
            restore();
        }
        screen.context("cannot take over the terminal")
    }

    fn taken_over() -> io::Result<Self> {
        execute!(stdout(), EnterAlternateScreen, Hide)?;
        Ok(Self { terminal: Terminal::new(CrosstermBackend::new(stdout()))? })
    }

    pub(super) fn draw(&mut self, show: impl FnOnce(&mut Frame<'_>)) -> anyhow::Result<()> {
        self.terminal.draw(show).context("cannot draw on the terminal")?;
        Ok(())
    }

    /// What was pressed, after so long at most.
    pub(super) fn pressed(&self, wait: Duration) -> anyhow::Result<Vec<Pressed>> {
        let mut pressed = Vec::new();
        let mut wait = wait;
        while pressed.len() < KEYS_MAX && event::poll(wait).context("cannot read keys")? {
            wait = Duration::ZERO;
            pressed.extend(meaning(&event::read().context("cannot read keys")?));
        }
        Ok(pressed)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        restore();
    }
}

/// Best effort: there is nobody left to report a failure to. Once only: to leave a screen that was left
/// moves the cursor back over what was written since.
fn restore() {
    if !TAKEN_OVER.swap(false, Ordering::SeqCst) {
        return;
    }
    let _ = execute!(stdout(), LeaveAlternateScreen, Show);
    let _ = disable_raw_mode();
}

fn meaning(event: &Event) -> Option<Pressed> {
    match event {
        Event::Resize(..) => Some(Pressed::Resized),
        Event::Key(key) if key.kind != KeyEventKind::Release => key_of(key),
        _ => None,
    }
}

fn key_of(key: &KeyEvent) -> Option<Pressed> {
    let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
    let key = match key.code {
        KeyCode::Char('c') if is_control => return Some(Pressed::Interrupt),
        KeyCode::Char(_) if is_control => return None,
        KeyCode::Char(letter) => TopKey::Letter(letter),
        KeyCode::Up => TopKey::Up,
        KeyCode::Down => TopKey::Down,
        KeyCode::PageUp => TopKey::PageUp,
        KeyCode::PageDown => TopKey::PageDown,
        KeyCode::Home => TopKey::Home,
        KeyCode::End => TopKey::End,
        KeyCode::Enter => TopKey::Enter,
        KeyCode::Esc => TopKey::Escape,
        KeyCode::Tab => TopKey::Tab,
        KeyCode::Backspace => TopKey::Backspace,
        _ => return None,
    };
    Some(Pressed::Key(key))
}

#[cfg(test)]
mod tests {
    use ratatui::widgets::Paragraph;
    use twixt_testing::{OnTerminal, require};

    use super::*;

    /// Which thread panics: says that this process is the one on the terminal.
    const PANICS: &str = "TWIXT_TEST_PANICS";

    /// Takes over the terminal that this process is on, and panics at the first key.
    fn panic_on_a_key(thread: &str) {
        let mut screen = Screen::enter().unwrap();
        screen
            .draw(|frame| frame.render_widget(Paragraph::new("taken over"), frame.area()))
            .unwrap();
        while screen.pressed(Duration::from_secs(1)).unwrap().is_empty() {}
        assert!(thread != "own", "as it should");
        let other = std::thread::spawn(|| panic!("as it should"));
        // The view ends with an error then, which leaves the terminal once more.
        assert!(other.join().is_err());
        drop(screen);
        std::process::exit(1);
    }

    #[test]
    fn a_panic_in_any_thread_leaves_the_terminal_as_it_was() {
        if let Ok(thread) = std::env::var(PANICS) {
            return panic_on_a_key(&thread);
        }
        require!(program "python3");
        let test =
            "command::top::terminal::tests::a_panic_in_any_thread_leaves_the_terminal_as_it_was";
        let program = std::env::current_exe().unwrap();
        for (thread, code) in [("own", 101), ("other", 1)] {
            let words = ["--exact", test, "--nocapture", "--test-threads=1"];
            let mut screen = OnTerminal::start((80, 24), &program, words, &[(PANICS, thread)]);
            screen.wait("taken over");
            screen.keys("x");
            let said = screen.ends(code);
            assert_eq!(said.matches("as it should").count(), 1, "{said}");
        }
    }
}
