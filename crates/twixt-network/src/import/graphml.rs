//! GraphML: `node` and `edge`, and of their `data` the name and the weight.
//!
//! <http://graphml.graphdrawing.org/specification.html>. Entities that a document defines itself
//! are not expanded, so a small file cannot grow large.

use quick_xml::events::attributes::Attribute;
use quick_xml::events::{BytesStart, Event};
use quick_xml::{Reader, XmlVersion};

use super::draft::{Draft, DraftLink};
use super::{ImportError, ProblemPlace, line_breaks, weight};
use crate::topology::{NAME_BYTES_MAX, Topology};
use crate::weight::Weight;

pub(super) fn parse(text: &str) -> Result<Topology, ImportError> {
    let mut reader = Reader::from_str(text);
    let mut lines = Lines { line: 1, position: 0 };
    let mut document = Document::default();
    loop {
        let event = reader.read_event();
        // What is wrong begins where the reader says; other things are named by where they end.
        let position =
            if event.is_err() { reader.error_position() } else { reader.buffer_position() };
        let place = lines.at(text, position);
        match event {
            Ok(Event::Start(tag)) => document.open(place, &tag)?,
            Ok(Event::Empty(tag)) => {
                document.open(place, &tag)?;
                document.close(tag.local_name().as_ref())?;
            }
            Ok(Event::End(tag)) => document.close(tag.local_name().as_ref())?,
            Ok(Event::Text(text)) => document.text(&text.xml10_content()),
            Ok(Event::CData(text)) => document.text(&text.xml10_content()),
            Ok(Event::GeneralRef(reference)) => document.reference(&reference),
            Ok(Event::Eof) => return document.finish(place),
            Ok(Event::Comment(_) | Event::Decl(_) | Event::PI(_) | Event::DocType(_)) => {}
            Err(error) => return Err(ImportError::syntax(place, error.to_string())),
        }
    }
}

/// Counts lines as the reader goes on.
struct Lines {
    line: usize,
    position: usize,
}

impl Lines {
    fn at(&mut self, text: &str, position: u64) -> ProblemPlace {
        let position = usize::try_from(position).map_or(text.len(), |end| end.min(text.len()));
        if let Some(passed) = text.as_bytes().get(self.position..position) {
            self.line += line_breaks(passed);
            self.position = position;
        }
        ProblemPlace::Line(self.line)
    }
}

/// What was read so far.
#[derive(Default)]
struct Document {
    draft: Draft,
    has_graph: bool,
    /// Keys under which nodes have their names, and links their weights.
    name_keys: Vec<String>,
    weight_keys: Vec<String>,
    in_weight_key: bool,
    /// Of links that say nothing.
    default_weight: Option<Weight>,
    item: Option<Item>,
    /// What the text that is being read will be.
    field: Option<(ProblemPlace, Field)>,
    text: String,
}

/// A node or an edge that is being read.
enum Item {
    Node { place: ProblemPlace, identifier: String, name: Option<String> },
    Edge(DraftLink),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Field {
    Name,
    Weight,
    DefaultWeight,
}

/// How many keys may mean the same.
const KEYS_MAX: usize = 16;

impl Document {
    fn open(&mut self, place: ProblemPlace, tag: &BytesStart<'_>) -> Result<(), ImportError> {
        match tag.local_name().as_ref() {
            "graph" => self.open_graph(place, tag)?,
            "key" => self.open_key(place, tag)?,
            "node" => {
                let identifier = needed(place, tag, "id")?;
                self.item = Some(Item::Node { place, identifier, name: None });
            }
            "edge" => {
                self.item = Some(Item::Edge(DraftLink {
                    place,
                    from: needed(place, tag, "source")?,
                    to: needed(place, tag, "target")?,
                    weight: None,
                    directed: attribute(place, tag, "directed")?.map(|value| value == "true"),
                }));
            }
            "data" => {
                let key = attribute(place, tag, "key")?.unwrap_or_default();
                self.expect(place, self.field_of(&key));
            }
            "default" if self.in_weight_key => self.expect(place, Some(Field::DefaultWeight)),
            _ => {}
        }
        Ok(())
    }

    fn open_graph(&mut self, place: ProblemPlace, tag: &BytesStart<'_>) -> Result<(), ImportError> {
        if self.has_graph {
            let problem = "a second or nested graph; keep one graph per file";
            return Err(ImportError::syntax(place, problem));
        }
        self.has_graph = true;
        self.draft.directed =
            attribute(place, tag, "edgedefault")?.is_some_and(|value| value == "directed");
        Ok(())
    }

    /// Keys come before the graph that uses them.
    fn open_key(&mut self, place: ProblemPlace, tag: &BytesStart<'_>) -> Result<(), ImportError> {
        let name = attribute(place, tag, "attr.name")?.unwrap_or_default().to_ascii_lowercase();
        let target = attribute(place, tag, "for")?.unwrap_or_default();
        let keys = match (target.as_str(), name.as_str()) {
            ("node" | "all" | "", "label" | "name") => &mut self.name_keys,
            ("edge" | "all" | "", "weight") => {
                self.in_weight_key = true;
                &mut self.weight_keys
            }
            _ => return Ok(()),
        };
        if keys.len() < KEYS_MAX {
            keys.push(needed(place, tag, "id")?);
        }
        Ok(())
    }

    fn field_of(&self, key: &str) -> Option<Field> {
        let among = |keys: &[String]| keys.iter().any(|known| known == key);
        match self.item {
            Some(Item::Node { .. }) if among(&self.name_keys) => Some(Field::Name),
            Some(Item::Edge(_)) if among(&self.weight_keys) => Some(Field::Weight),
            _ => None,
        }
    }

    fn expect(&mut self, place: ProblemPlace, field: Option<Field>) {
        self.field = field.map(|field| (place, field));
        self.text.clear();
    }

    fn text(&mut self, text: &str) {
        // One letter more than a name may have is enough to refuse it.
        if self.field.is_some() && self.text.len() <= NAME_BYTES_MAX {
            self.text.push_str(text);
        }
    }

    fn reference(&mut self, reference: &quick_xml::events::BytesRef<'_>) {
        let name = reference.xml10_content();
        match reference.resolve_char_ref() {
            Ok(Some(letter)) => self.text(letter.encode_utf8(&mut [0; 4])),
            _ => self.text(quick_xml::escape::resolve_predefined_entity(&name).unwrap_or("?")),
        }
    }

    fn close(&mut self, tag: &str) -> Result<(), ImportError> {
        match tag {
            "data" | "default" => self.close_field(),
            "key" => {
                self.in_weight_key = false;
                Ok(())
            }
            "node" | "edge" => self.close_item(),
            _ => Ok(()),
        }
    }

    fn close_field(&mut self) -> Result<(), ImportError> {
        let Some((place, field)) = self.field.take() else { return Ok(()) };
        let text = self.text.trim();
        match (field, &mut self.item) {
            (Field::Name, Some(Item::Node { name, .. })) => *name = Some(text.to_owned()),
            (Field::Weight, Some(Item::Edge(link))) => link.weight = Some(weight(place, text)?),
            (Field::DefaultWeight, _) if !text.is_empty() => {
                self.default_weight = Some(weight(place, text)?);
            }
            _ => {}
        }
        Ok(())
    }

    fn close_item(&mut self) -> Result<(), ImportError> {
        match self.item.take() {
            Some(Item::Node { place, identifier, name }) => {
                let name = name.filter(|name| !name.is_empty());
                self.draft.router(place, &identifier, name.as_deref().unwrap_or(&identifier))
            }
            Some(Item::Edge(mut link)) => {
                link.weight = link.weight.or(self.default_weight);
                self.draft.link(link)
            }
            None => Ok(()),
        }
    }

    fn finish(self, place: ProblemPlace) -> Result<Topology, ImportError> {
        if self.has_graph && self.item.is_none() {
            return self.draft.finish();
        }
        Err(ImportError::syntax(place, "the file ends before its graph does; is it truncated?"))
    }
}

/// The value of an attribute.
fn attribute(
    place: ProblemPlace,
    tag: &BytesStart<'_>,
    name: &str,
) -> Result<Option<String>, ImportError> {
    // Looking for attributes that occur twice takes time with the square of their number.
    let found = tag
        .attributes()
        .with_checks(false)
        .flatten()
        .find(|attribute: &Attribute<'_>| attribute.key.as_ref() == name);
    let value = found.map(|attribute| attribute.normalized_value(XmlVersion::Implicit1_0));
    value
        .map(|value| value.map(std::borrow::Cow::into_owned))
        .transpose()
        .map_err(|error| ImportError::syntax(place, error.to_string()))
}

fn needed(place: ProblemPlace, tag: &BytesStart<'_>, name: &str) -> Result<String, ImportError> {
    let problem =
        || format!("a {:?} without the attribute {name:?}; add it", tag.local_name().as_ref());
    attribute(place, tag, name)?.ok_or_else(|| ImportError::syntax(place, problem()))
}
