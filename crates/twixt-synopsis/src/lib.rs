//! Small summaries of what an observation point saw, and what two of them tell about the
//! packets that went from one point to the other.
//!
//! One algorithm is one file here, and one line in [`ALGORITHMS`]; configuration, command-line
//! help, decoding, the law tests, the accuracy table and the benches walk that list.
//!
//! A synopsis is updated with [`Observation`](twixt_model::Observation)s and knows nothing of
//! packets, files or clocks:
//!
//! ```
//! use twixt_model::{Observation, PacketDigest, Span, Timestamp};
//! use twixt_synopsis::{Lda, LdaConfig, Pair, Question, Synopsis, TwoPoint};
//!
//! let config = LdaConfig::default();
//! let (mut upstream, mut downstream) = (Lda::new(&config), Lda::new(&config));
//! for packet in 0..1000 {
//!     let seen = |time_ns| Observation {
//!         time: Timestamp::from_nanos(time_ns),
//!         digest: PacketDigest(packet),
//!         length: 100,
//!         ..Observation::default()
//!     };
//!     upstream.update(&seen(packet as i64 * 1_000));
//!     downstream.update(&seen(packet as i64 * 1_000 + 250));
//! }
//! let pair = Pair { upstream: &upstream, downstream: &downstream };
//! let question = Question::about(Span::at(Timestamp::from_nanos(0)));
//! let estimate = &Lda::estimate(pair, &question)[0];
//! assert_eq!(estimate.delay.unwrap().mean().as_nanos(), 250);
//! assert_eq!(estimate.evidence.lost, Some(0));
//! ```

mod any;
mod cells;
pub mod cnf;
mod codec;
mod colate;
mod conversation;
mod exact;
mod flow_key;
mod flow_table;
mod heartbeats;
mod heavy;
mod independent;
mod interval;
mod joint;
mod lda;
mod lds;
mod pile;
mod question;
mod registry;
mod reorder;
pub mod rtt;
mod sample;
mod sds;
mod sketch;
mod spill;
mod strays;
mod sums;
mod synopsis;
mod tail;
mod totals;

pub use any::{AnySynopsis, Mismatch, decode, decode_about, decoded_bytes, encode, encode_into};
pub use cnf::{Cnf, CnfConfig, FlowCache, FlowCacheConfig, FlowCacheCounts};
pub use codec::{DecodeError, Reader, Writer};
pub use colate::{
    Colate, ColateConfig, ColateGoal, ColatePlan, ColateTraffic, PlannedEstimator, PrintedColate,
    Reliability, Stored, binomial_interval, noise_variance, two_sided_quantile,
};
pub use exact::{Exact, ExactConfig};
pub use heartbeats::{Heartbeats, least_apart};
pub use heavy::{
    EntriesConfig, ExactTable, FlowTable, HashPipeTable, Heavy, PrecisionTable, RapTable,
    RapWayTable, SpaceSavingTable, WaysConfig,
};
pub use lda::{Lda, LdaConfig};
pub use lds::{
    Lds, LdsConfig, LdsNeed, Pareto, RowPlan, expected_error, expected_survival,
    sampling_for_losses,
};
pub use question::{By, KnownFlow, Listing, Question};
pub use registry::{
    ALGORITHMS, Algorithm, Conclude, ConfigError, CutOnePoint, Decode, EstimateTwoPoint, Estimator,
    PRINTED_ESTIMATOR, Purpose, TakeSamples, by_tag, find,
};
pub use reorder::{Definition, ReorderExact, ReorderHybrid, ReorderSampled};
pub use sample::{Sample, SampleConfig};
pub use sds::{Sds, SdsConfig};
pub use spill::{SpillFile, SpillPlace};
pub use strays::{OneSided, StrayCause, Unmatched};
pub use synopsis::{
    ConfigOption, DetailsOf, FlowNames, HashShare, Needs, OnePoint, OptionKind, Pair, Reading,
    SplitMerge, Synopsis, TwoPoint,
};
pub use totals::Totals;
