//! Who may come in: so many connections, so many of one address.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Notify;

use super::{Limits, ServerMetrics};

/// All connections.
#[derive(Clone, Debug)]
pub(super) struct Guests {
    limits: Limits,
    metrics: ServerMetrics,
    present: Arc<Mutex<Present>>,
    left: Arc<Notify>,
}

#[derive(Debug, Default)]
struct Present {
    all: usize,                         // at most connections_max
    by_address: HashMap<IpAddr, usize>, // as many as there are connections
}

/// Holds a place for a connection.
#[derive(Debug)]
pub(super) struct Admission {
    guests: Guests,
    address: IpAddr,
}

impl Guests {
    pub(super) fn new(limits: Limits, metrics: ServerMetrics) -> Self {
        Self { limits, metrics, present: Arc::default(), left: Arc::default() }
    }

    /// A place, if there is one.
    pub(super) fn admit(&self, address: IpAddr) -> Option<Admission> {
        let mut present = self.present.lock().unwrap_or_else(PoisonError::into_inner);
        let of_address = present.by_address.get(&address).copied().unwrap_or(0);
        if present.all >= self.limits.connections_max {
            self.metrics.refuse("too-many");
            return None;
        }
        if of_address >= self.limits.connections_per_address_max {
            self.metrics.refuse("too-many-of-one-address");
            return None;
        }
        present.all += 1;
        present.by_address.insert(address, of_address + 1);
        self.metrics.accepted.inc();
        self.metrics.open.set(present.all as i64);
        Some(Admission { guests: self.clone(), address })
    }

    /// Waits until all connections are closed.
    pub(super) async fn all_gone(&self) {
        loop {
            let left = self.left.notified();
            if self.present.lock().unwrap_or_else(PoisonError::into_inner).all == 0 {
                return;
            }
            left.await;
        }
    }
}

impl Drop for Admission {
    fn drop(&mut self) {
        let mut present = self.guests.present.lock().unwrap_or_else(PoisonError::into_inner);
        present.all -= 1;
        if let Some(of_address) = present.by_address.get_mut(&self.address) {
            *of_address -= 1;
            if *of_address == 0 {
                present.by_address.remove(&self.address);
            }
        }
        self.guests.metrics.open.set(present.all as i64);
        self.guests.left.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_limited_and_come_back() {
        let limits =
            Limits { connections_max: 3, connections_per_address_max: 2, ..Limits::default() };
        let guests = Guests::new(limits, ServerMetrics::default());
        let [one, two, three] = ["10.0.0.1", "10.0.0.2", "::1"].map(|text| text.parse().unwrap());
        let first = guests.admit(one);
        let second = guests.admit(one);
        assert!(first.is_some() && second.is_some());
        assert!(guests.admit(one).is_none(), "two of one address are enough");
        let third = guests.admit(two);
        assert!(third.is_some() && guests.admit(three).is_none(), "three are enough");
        drop(first);
        assert!(guests.admit(three).is_some());
        drop((second, third));
        assert!(guests.present.lock().unwrap().by_address.is_empty());
    }
}
