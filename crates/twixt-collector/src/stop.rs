//! The wish that it should end.

use std::sync::Arc;

use tokio::sync::watch;

/// Asks a collector to stop. Clones ask the same one.
#[derive(Clone, Debug)]
pub struct StopRequest {
    sender: Arc<watch::Sender<bool>>,
}

impl Default for StopRequest {
    fn default() -> Self {
        Self { sender: Arc::new(watch::Sender::new(false)) }
    }
}

impl StopRequest {
    /// Not wished for yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Asks for it. There is no way back.
    pub fn request(&self) {
        self.sender.send_replace(true);
    }

    /// Whether it was asked for.
    #[must_use]
    pub fn is_requested(&self) -> bool {
        *self.sender.borrow()
    }

    /// Waits until it is asked for.
    pub(crate) async fn requested(&self) {
        // The sender lives as long as this does.
        let _ = self.sender.subscribe().wait_for(|stop| *stop).await;
    }
}
