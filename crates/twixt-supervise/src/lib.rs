//! Threads of a service: a service that has lost one of them must not look healthy.
//!
//! A supervised thread may end only after the service was asked to stop. If it panics or ends
//! earlier, that is logged, kept for `/healthz` and the exit code, and the service is asked to
//! stop: its other threads then end in their usual order, and what is on disk stays there. What the
//! threads do is not known here.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};

/// How a thread of a service failed. Please report it: it is a fault of twixt.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("thread {thread:?} {how}")]
pub struct ThreadFailure {
    /// The name of the thread.
    pub thread: String,
    /// What happened to it.
    pub how: String,
}

/// Watches the threads of one service. Clones watch for the same one.
#[derive(Clone)]
pub struct Supervisor {
    stop: Arc<dyn Fn() + Send + Sync>,
    is_stopping: Arc<dyn Fn() -> bool + Send + Sync>,
    /// The first failure; later ones may follow from it.
    failure: Arc<Mutex<Option<ThreadFailure>>>,
}

impl std::fmt::Debug for Supervisor {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Supervisor").field("failure", &self.failure()).finish()
    }
}

impl Supervisor {
    /// Of a service that is stopped, and knows whether it was, like this.
    pub fn new(
        stop: impl Fn() + Send + Sync + 'static,
        is_stopping: impl Fn() -> bool + Send + Sync + 'static,
    ) -> Self {
        let (stop, is_stopping) = (Arc::new(stop), Arc::new(is_stopping));
        Self { stop, is_stopping, failure: Arc::default() }
    }

    /// Runs the work of a thread; what it returned, or how it failed.
    ///
    /// # Errors
    /// When it panicked.
    pub fn run<T>(&self, thread: &str, work: impl FnOnce() -> T) -> Result<T, ThreadFailure> {
        // What a panic leaves behind is not used again: the service stops.
        match catch_unwind(AssertUnwindSafe(work)) {
            Ok(returned) => {
                if !(self.is_stopping)() {
                    self.note(thread, "ended unexpectedly".to_owned());
                }
                Ok(returned)
            }
            Err(panic) => Err(self.note(thread, format!("panicked: {}", text_of(&*panic)))),
        }
    }

    /// The first failure, if there was one.
    #[must_use]
    pub fn failure(&self) -> Option<ThreadFailure> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn note(&self, thread: &str, how: String) -> ThreadFailure {
        let failure = ThreadFailure { thread: thread.to_owned(), how };
        tracing::error!(%failure, "stopping");
        let mut first = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        first.get_or_insert_with(|| failure.clone());
        drop(first);
        (self.stop)();
        failure
    }
}

/// The message of a panic.
fn text_of(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message")
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    /// A service with a flag, and its supervisor.
    fn service() -> (Arc<AtomicBool>, Supervisor) {
        let flag = Arc::new(AtomicBool::new(false));
        let (stop, is_stopping) = (Arc::clone(&flag), Arc::clone(&flag));
        let stop = move || stop.store(true, Ordering::Relaxed);
        let supervisor = Supervisor::new(stop, move || is_stopping.load(Ordering::Relaxed));
        (flag, supervisor)
    }

    #[track_caller]
    fn check(work: impl FnOnce(&AtomicBool) -> u8, expected: Option<&str>) {
        let (flag, supervisor) = service();
        let returned = supervisor.run("worker", || work(&flag));
        let failure = supervisor.failure().map(|failure| failure.to_string());
        assert_eq!(failure.as_deref(), expected);
        assert_eq!(returned.is_err(), expected.is_some_and(|text| text.contains("panicked")));
        assert!(flag.load(Ordering::Relaxed), "the service stops in any case");
    }

    #[test]
    fn a_thread_may_end_only_when_the_service_stops() {
        let stopped = |flag: &AtomicBool| {
            flag.store(true, Ordering::Relaxed);
            7
        };
        check(stopped, None);
        check(|_| 7, Some("thread \"worker\" ended unexpectedly"));
        check(|_| panic!("seven"), Some("thread \"worker\" panicked: seven"));
        let number = 7;
        check(|_| panic!("{number}"), Some("thread \"worker\" panicked: 7"));
        check(|_| std::panic::panic_any(7), Some("thread \"worker\" panicked: no message"));
    }

    #[test]
    fn the_first_failure_is_kept() {
        let (_, supervisor) = service();
        for thread in ["first", "second"] {
            let _ = supervisor.run(thread, || panic!("again"));
        }
        assert_eq!(supervisor.failure().unwrap().thread, "first");
    }
}
