//! GML: lists of keys and values, of which `graph`, `node` and `edge` count here.
//!
//! Himsolt, *GML: a portable graph file format*, University of Passau 1997. Keys of other programs
//! are passed over, as that text asks.

mod tokens;

use quick_xml::escape::unescape;

use self::tokens::{Kind, Token, Tokens};
use super::draft::{Draft, DraftLink};
use super::{ImportError, ProblemPlace, beginning, weight};
use crate::topology::Topology;

/// How deep lists may lie in lists.
const DEPTH_MAX: usize = 32;

/// Whether there is a list `graph` in the text.
pub(super) fn is_likely(text: &str) -> bool {
    let tokens = Tokens::of(text).map_while(Result::ok);
    let mut graph = false;
    for token in tokens {
        match token.kind {
            Kind::Open if graph => return true,
            Kind::Word(word) => graph = word.eq_ignore_ascii_case("graph"),
            _ => graph = false,
        }
    }
    false
}

pub(super) fn parse(text: &str) -> Result<Topology, ImportError> {
    let mut draft = Draft::default();
    let mut open: Vec<List<'_>> = Vec::new();
    let mut tokens = Tokens::of(text);
    while let Some(token) = tokens.next().transpose()? {
        let place = token.place;
        match token.kind {
            Kind::Close => {
                let list = open.pop().ok_or_else(|| unmatched(place))?;
                let parent = open.last().map(|parent| parent.key);
                list.close(parent, &mut draft)?;
            }
            Kind::Word(key) => match tokens.next().transpose()? {
                Some(Token { kind: Kind::Open, .. }) if open.len() < DEPTH_MAX => {
                    open.push(List::new(place, key));
                }
                Some(Token { kind: Kind::Open, .. }) => return Err(too_deep(place)),
                Some(Token { kind: Kind::Word(value) | Kind::Text(value), .. }) => {
                    if let Some(list) = open.last_mut() {
                        list.set(key, value);
                    }
                }
                Some(Token { kind: Kind::Close, .. }) | None => return Err(no_value(place, key)),
            },
            Kind::Open | Kind::Text(_) => return Err(no_key(place)),
        }
    }
    match open.last() {
        Some(list) => Err(unclosed(list)),
        None => draft.finish(),
    }
}

/// A list that is being read, with those of its values that matter.
#[derive(Clone, Copy)]
struct List<'a> {
    place: ProblemPlace,
    key: &'a str,
    id: Option<&'a str>,
    label: Option<&'a str>,
    source: Option<&'a str>,
    target: Option<&'a str>,
    weight: Option<&'a str>,
    directed: Option<&'a str>,
}

impl<'a> List<'a> {
    const fn new(place: ProblemPlace, key: &'a str) -> Self {
        let (id, label, source, target, weight, directed) = (None, None, None, None, None, None);
        Self { place, key, id, label, source, target, weight, directed }
    }

    fn set(&mut self, key: &str, value: &'a str) {
        let field = match key.to_ascii_lowercase().as_str() {
            "id" => &mut self.id,
            "label" => &mut self.label,
            "source" => &mut self.source,
            "target" => &mut self.target,
            "weight" => &mut self.weight,
            "directed" => &mut self.directed,
            _ => return,
        };
        *field = Some(value);
    }

    fn close(self, parent: Option<&str>, draft: &mut Draft) -> Result<(), ImportError> {
        let is = |key: &str| self.key.eq_ignore_ascii_case(key);
        let in_graph = parent.is_some_and(|parent| parent.eq_ignore_ascii_case("graph"));
        if in_graph && is("node") {
            let id = self.needed(self.id, "id")?;
            let label = self.label.unwrap_or(id);
            // Letters that ASCII lacks are written as in HTML.
            draft.router(self.place, id, &unescape(label).unwrap_or(label.into()))?;
        } else if in_graph && is("edge") {
            draft.link(DraftLink {
                place: self.place,
                from: self.needed(self.source, "source")?.to_owned(),
                to: self.needed(self.target, "target")?.to_owned(),
                weight: self.weight.map(|text| weight(self.place, text)).transpose()?,
                directed: None,
            })?;
        } else if parent.is_none() && is("graph") {
            draft.directed = self.directed == Some("1");
        }
        Ok(())
    }

    fn needed(&self, value: Option<&'a str>, key: &str) -> Result<&'a str, ImportError> {
        let problem = || format!("a list {:?} without {key:?}; add it", self.key);
        value.ok_or_else(|| ImportError::syntax(self.place, problem()))
    }
}

fn unmatched(place: ProblemPlace) -> ImportError {
    ImportError::syntax(place, "\"]\" without a \"[\" before it; remove it")
}

fn unclosed(list: &List<'_>) -> ImportError {
    let problem = format!("the list {:?} has no end; is the file truncated?", beginning(list.key));
    ImportError::syntax(list.place, problem)
}

fn no_key(place: ProblemPlace) -> ImportError {
    ImportError::syntax(place, "a value without a key before it; write: key value")
}

fn no_value(place: ProblemPlace, key: &str) -> ImportError {
    ImportError::syntax(place, format!("the key {:?} has no value; add one", beginning(key)))
}

fn too_deep(place: ProblemPlace) -> ImportError {
    ImportError::syntax(
        place,
        format!("lists nested more than {DEPTH_MAX} levels deep; flatten them"),
    )
}
