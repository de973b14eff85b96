//! Signals that end a service in good order.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Context;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use twixt_collector::StopRequest;

use crate::exit::Exit;

/// What a second signal does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SecondSignal {
    /// It does not wait for the end.
    Ends,
    /// Nothing: what is tidied up at the end would be left behind.
    Waits,
}

/// The signals that end the command.
pub(crate) struct Signals {
    interrupted: Arc<AtomicBool>,
    any: Arc<AtomicBool>,
}

impl Signals {
    pub(crate) fn watch(second: SecondSignal) -> anyhow::Result<Self> {
        let (interrupted, any) =
            (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let register = || {
            for signal in [SIGINT, SIGTERM] {
                if second == SecondSignal::Ends {
                    let code = Exit::Interrupted as i32;
                    flag::register_conditional_shutdown(signal, code, Arc::clone(&any))?;
                }
                flag::register(signal, Arc::clone(&any))?;
            }
            flag::register(SIGINT, Arc::clone(&interrupted))
        };
        register().context("cannot handle signals")?;
        Ok(Self { interrupted, any })
    }

    /// Asks for the end when a signal comes.
    pub(crate) fn stop(&self, stop: StopRequest) {
        const LOOK_EVERY: Duration = Duration::from_millis(50);
        let any = Arc::clone(&self.any);
        std::thread::spawn(move || {
            while !any.load(Ordering::Relaxed) {
                std::thread::sleep(LOOK_EVERY);
            }
            stop.request();
        });
    }

    /// Whether any of them came.
    pub(crate) fn came(&self) -> bool {
        self.any.load(Ordering::Relaxed)
    }

    pub(crate) fn was_interrupted(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed)
    }
}
