//! Restarts: nothing twice, nothing lost.
