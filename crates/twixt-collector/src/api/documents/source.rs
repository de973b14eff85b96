//! What answers.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::bundle::ManifestDocument;

/// What answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum SourceKind {
    /// A collector that runs.
    Collector,
    /// An incident bundle that was opened.
    Bundle,
}

/// What answers.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct SourceDocument {
    /// A collector, or a bundle.
    pub kind: SourceKind,
    /// What is in the bundle; null for a collector.
    pub bundle: Option<ManifestDocument>,
}
