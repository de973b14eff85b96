//! A little state for each flow: bounded, or as much as there are flows.

use std::collections::HashMap;

use twixt_model::Prehashed;

/// State by the hash of a directed flow.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum FlowTable<T> {
    /// So many places, made when the first is needed; each hash has one of them, and the newest
    /// flow has it.
    Bounded { flows: usize, places: Vec<Place<T>>, replaced: u64 },
    /// A place for every flow.
    Growing(HashMap<u64, T, Prehashed>),
}

/// A place and whose it is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Place<T> {
    /// 0 if it is free.
    flow: u64,
    state: T,
}

impl<T: Copy + Default> FlowTable<T> {
    /// For so many flows at once; for all there are if `None`.
    pub(crate) fn new(flows: Option<u32>) -> Self {
        match flows {
            Some(flows) => Self::Bounded { flows: flows as usize, places: Vec::new(), replaced: 0 },
            None => Self::Growing(HashMap::default()),
        }
    }

    /// Whether there is any place at all.
    pub(crate) fn is_kept(&self) -> bool {
        !matches!(self, Self::Bounded { flows: 0, .. })
    }

    /// The state of a flow, if it is kept.
    #[inline]
    pub(crate) fn find(&self, flow: u64) -> Option<&T> {
        match self {
            Self::Bounded { places, .. } => {
                let at = place_of(flow, places.len());
                places.get(at).filter(|place| place.flow == flow).map(|place| &place.state)
            }
            Self::Growing(states) => states.get(&flow),
        }
    }

    /// The same, to change it.
    #[inline]
    pub(crate) fn find_mut(&mut self, flow: u64) -> Option<&mut T> {
        match self {
            Self::Bounded { places, .. } => {
                let at = place_of(flow, places.len());
                places.get_mut(at).filter(|place| place.flow == flow).map(|place| &mut place.state)
            }
            Self::Growing(states) => states.get_mut(&flow),
        }
    }

    /// The state of a flow: a new one if it was not kept. Callers have checked that states are
    /// kept.
    #[inline]
    pub(crate) fn entry(&mut self, flow: u64) -> &mut T {
        match self {
            Self::Bounded { flows, places, replaced } => {
                if places.is_empty() {
                    places.resize(*flows, Place { flow: 0, state: T::default() });
                }
                let at = place_of(flow, places.len());
                let place = &mut places[at];
                if place.flow != flow {
                    *replaced = replaced.wrapping_add(u64::from(place.flow != 0));
                    *place = Place { flow, state: T::default() };
                }
                &mut place.state
            }
            Self::Growing(states) => states.entry(flow).or_default(),
        }
    }

    /// How many flows lost their place to another.
    pub(crate) const fn replaced(&self) -> u64 {
        match self {
            Self::Bounded { replaced, .. } => *replaced,
            Self::Growing(_) => 0,
        }
    }

    /// Bytes that a flow takes in a bounded table.
    pub(crate) const PLACE_BYTES: usize = size_of::<Place<T>>();

    /// Bytes of state.
    pub(crate) fn state_bytes(&self) -> u64 {
        let places = match self {
            Self::Bounded { places, .. } => places.len(),
            Self::Growing(states) => states.capacity(),
        };
        (places * Self::PLACE_BYTES) as u64
    }
}

#[inline]
const fn place_of(flow: u64, places: usize) -> usize {
    (((flow >> 32) * places as u64) >> 32) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_flow_has_the_place_and_the_change_is_counted() {
        let mut table = FlowTable::<u8>::new(Some(1));
        *table.entry(5) = 7;
        assert_eq!(table.find(5).copied(), Some(7));
        assert_eq!(*table.entry(6), 0);
        assert!(table.find(5).is_none());
        assert_eq!(table.replaced(), 1);
        let none = FlowTable::<u8>::new(Some(0));
        assert!(!none.is_kept() && none.find(5).is_none());
    }

    #[test]
    fn a_growing_table_forgets_nobody() {
        let mut table = FlowTable::<u64>::new(None);
        (0..1000).for_each(|flow| *table.entry(flow) = flow);
        assert!((0..1000).all(|flow| table.find(flow).copied() == Some(flow)));
        assert!(table.is_kept() && table.state_bytes() >= 8000);
    }
}
