//! Two captures that are read at the same time, of which a person has seen enough.
//!
//! What was read of one need not be what was read of the other: packets of one would look lost. So both
//! are read on, to a moment that neither has reached, as if the captures ended there. Packets near that
//! end are compared one by one, as they are near any other.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use twixt_measure::survey::Edges;
use twixt_model::{Side, Timestamp};

use crate::parts::Part;

/// Lets two readers of a part agree on where it ends.
pub(crate) struct Shortening<'a> {
    part: &'a Part,
    state: Mutex<State>,
    batch_ended: Condvar,
}

struct State {
    /// How far upstream was read, and downstream.
    reached: [Timestamp; 2],
    /// Who is reading on.
    is_reading: [bool; 2],
    /// It was too late to end earlier.
    is_given_up: bool,
}

impl<'a> Shortening<'a> {
    pub(crate) const fn new(part: &'a Part) -> Self {
        let state =
            State { reached: [Timestamp::MIN; 2], is_reading: [false; 2], is_given_up: false };
        Self { part, state: Mutex::new(state), batch_ended: Condvar::new() }
    }

    /// A batch will be read at one end. Returns the new ends, if there are any: where `is_enough`, they
    /// are made when the other end is between two batches.
    pub(crate) fn begin_batch(&self, side: Side, is_enough: bool) -> Option<&'a Edges> {
        let (here, other) = (side as usize, 1 - side as usize);
        let mut state = self.lock();
        if is_enough && !state.is_given_up && self.part.shortened.get().is_none() {
            while state.is_reading[other] {
                let waited = self.batch_ended.wait(state);
                state = waited.unwrap_or_else(PoisonError::into_inner);
            }
            let [upstream, downstream] = state.reached;
            match self.part.overlap.shortened(upstream, downstream) {
                Some(overlap) => _ = self.part.shortened.set(Edges::of(&overlap)),
                None => state.is_given_up = true,
            }
        }
        state.is_reading[here] = true;
        self.part.shortened.get()
    }

    /// A batch was read at one end, up to this time.
    pub(crate) fn end_batch(&self, side: Side, reached: Timestamp) {
        let mut state = self.lock();
        state.reached[side as usize] = reached;
        state.is_reading[side as usize] = false;
        self.batch_ended.notify_all();
    }

    /// Nothing else is done while it is held that could fail.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
