//! A doubly linked list through the entries of a cache: first, last and any one of them come and
//! go in constant time.

use super::Entry;

/// Places of the neighbours in one order.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Links {
    before: Option<u32>,
    after: Option<u32>,
}

/// One order of the entries.
#[derive(Clone, Debug)]
pub(super) struct Order {
    first: Option<u32>,
    last: Option<u32>,
    /// The links of an entry that belong to this order.
    links: fn(&mut Entry) -> &mut Links,
}

impl Order {
    pub(super) const fn new(links: fn(&mut Entry) -> &mut Links) -> Self {
        Self { first: None, last: None, links }
    }

    pub(super) const fn first(&self) -> Option<u32> {
        self.first
    }

    pub(super) fn push_last(&mut self, entries: &mut [Entry], place: u32) {
        let before = self.last.replace(place);
        *self.links_of(entries, place) = Links { before, after: None };
        match before {
            Some(before) => self.links_of(entries, before).after = Some(place),
            None => self.first = Some(place),
        }
    }

    pub(super) fn remove(&mut self, entries: &mut [Entry], place: u32) {
        let Links { before, after } = std::mem::take(self.links_of(entries, place));
        match before {
            Some(before) => self.links_of(entries, before).after = after,
            None => self.first = after,
        }
        match after {
            Some(after) => self.links_of(entries, after).before = before,
            None => self.last = before,
        }
    }

    fn links_of<'a>(&self, entries: &'a mut [Entry], place: u32) -> &'a mut Links {
        (self.links)(&mut entries[place as usize])
    }
}
