//! Sizes against those of a simulation.

use twixt_model::{ClassId, GroupId};
use twixt_sim::{Config, Side, Simulation};

use super::*;
use crate::lds::{Lds, LdsConfig};
use crate::sketch::Sketch;
use crate::synopsis::Synopsis;

/// A class of flows: how far off their sizes are, and how many within two of the errors stated.
#[derive(Debug)]
struct Class {
    median_error: f64,
    within: f64,
}

fn class(sizes: &[Size], truth: &[u64], from: u64, to: u64) -> Class {
    let flows = sizes.iter().zip(truth).filter(|(_, truth)| (from..to).contains(truth));
    let (mut errors, mut within) = (Vec::new(), 0);
    for (size, &truth) in flows {
        let off = (size.load - truth as f64).abs();
        errors.push(off / truth as f64);
        within += usize::from(off <= 2.0 * size.error + 0.5);
    }
    errors.sort_by(f64::total_cmp);
    let within = within as f64 / errors.len() as f64;
    Class { median_error: errors[errors.len() / 2], within }
}

fn simulated() -> (Simulation, Vec<KnownFlow>, Vec<u64>) {
    let config = Config { flows: 20_000, packets: Some(600_000), ..Config::default() };
    println!("seed {}", config.seed);
    let simulation = Simulation::run(&config).unwrap();
    let mut truth = vec![0_u64; simulation.flows()];
    simulation.packets().iter().for_each(|packet| truth[packet.flow as usize] += 1);
    let flow = |flow: u32| KnownFlow {
        hash: simulation.flow_hash(flow),
        key: simulation.flow_key(flow),
        group: GroupId::default(),
        packets: None,
        class: ClassId(0),
    };
    let flows = (0..simulation.flows() as u32).map(flow).collect();
    (simulation, flows, truth)
}

/// Medians for 1 to 9, 10 to 99, 100 to 999 and 1000 packets or more are at most these.
#[track_caller]
fn check(columns: u32, virtual_cells: u32, at_most: [f64; 4]) {
    let (simulation, flows, truth) = simulated();
    let mut lds = Lds::new(&LdsConfig::new(columns, virtual_cells, &[1.0; 4]).unwrap());
    simulation.observations(Side::Upstream).for_each(|packet| lds.update(&packet));
    let sizes = sizes(lds.config(), &lds.counts(), &flows);
    let classes = [(1, 10), (10, 100), (100, 1000), (1000, u64::MAX)];
    for ((from, to), most) in classes.into_iter().zip(at_most) {
        let class = class(&sizes, &truth, from, to);
        println!("{columns} x {virtual_cells}, from {from}: {class:.4?}");
        assert!(class.median_error <= most, "from {from}: {class:?}, not {most}");
        assert!(class.within >= 0.85, "from {from}: {class:?}");
    }
}

#[test]
fn with_twice_as_many_flows_as_cells_large_ones_are_found() {
    check(2_500, 1, [0.6, 0.4, 0.06, 0.006]);
}

#[test]
fn with_twice_as_many_cells_as_flows_sizes_are_exact() {
    check(10_000, 1, [1e-4; 4]);
}

#[test]
fn flows_that_spread_over_several_cells_are_found() {
    check(10_000, 5, [0.7, 0.4, 0.05, 0.004]);
}

#[test]
fn what_is_told_is_not_estimated() {
    let (simulation, mut flows, truth) = simulated();
    let mut lds = Lds::new(&LdsConfig::new(2_500, 1, &[1.0; 4]).unwrap());
    simulation.observations(Side::Upstream).for_each(|packet| lds.update(&packet));
    for (flow, &packets) in flows.iter_mut().zip(&truth).skip(1) {
        flow.packets = Some(packets);
    }
    let sizes = sizes(lds.config(), &lds.counts(), &flows);
    assert!(
        sizes
            .iter()
            .skip(1)
            .zip(&truth[1..])
            .all(|(size, &truth)| { size.known && size.error == 0.0 && size.load == truth as f64 })
    );
    // All others being known, one equation is left for the one that is not.
    assert!((sizes[0].load - truth[0] as f64).abs() < 0.5, "{:?} {}", sizes[0], truth[0]);
}
