//! Ranges, defaults, and where flows fall.

use std::collections::BTreeSet;

use twixt_model::{FlowHash, GroupId, Observation, mix};

use super::*;

fn read(text: &str) -> Result<ColateConfig, String> {
    toml::from_str(text).map_err(|error| error.message().to_owned())
}

#[track_caller]
fn check_refused(text: &str, expected: &str) {
    let problem = read(text).unwrap_err();
    assert!(problem.contains(expected), "{problem}");
}

#[test]
fn settings_are_checked() {
    check_refused("counters = 0", "counters must be between 1 and 16777216, not 0");
    check_refused("counters = 20000000", "counters must be between 1 and 16777216");
    check_refused("counters = 10\nper_flow = 11", "per_flow must be between 1 and 10");
    check_refused("counters = 10\nbanks = 3", "10 counters cannot be split into 3 equal banks");
    check_refused("banks = 0", "banks must be between 1 and 4096, not 0");
    check_refused("sampling = []", "sampling needs 1 to 16 rates, not 0");
    check_refused("sampling = [1.5]", "a sampling rate must be above 0 and at most 1, not 1.5");
    check_refused("resolution = 0", "resolution must be between 1 ns and 1 s");
    check_refused("time_bits = 7", "time_bits must be between 8 and 64");
    check_refused("digest_bits = 65", "digest_bits must be at most 64");
}

#[test]
fn everything_has_a_default_that_fills_its_banks() {
    assert_eq!(read("").unwrap(), ColateConfig::default());
    assert_eq!(ColateConfig::default().counters(), 53_248);
    assert_eq!(read("banks = 3").unwrap().counters(), 53_247);
    assert_eq!(read("sampling = [1.0, 0.1]").unwrap().counters(), 26_624);
    assert_eq!(read("counters = 64\nbanks = 16").unwrap().per_flow(), 4);
}

#[test]
fn twice_the_memory_has_twice_the_counters() {
    for memory_bytes in [4096, 100_000, 1 << 20, 9_000_000] {
        let config = ColateConfig::within(memory_bytes).unwrap();
        let bytes = config.state_bytes();
        assert!(bytes <= memory_bytes && bytes > memory_bytes * 7 / 8, "{bytes}");
        let twice = ColateConfig::within(2 * memory_bytes - 32).unwrap();
        assert_eq!(twice.finer_than(&config), Some((1, 2)));
    }
    assert_eq!(ColateConfig::within(16), None);
}

#[test]
fn a_packet_is_counted_in_a_counter_of_its_flow() {
    let config = ColateConfig::new(4096, 20, &[1.0, 0.5]).unwrap().with_banks(4).unwrap();
    for number in 0..1000_u64 {
        let packet = Observation {
            flow: FlowHash(mix(number % 10)),
            digest: twixt_model::PacketDigest(mix(number)),
            group: GroupId((number % 10) as u16),
            ..Observation::default()
        };
        let place = Place { flow: packet.flow, group: packet.group };
        for cell in config.placing().cells_for(&packet) {
            let vector = cell / 4096;
            assert!(config.cells_of(place, vector).any(|own| own == cell));
        }
    }
}

#[test]
fn groups_spread_over_all_banks_and_flows_over_all_counters() {
    let config = ColateConfig::new(256, 4, &[1.0]).unwrap().with_banks(16).unwrap();
    let banks: BTreeSet<u32> =
        (0..500).map(|group| config.placing().bank_of(GroupId(group))).collect();
    assert_eq!(banks.len(), 16);
    let places =
        (0..4000).map(|flow| Place { flow: FlowHash(mix(flow)), group: GroupId(mix(flow) as u16) });
    let cells: BTreeSet<usize> = places.flat_map(|place| config.cells_of(place, 0)).collect();
    assert_eq!(cells.len(), 256);
}
