//! An algorithm with its settings.

use twixt_synopsis::{Algorithm, AnySynopsis};

/// An algorithm with its settings, ready to start.
#[derive(Debug)]
pub struct ChosenAlgorithm {
    /// Its entry in the registry.
    pub algorithm: &'static Algorithm,
    /// The estimator to use, if not its default.
    pub estimator: Option<String>,
    /// An empty synopsis with the settings.
    pub prototype: Box<dyn AnySynopsis>,
}

impl Clone for ChosenAlgorithm {
    fn clone(&self) -> Self {
        let (estimator, prototype) = (self.estimator.clone(), self.prototype.fresh());
        Self { algorithm: self.algorithm, estimator, prototype }
    }
}
