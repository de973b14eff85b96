//! The flows of a simulation and their five-tuples.
//!
//! Synthetic flows go from 10.0.0.0/8 to 198.18.0.0/15, which RFC 2544 sets aside for tests: from
//! 256 prefixes of 24 bits to 512, of which some are much more popular than others. One flow in
//! five is UDP.

use std::net::{IpAddr, Ipv4Addr};

use twixt_model::{FlowKey, protocol};

use crate::config::FLOWS_MAX;
use crate::random::{Purpose, Stream};

/// Ephemeral ports in use: 1024 to 65535.
const PORTS: u32 = 64_512;
const FIRST_PORT: u32 = 1024;
/// Coprime with [`PORTS`]: spreads the ports of successive flows.
const PORT_STRIDE: u64 = 28_657;

const UDP_SHARE: f64 = 0.2;
const TCP_SERVICES: [u16; 8] = [443, 443, 443, 443, 80, 8080, 993, 22];
const UDP_SERVICES: [u16; 4] = [443, 443, 53, 123];

const _: () = assert!(FLOWS_MAX == 256 * PORTS, "an octet and a port tell all flows apart");

/// Distinct five-tuples for `flows` flows, of which there are at most [`FLOWS_MAX`].
pub(crate) fn synthetic_keys(seed: u64, flows: u32) -> Vec<FlowKey> {
    let mut stream = Stream::new(seed, Purpose::FlowKey);
    (0..flows).map(|index| synthetic_key(index, &mut stream)).collect()
}

/// The second octet of the source and its port distinguish any two flows; the rest is drawn.
pub(crate) fn synthetic_key(index: u32, stream: &mut Stream) -> FlowKey {
    let second_octet = (index / PORTS) as u8;
    let port = u64::from(index) * PORT_STRIDE % u64::from(PORTS) + u64::from(FIRST_PORT);
    let source = Ipv4Addr::new(10, second_octet, popular(256, stream) as u8, host(stream));
    let prefix = popular(512, stream);
    let destination =
        Ipv4Addr::new(198, 18 + (prefix >> 8) as u8, (prefix & 0xff) as u8, host(stream));
    let is_udp = stream.chance(UDP_SHARE);
    let services: &[u16] = if is_udp { &UDP_SERVICES } else { &TCP_SERVICES };
    FlowKey {
        source: IpAddr::V4(source),
        destination: IpAddr::V4(destination),
        source_port: port as u16,
        destination_port: services[stream.below(services.len() as u64) as usize],
        protocol: if is_udp { protocol::UDP } else { protocol::TCP },
    }
}

/// 0..bound, with low numbers more often: the share of the first n is sqrt(n / bound).
fn popular(bound: u32, stream: &mut Stream) -> u32 {
    let unit = stream.unit();
    (f64::from(bound) * unit * unit) as u32
}

fn host(stream: &mut Stream) -> u8 {
    1 + stream.below(254) as u8
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn no_two_flows_are_alike() {
        let keys = synthetic_keys(1, 150_000);
        let distinct: HashSet<FlowKey> = keys.iter().copied().collect();
        assert_eq!(distinct.len(), keys.len());
        // Nor does one look like the way back of another.
        assert!(keys.iter().all(|key| !distinct.contains(&key.reversed())));
    }

    #[test]
    fn flows_are_spread_over_prefixes_and_protocols() {
        let keys = synthetic_keys(1, 20_000);
        let prefixes: HashSet<[u8; 3]> = keys
            .iter()
            .map(|key| match key.destination {
                IpAddr::V4(address) => {
                    [address.octets()[0], address.octets()[1], address.octets()[2]]
                }
                IpAddr::V6(_) => panic!("no flow is IPv6"),
            })
            .collect();
        assert_eq!(prefixes.len(), 512);
        let udp = keys.iter().filter(|key| key.protocol == protocol::UDP).count();
        // Five standard errors of sqrt(n p (1 - p)) = 57.
        assert!(udp.abs_diff(4000) < 5 * 57, "{udp}");
    }
}
