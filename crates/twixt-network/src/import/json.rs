//! Our own JSON: routers by name, links by the names that they join.

use serde::Deserialize;

use super::draft::{Draft, DraftLink};
use super::{ImportError, ProblemPlace};
use crate::topology::Topology;
use crate::weight::Weight;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    /// Whether links go one way.
    #[serde(default)]
    directed: bool,
    /// If missing, those that links name.
    routers: Option<Vec<String>>,
    links: Vec<LinkDocument>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LinkDocument {
    from: String,
    to: String,
    weight: Option<f64>,
}

pub(super) fn parse(text: &str) -> Result<Topology, ImportError> {
    let document: Document = serde_json::from_str(text).map_err(|error| syntax(&error))?;
    let mut draft = Draft::default();
    draft.directed = document.directed;
    draft.routers_by_links = document.routers.is_none();
    for (index, router) in document.routers.iter().flatten().enumerate() {
        draft.router(ProblemPlace::Router(index + 1), router, router)?;
    }
    for (index, link) in document.links.into_iter().enumerate() {
        draft.link(link.into_draft(ProblemPlace::Link(index + 1))?)?;
    }
    draft.finish()
}

impl LinkDocument {
    fn into_draft(self, place: ProblemPlace) -> Result<DraftLink, ImportError> {
        let Self { from, to, weight } = self;
        let wrong = |value: f64| ImportError::Weight { place, text: value.to_string() };
        let weight =
            weight.map(|value| Weight::new(value).ok_or_else(|| wrong(value))).transpose()?;
        Ok(DraftLink { place, from, to, weight, directed: None })
    }
}

fn syntax(error: &serde_json::Error) -> ImportError {
    // Its text ends with the place, which comes first here.
    let text = error.to_string();
    let problem = text.split(" at line ").next().unwrap_or(&text);
    ImportError::syntax(
        ProblemPlace::Line(error.line()),
        format!("column {}: {problem}", error.column()),
    )
}
