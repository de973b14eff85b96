//! Templates: which fields a record has, as the exporter announced it.

use std::collections::HashMap;
use std::sync::Arc;

use crate::bytes::Bytes;
use crate::element::Element;

/// Fields of one template at most.
pub const FIELDS_MAX: usize = 512;
/// Templates of one exporter and observation domain at most.
pub const TEMPLATES_MAX: usize = 256;
/// Fields of all templates of one exporter and observation domain at most: 48 KiB of them.
pub const STREAM_FIELDS_MAX: usize = 4096;

/// Length of a field whose length is in the record (RFC 7011, section 7).
pub(crate) const VARIABLE: u16 = u16::MAX;

/// One field of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Field {
    pub(crate) element: Element,
    pub(crate) length: u16,
}

/// The layout of a kind of records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Template {
    pub(crate) fields: Vec<Field>,
    /// It describes options, not flows.
    pub(crate) options: bool,
    /// No record is shorter; never 0.
    pub(crate) record_bytes_min: usize,
}

impl Template {
    /// A template; `None` if its records could have no bytes, which would never end.
    pub(crate) fn new(fields: Vec<Field>, options: bool) -> Option<Self> {
        let least = |field: &Field| match field.length {
            VARIABLE => 1,
            length => usize::from(length),
        };
        let record_bytes_min = fields.iter().map(least).sum();
        (record_bytes_min > 0).then_some(Self { fields, options, record_bytes_min })
    }

    /// Takes one record and hands its fields to `each`; `None` if it is not whole.
    pub(crate) fn read_record<'a>(
        &self,
        bytes: &mut Bytes<'a>,
        mut each: impl FnMut(Element, &'a [u8]),
    ) -> Option<()> {
        for field in &self.fields {
            let length = match field.length {
                VARIABLE => variable_length(bytes)?,
                length => usize::from(length),
            };
            each(field.element, bytes.take(length)?);
        }
        Some(())
    }
}

/// One byte, or 255 and two bytes.
fn variable_length(bytes: &mut Bytes<'_>) -> Option<usize> {
    match bytes.u8()? {
        255 => bytes.u16().map(usize::from),
        short => Some(usize::from(short)),
    }
}

/// What became of an announced template.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kept {
    /// The same as before.
    Known,
    /// It was not there.
    New,
    /// It replaces another of the same number.
    Changed,
    /// There is no room.
    Refused,
}

/// The templates of one exporter and observation domain.
#[derive(Clone, Debug, Default)]
pub(crate) struct TemplateTable {
    templates: HashMap<u16, Arc<Template>>,
    fields: usize,
}

impl TemplateTable {
    /// The template of that number; shared, for options change what is kept beside it.
    pub(crate) fn find(&self, number: u16) -> Option<Arc<Template>> {
        self.templates.get(&number).cloned()
    }

    /// Keeps a template. One that is refused leaves none under its number: records would be read
    /// by the wrong layout.
    pub(crate) fn keep(&mut self, number: u16, template: Template) -> Kept {
        let before = self.remove(number);
        let fields = self.fields + template.fields.len();
        if fields > STREAM_FIELDS_MAX || self.templates.len() >= TEMPLATES_MAX {
            return Kept::Refused;
        }
        self.fields = fields;
        let kept = match before {
            Some(before) if *before == template => Kept::Known,
            Some(_) => Kept::Changed,
            None => Kept::New,
        };
        self.templates.insert(number, Arc::new(template));
        kept
    }

    /// Forgets a template and returns it.
    pub(crate) fn remove(&mut self, number: u16) -> Option<Arc<Template>> {
        let removed = self.templates.remove(&number)?;
        self.fields -= removed.fields.len();
        Some(removed)
    }

    /// Forgets all templates of options, or all others; says how many.
    pub(crate) fn remove_all(&mut self, options: bool) -> u64 {
        let before = self.templates.len();
        self.templates.retain(|_, template| template.options != options);
        self.fields = self.templates.values().map(|template| template.fields.len()).sum();
        (before - self.templates.len()) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn template(fields: usize) -> Template {
        let field = Field { element: Element::iana(8), length: 4 };
        Template::new(vec![field; fields], false).unwrap()
    }

    #[test]
    fn a_changed_template_replaces_and_a_refused_one_leaves_none() {
        let mut table = TemplateTable::default();
        assert_eq!(table.keep(256, template(2)), Kept::New);
        assert_eq!(table.keep(256, template(2)), Kept::Known);
        assert_eq!(table.keep(256, template(3)), Kept::Changed);
        assert_eq!(table.keep(256, template(STREAM_FIELDS_MAX + 1)), Kept::Refused);
        assert_eq!(table.find(256), None);
        assert_eq!(table.fields, 0);
    }

    #[test]
    fn a_flood_of_templates_ends_at_the_bound() {
        let mut table = TemplateTable::default();
        let kept = (256..2000).filter(|&number| table.keep(number, template(1)) == Kept::New);
        assert_eq!(kept.count(), TEMPLATES_MAX);
        assert_eq!(table.remove_all(true), 0);
        assert_eq!(table.remove_all(false), TEMPLATES_MAX as u64);
    }

    #[test]
    fn records_without_bytes_are_refused() {
        let field = Field { element: Element::iana(8), length: 0 };
        assert_eq!(Template::new(vec![field; 3], false), None);
    }
}
