//! The referee: every request waits for its response, and every time is kept.
//!
//! Memory grows with requests (32 bytes each), flows (24 bytes a direction) and round trips (8
//! bytes each): what the bounded algorithms are judged by, and the right choice for captures that
//! fit into memory.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use twixt_model::{Prehashed, RoundTripKind, Timestamp};

use super::config::{BY, KIND, Settings, Watch};
use super::entry::{Answer, Asked, Entry, Request};
use super::event::is_reused;
use super::watcher::{Pace, Store, Watcher};
use crate::codec::{DecodeError, Reader, Writer};
use crate::synopsis::ConfigOption;

/// Round trips by the referee. Unbounded, and says so.
pub type ExactRoundTrips = Watcher<EveryRequest>;

/// What the referee looks at.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Settings", into = "Settings")]
pub struct ExactRoundTripsConfig {
    watch: Watch,
}

/// All requests, by number.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EveryRequest {
    waiting: HashMap<u64, Entry, Prehashed>,
}

impl ExactRoundTripsConfig {
    /// To watch these kinds and groups; the sizes in `watch` do not matter.
    #[must_use]
    pub fn new(watch: Watch) -> Self {
        Self { watch: Watch { kinds: watch.kinds, by: watch.by, ..Watch::default() } }
    }
}

impl TryFrom<Settings> for ExactRoundTripsConfig {
    type Error = String;

    fn try_from(settings: Settings) -> Result<Self, String> {
        Ok(Self::new(settings.only(EveryRequest::OPTIONS)?.watch()?))
    }
}

impl From<ExactRoundTripsConfig> for Settings {
    fn from(config: ExactRoundTripsConfig) -> Self {
        config.watch.bare_settings()
    }
}

impl Store for EveryRequest {
    const NAME: &'static str = "exact";
    const TAG: u16 = 16;
    const SUMMARY: &'static str =
        "keeps every request until its response; memory grows with requests";
    const OPTIONS: &'static [ConfigOption] = &[KIND, BY];
    const BOUNDED: bool = false;
    type Config = ExactRoundTripsConfig;

    fn new(_: &ExactRoundTripsConfig) -> Self {
        Self::default()
    }

    fn sized(_: u64) -> Option<ExactRoundTripsConfig> {
        None
    }

    fn watch(config: &ExactRoundTripsConfig) -> &Watch {
        &config.watch
    }

    fn encode_config(config: &ExactRoundTripsConfig, out: &mut Writer) {
        config.watch.encode(out);
    }

    fn decode_config(
        input: &mut Reader<'_>,
        version: u8,
    ) -> Result<ExactRoundTripsConfig, DecodeError> {
        Watch::decode(input, version).map(ExactRoundTripsConfig::new)
    }

    fn ask(&mut self, request: &Request) -> Asked {
        let mut asked = None;
        self.waiting
            .entry(request.id)
            .and_modify(|entry| asked = Some(entry.meet(request, 0, 0)))
            .or_insert_with(|| Entry::new(request, 0, 0));
        asked.unwrap_or(Asked::Kept)
    }

    fn answer(&mut self, id: u64, _: Timestamp) -> Option<Answer> {
        let entry = self.waiting.get_mut(&id)?;
        let answer = entry.answer(1.0);
        // A later request under that number is treated as new; ranges of sequence numbers
        // tell by themselves what was sent again.
        if entry.kind().is_some_and(|kind| is_reused(kind) || kind == RoundTripKind::TcpSequence) {
            self.waiting.remove(&id);
        }
        answer
    }

    fn find(&mut self, id: u64) -> Option<&mut Entry> {
        self.waiting.get_mut(&id)
    }

    fn horizon(_: &ExactRoundTripsConfig, _: &Pace, _: u64) -> Option<i64> {
        None
    }

    fn state_bytes(&self) -> u64 {
        (self.waiting.capacity() * size_of::<(u64, Entry)>()) as u64
    }
}
