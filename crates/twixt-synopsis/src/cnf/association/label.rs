//! By the labels of first and last packets: a look-up, not a search.

use std::collections::{HashMap, VecDeque};

use foldhash::fast::RandomState;
use twixt_model::{FlowRecord, PacketDigest, Side, Timestamp};

use super::Associated;

/// Records that wait for one with the same label.
#[derive(Debug, Default)]
pub(super) struct Labels {
    records: HashMap<u64, (Side, FlowRecord), RandomState>,
    /// By side, end and label. Of two records with equal labels, the later is found.
    index: HashMap<(Side, RecordEnd, PacketDigest), u64, RandomState>,
    /// Oldest first; those that found their partner are gone from `records`.
    order: VecDeque<u64>,
    next: u64,
}

/// Places of records that are gone, at least, before it is worth to look for them.
const ORDER_SPARE: usize = 1024;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum RecordEnd {
    First,
    Last,
}

impl Labels {
    pub(super) fn len(&self) -> usize {
        self.records.len()
    }

    /// The record with its partner; without one, it waits.
    pub(super) fn offer(&mut self, side: Side, record: FlowRecord) -> Option<Associated> {
        let other = match side {
            Side::Upstream => Side::Downstream,
            Side::Downstream => Side::Upstream,
        };
        let found = ends(&record)
            .filter_map(|(end, label)| self.index.get(&(other, end, label)).copied())
            .find(|id| {
                let (_, partner) = &self.records[id];
                (partner.key, partner.class) == (record.key, record.class)
            });
        let Some(id) = found else {
            self.wait(side, record);
            return None;
        };
        let (_, partner) = self.take(id).expect("the index leads to records that are there");
        let (upstream, downstream) = match side {
            Side::Upstream => (record, partner),
            Side::Downstream => (partner, record),
        };
        let same = |one: Option<PacketDigest>, other| one.is_some() && one == other;
        Some(Associated {
            upstream,
            downstream,
            same_first: same(upstream.first_label, downstream.first_label),
            same_last: same(upstream.last_label, downstream.last_label),
        })
    }

    /// The oldest record, if it ended before that time.
    pub(super) fn take_older(&mut self, before: Timestamp) -> Option<(Side, FlowRecord)> {
        self.take_oldest_if(|record| record.last < before)
    }

    /// The oldest record.
    pub(super) fn take_oldest(&mut self) -> Option<(Side, FlowRecord)> {
        self.take_oldest_if(|_| true)
    }

    fn take_oldest_if(
        &mut self,
        is_due: impl Fn(&FlowRecord) -> bool,
    ) -> Option<(Side, FlowRecord)> {
        while let Some(&id) = self.order.front() {
            match self.records.get(&id) {
                None => {}
                Some((_, record)) if is_due(record) => {
                    self.order.pop_front();
                    return self.take(id);
                }
                Some(_) => return None,
            }
            self.order.pop_front();
        }
        None
    }

    fn wait(&mut self, side: Side, record: FlowRecord) {
        let id = self.next;
        self.next += 1;
        for (end, label) in ends(&record) {
            self.index.insert((side, end, label), id);
        }
        self.records.insert(id, (side, record));
        self.order.push_back(id);
        // One that waits long must not keep the places of all that came after it and are gone.
        if self.order.len() > 2 * self.records.len() + ORDER_SPARE {
            self.order.retain(|id| self.records.contains_key(id));
        }
    }

    fn take(&mut self, id: u64) -> Option<(Side, FlowRecord)> {
        let (side, record) = self.records.remove(&id)?;
        for (end, label) in ends(&record) {
            // A later record may have taken over the label.
            if self.index.get(&(side, end, label)) == Some(&id) {
                self.index.remove(&(side, end, label));
            }
        }
        Some((side, record))
    }
}

fn ends(record: &FlowRecord) -> impl Iterator<Item = (RecordEnd, PacketDigest)> + use<> {
    let first = record.first_label.map(|label| (RecordEnd::First, label));
    let last = record.last_label.map(|label| (RecordEnd::Last, label));
    first.into_iter().chain(last)
}
