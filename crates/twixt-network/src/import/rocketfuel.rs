//! Rocketfuel's weights: a line for each direction of each link.
//!
//! Spring, Mahajan, Wetherall and Anderson, *Measuring ISP topologies with Rocketfuel*, ToN 2004.

use super::{ImportError, ProblemPlace, beginning, weight};
use crate::topology::{Topology, TopologyBuilder};

pub(super) fn parse(text: &str) -> Result<Topology, ImportError> {
    let mut builder = TopologyBuilder::default();
    for (index, line) in text.lines().enumerate() {
        let place = ProblemPlace::Line(index + 1);
        let words: Vec<&str> = line.split_whitespace().take(4).collect();
        match words.as_slice() {
            [] => {}
            [first, ..] if first.starts_with('#') => {}
            &[from, to, cost] => {
                let cost = weight(place, cost)?;
                let from = builder.router_or_new(from).map_err(ImportError::at(place))?;
                let to = builder.router_or_new(to).map_err(ImportError::at(place))?;
                builder.link(from, to, Some(cost)).map_err(ImportError::at(place))?;
            }
            _ => {
                let shown = beginning(line);
                let problem = format!("{shown:?} is not source, destination and weight");
                return Err(ImportError::syntax(place, problem));
            }
        }
    }
    builder.build().map_err(ImportError::at(ProblemPlace::File))
}
