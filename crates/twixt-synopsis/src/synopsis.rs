//! The traits every algorithm implements.

use std::fmt::Debug;
use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;
pub use twixt_model::Needs;
use twixt_model::{Detail, Estimate, Observation};

use crate::codec::{DecodeError, Reader, Writer};
use crate::question::{KnownFlow, Question};
use crate::spill::SpillPlace;
use crate::totals::Totals;

/// Memory for each encoded byte of an algorithm that encodes what it keeps one by one: a record of
/// 28 bytes becomes 40, in a list that grows by doubling, whose old half is there until the new one
/// is filled (at most three times the records); tables and trees have up to as many empty places.
pub(crate) const DECODED_PER_BYTE: u64 = 6;

/// A summary, of bounded size, of what one observation point saw in one epoch.
///
/// Laws that hold for every implementation; `tests/it/laws.rs` checks them for the whole registry:
///
/// 1. `merge` is commutative and associative, and merging an empty synopsis changes nothing.
/// 2. Splitting a stream, updating two synopses and merging them equals updating one.
/// 3. `decode` reads back what `encode` wrote, and never panics, whatever the bytes.
/// 4. Equal configuration and equal observations give equal bytes.
///
/// An algorithm that draws random numbers, or evicts by arrival order, cannot keep laws 1 and 2
/// exactly; it says so with [`SPLIT_MERGE`](Self::SPLIT_MERGE).
pub trait Synopsis: Clone + PartialEq + Debug + Send + Sized + 'static {
    /// Name in configuration, metrics and queries, such as `"lda"`.
    const NAME: &'static str;
    /// Identifies the algorithm in encoded form. Never reused.
    const TAG: u16;
    /// What it is, in one line for command-line help and the documentation's index.
    const SUMMARY: &'static str;
    /// What of a packet it reads; nothing else is computed for it.
    const NEEDS: Needs;
    /// The settings a user may give, by their names in [`Config`](Self::Config).
    const OPTIONS: &'static [ConfigOption];
    /// The page of the documentation that describes it, without `.md`.
    const PAGE: &'static str = Self::NAME;
    /// Version of the bytes that [`encode`](Self::encode) writes; it reads all up to this one.
    const VERSION: u8 = 1;
    /// Whether laws 1 and 2 hold to the bit.
    const SPLIT_MERGE: SplitMerge = SplitMerge::Exact;

    /// Sizes and sampling rates. Both ends of a segment use equal ones. Written and read as TOML
    /// with unknown keys refused; a value that exists is valid.
    type Config: Clone + PartialEq + Debug + Default + Send + Serialize + DeserializeOwned;

    /// The best configuration within `memory_bytes` of state; `None` if the algorithm is not of
    /// bounded size, or cannot work with so little.
    fn sized(memory_bytes: u64) -> Option<Self::Config>;

    /// An empty synopsis.
    fn new(config: &Self::Config) -> Self;

    /// An empty synopsis with the same configuration, and the same place for what exceeds memory.
    fn emptied(&self) -> Self {
        Self::new(self.config())
    }

    /// What it was made with.
    fn config(&self) -> &Self::Config;

    /// Has state that grows with packets go to a place beside memory once it is large. Most have no such
    /// state.
    fn spill_to(&mut self, _place: &Arc<dyn SpillPlace>) {}

    /// What of a packet it reads with its settings; no less than [`NEEDS`](Self::NEEDS).
    fn needs(&self) -> Needs {
        Self::NEEDS
    }

    /// Of which packets it reads details, if it reads any. If a packet's digest decides, the flow
    /// hashes of others are not read either.
    fn details_of(&self) -> DetailsOf {
        DetailsOf::Every
    }

    /// Which flows it can name by itself.
    fn flow_names(&self) -> FlowNames {
        if Self::NEEDS.detail { FlowNames::All } else { FlowNames::None }
    }

    /// Whether it reads when packets were sent, where that is known ([`Detail::sent`]).
    fn reads_stamps(&self) -> bool {
        false
    }

    /// Whether it reads more of details ([`Detail`]) than flow keys and when packets were sent.
    fn reads_headers(&self) -> bool {
        Self::NEEDS.detail
    }

    /// Adds one packet. Never fails; never allocates beyond what `new` reserved (when full, it
    /// counts). Unbounded referees (`exact`) say so in their documentation.
    fn update(&mut self, observation: &Observation);

    /// As [`update`](Self::update) of each, for algorithms that can make more of many at once.
    #[inline]
    fn update_all(&mut self, observations: &[Observation]) {
        for observation in observations {
            self.update(observation);
        }
    }

    /// As [`update`](Self::update), for algorithms whose [`NEEDS`](Self::NEEDS) ask for details.
    fn update_detailed(&mut self, observation: &Observation, _detail: &Detail) {
        self.update(observation);
    }

    /// Adds all that `other` has seen. Callers have checked that the configurations are equal.
    fn merge(&mut self, other: &Self);

    /// All packets and bytes it was given, whether or not it sampled them.
    fn totals(&self) -> Totals;

    /// Bytes of state that the synopsis keeps.
    fn state_bytes(&self) -> u64;

    /// Appends configuration and state. Tag, version and checksum are the envelope's business.
    fn encode(&self, out: &mut Writer);

    /// Memory that [`decode`](Self::decode) takes at most, computed from the configuration and the
    /// number of bytes, before anything is decoded: bytes come from others, and an empty cell may
    /// take a single bit of them.
    ///
    /// # Errors
    /// When there is no configuration.
    fn decoded_bytes(input: &mut Reader<'_>) -> Result<u64, DecodeError> {
        Ok(DECODED_PER_BYTE * input.left() as u64)
    }

    /// Reads back what [`encode`](Self::encode) wrote.
    ///
    /// # Errors
    /// When the bytes are not such a synopsis.
    fn decode(input: &mut Reader<'_>) -> Result<Self, DecodeError>;

    /// The same of any version, or of no more than a question needs. An algorithm that has but one
    /// version and reads all of it need not know.
    ///
    /// # Errors
    /// As [`decode`](Self::decode).
    fn decode_for(input: &mut Reader<'_>, _reading: Reading<'_>) -> Result<Self, DecodeError> {
        Self::decode(input)
    }
}

/// What bytes are read for.
#[derive(Clone, Copy, Debug)]
pub struct Reading<'a> {
    /// Version of the bytes, at most that of the algorithm.
    pub version: u8,
    /// The flows that will be asked about, and nothing else will be; `None` where that is not known.
    pub flows: Option<&'a [KnownFlow]>,
}

/// Learns by comparing two points.
pub trait TwoPoint: Synopsis {
    /// Names of its estimators, default first; empty if there is but one way.
    const ESTIMATORS: &'static [&'static str];
    /// Whether it can distinguish flows, and so answer by flow and by prefix.
    const PER_FLOW: bool;
    /// Whether each packet of upstream is looked for downstream, so that loss is known packet by
    /// packet, and estimates can be cut by when packets left ([`Question::cut`]). Else packets are
    /// counted at both points, and the counts compared.
    const MATCHES_PACKETS: bool = false;

    /// Takes one packet out again: the exact inverse of `update` (law 5). Pairing moves packets
    /// that were in flight at an epoch's boundary with it.
    fn remove(&mut self, observation: &Observation);

    /// This synopsis as it would be with a smaller configuration, if that is known: the exact
    /// equal of one that was updated with that configuration (law 6). Points of different memory
    /// are compared with it.
    fn fold_to(&self, _config: &Self::Config) -> Option<Self> {
        None
    }

    /// The combined result of the two points. Callers have checked that the configurations are
    /// equal.
    fn estimate(pair: Pair<'_, Self>, question: &Question<'_>) -> Vec<Estimate>;
}

/// Learns from one point alone: round trips, reordering, heavy flows.
pub trait OnePoint: Synopsis {
    /// What it concludes: one of the model's estimates for its purpose.
    type Conclusion;

    /// What the point tells.
    fn conclude(&self, question: &Question<'_>) -> Vec<Self::Conclusion>;

    /// Ends an epoch: what was seen so far, to be sealed. What goes on across the boundary, such
    /// as requests that wait for their response, stays here.
    #[must_use]
    fn cut(&mut self) -> Self {
        let fresh = Self::new(self.config());
        std::mem::replace(self, fresh)
    }
}

/// The two ends of a segment in one epoch.
#[derive(Debug)]
pub struct Pair<'a, S: ?Sized> {
    /// Passed first.
    pub upstream: &'a S,
    /// Passed second.
    pub downstream: &'a S,
}

impl<S: ?Sized> Clone for Pair<'_, S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S: ?Sized> Copy for Pair<'_, S> {}

/// Of which packets details are read. Those of others need not be looked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DetailsOf {
    /// Every packet.
    #[default]
    Every,
    /// Packets chosen by their digest.
    Packets(HashShare),
    /// Packets of flows that are chosen by their hash.
    Flows(HashShare),
}

/// A share of all hashes: those whose upper half, derived with `salt`, is below a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HashShare {
    /// Keeps the choice apart from what else is derived from the hash.
    pub salt: u64,
    /// 2^32 is all.
    pub below: u64,
}

impl DetailsOf {
    /// Whether the digest alone decides, so that a flow hash need not be computed before.
    #[must_use]
    #[inline]
    pub const fn is_by_digest(self) -> bool {
        matches!(self, Self::Packets(_))
    }

    /// Whether the details of this packet are read.
    #[must_use]
    #[inline]
    pub const fn includes(self, observation: &Observation) -> bool {
        match self {
            Self::Every => true,
            Self::Packets(HashShare { salt, below }) => {
                observation.digest.derive(salt) >> 32 < below
            }
            Self::Flows(HashShare { salt, below }) => observation.flow.derive(salt) >> 32 < below,
        }
    }
}

/// Which flows a synopsis can name by itself. For the others, the caller must name the flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlowNames {
    /// None: it keeps no flow keys.
    None,
    /// The large ones, from a table kept beside it.
    Large,
    /// All that it saw.
    All,
}

/// Whether splitting a stream and merging the parts gives the same bytes as the whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SplitMerge {
    /// To the bit.
    Exact,
    /// In expectation only: the number of shards is part of the configuration.
    Expected,
}

/// A setting of an algorithm that users may give on the command line or in configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConfigOption {
    /// The key in TOML; on the command line with `-` for `_`.
    pub name: &'static str,
    /// How its text is read.
    pub kind: OptionKind,
    /// What it does, in one line.
    pub help: &'static str,
}

/// How the text of a [`ConfigOption`] is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OptionKind {
    /// A whole number.
    Integer,
    /// A number.
    Number,
    /// Numbers with commas between them.
    Numbers,
    /// A duration with its unit, held in nanoseconds.
    Duration,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// Text that the configuration itself reads; the value's name in help.
    Text(&'static str),
    /// A file of rules that make classes, each with a weight: whole numbers by class.
    Weights,
}

pub(crate) const WEIGHTS_OPTION: ConfigOption = ConfigOption {
    name: "weights",
    kind: OptionKind::Weights,
    help: "weights of packets, one line FILTER: WEIGHT each; the first match wins",
};
