//! Hostile traffic between two points, with its own truth, and a judge of what twixt answers for it.
//!
//! Shares no code with `twixt-sim` or the estimators: of `twixt-synopsis` it reads the list of algorithms
//! and nothing else. Random numbers, models of traffic, frames and files are its own, so that a mistake there
//! cannot hide one here.
//!
//! A [`GridCell`] says what traffic is like; [`covering_design`] chooses cells; [`Attack`] writes the two
//! captures of a cell and a seed, asks the program, and counts the claims that hold ([`AnswerOutcome`]);
//! [`CellVerdict`] says what the seeds of a cell amount to.

mod attack;
mod campaign;
mod capture_file;
mod design;
mod frame;
mod gate;
mod grid;
mod known;
mod outcome;
mod product;
mod question;
mod random;
mod report;
mod traffic;
mod truth;
mod verdict;

pub use attack::{Attack, write_cell};
pub use campaign::{Campaign, CampaignOutcomes};
pub use design::{DESIGN_SEED, MEETINGS, covering_design};
pub use gate::{GATE_SEEDS, gate, gate_cells};
pub use grid::{FACTORS, Factor, GridCell};
pub use known::{KNOWN_RED, KnownRed, known_red};
pub use outcome::{AnswerOutcome, HeldClaims, RivalErrors};
pub use question::{DelayQuestion, delay_questions};
pub use report::{AttackReport, RedClass};
pub use verdict::{COVERAGE_MIN, CellVerdict, Colour, FALSE_ALARM, FaultKind, RedFault};
