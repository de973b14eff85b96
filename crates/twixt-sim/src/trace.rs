//! A user's own trace in the place of synthetic traffic.

use std::collections::HashMap;

use twixt_model::{FlowKey, Timestamp};

use crate::crossing::Numbering;
use crate::packet::LENGTH_MAX;
use crate::{Arrival, PACKETS_MAX, SimulatedPacket, SimulationConfigError};

/// A user's own trace, numbered.
pub(crate) struct Trace {
    pub(crate) start: Timestamp,
    pub(crate) keys: Vec<FlowKey>,
    pub(crate) packets: Vec<SimulatedPacket>,
    pub(crate) frames: Vec<u64>,
}

impl Trace {
    /// Longer traces come from damaged times.
    const LONGEST_NS: i64 = 100 * 366 * 86_400 * 1_000_000_000;

    pub(crate) fn read(
        arrivals: impl IntoIterator<Item = Arrival>,
    ) -> Result<Self, SimulationConfigError> {
        let most = PACKETS_MAX;
        let mut sorted: Vec<Arrival> = arrivals.into_iter().take(most as usize + 1).collect();
        if sorted.len() as u64 > most {
            return Err(SimulationConfigError::TooManyPackets { packets: most + 1, most });
        }
        sorted.sort_by_key(|arrival| arrival.time);
        let (Some(first), Some(last)) = (sorted.first(), sorted.last()) else {
            return Err(SimulationConfigError::NoArrivals);
        };
        let start = first.time;
        if (last.time - start).as_nanos() > Self::LONGEST_NS {
            return Err(SimulationConfigError::ArrivalsTooLong);
        }
        Ok(Self::number(start, &sorted))
    }

    /// Flows get indices in the order of their first packets.
    fn number(start: Timestamp, sorted: &[Arrival]) -> Self {
        let (mut keys, mut indices) = (Vec::new(), HashMap::new());
        let mut numbering = Numbering::new(0);
        let mut packets = Vec::with_capacity(sorted.len());
        for arrival in sorted {
            let flow = *indices.entry(arrival.key).or_insert_with(|| {
                keys.push(arrival.key);
                keys.len() as u32 - 1
            });
            numbering.grow(keys.len());
            let entered_ns = (arrival.time - start).as_nanos();
            packets.push(numbering.next(entered_ns, flow, arrival.length.min(LENGTH_MAX)));
        }
        let frames = sorted.iter().map(|arrival| arrival.frame).collect();
        Self { start, keys, packets, frames }
    }
}
