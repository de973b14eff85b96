//! What was sealed, what the collector acknowledged, and whether it is stored: the check at the heart of
//! the simulation.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;

use twixt_agent::stepped::WrittenEpochs;
use twixt_delivery::{Receipt, read_upload};
use twixt_measure::{Sealed, Stream};
use twixt_store::{Log, Query};

/// Bodies of this story are smaller when unpacked.
pub(crate) const BODY_BYTES_MAX: usize = 64 << 20;

/// An epoch of a point, by what tells it from all others.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct EpochKey {
    pub(crate) point: String,
    pub(crate) stream: String,
    pub(crate) epoch: i64,
}

/// What is known of the epochs of a story.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    sealed: BTreeMap<EpochKey, SealedEpoch>,
    /// By their bytes: what is compared again and again need not be decoded each time.
    keys: HashMap<Vec<u8>, EpochKey>,
    /// What each request brought.
    requests: BTreeMap<u64, Vec<EpochKey>>,
    acknowledged: BTreeSet<EpochKey>,
    /// Refused for good, and why.
    refused: BTreeMap<EpochKey, String>,
}

#[derive(Debug)]
struct SealedEpoch {
    agent: usize,
    bytes: Vec<u8>,
    is_durable: bool,
}

impl fmt::Display for EpochKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "epoch {} of {} ({})", self.epoch, self.point, self.stream)
    }
}

impl Ledger {
    /// An agent wrote epochs to its spool.
    pub(crate) fn written(&mut self, agent: usize, written: WrittenEpochs) -> Result<(), String> {
        for bytes in written.epochs {
            let key = key_of(&bytes)?;
            self.keys.insert(bytes.clone(), key.clone());
            let sealed = SealedEpoch { agent, bytes, is_durable: written.is_durable };
            if let Some(before) = self.sealed.insert(key.clone(), sealed) {
                return Err(format!("{key} was sealed twice: {} bytes before", before.bytes.len()));
            }
        }
        Ok(())
    }

    /// An agent posts a body; how many epochs it has.
    pub(crate) fn posted(&mut self, request: u64, body: &[u8]) -> Result<usize, String> {
        let body =
            zstd::bulk::decompress(body, BODY_BYTES_MAX).map_err(|error| error.to_string())?;
        let records = read_upload(&body).map_err(|error| error.to_string())?;
        let keys =
            records.iter().map(|record| self.known(record)).collect::<Result<Vec<_>, _>>()?;
        let epochs = keys.len();
        self.requests.insert(request, keys);
        Ok(epochs)
    }

    /// The key of an epoch that was sealed as it is.
    fn known(&self, bytes: &[u8]) -> Result<EpochKey, String> {
        if let Some(key) = self.keys.get(bytes) {
            return Ok(key.clone());
        }
        let key = key_of(bytes)?;
        match self.sealed.contains_key(&key) {
            true => Err(format!("{key} is not what was sealed")),
            false => Err(format!("{key} was never sealed")),
        }
    }

    /// The collector answers a request with a receipt: from now on what it acknowledges must be stored.
    pub(crate) fn answered(&mut self, request: u64, receipt: &Receipt) -> Result<(), String> {
        let keys = self.requests.get(&request).ok_or("a receipt for no request")?;
        if receipt.epochs() != keys.len() as u64 {
            return Err(format!("{} epochs were sent, the receipt is {receipt:?}", keys.len()));
        }
        let refused: BTreeMap<usize, _> =
            receipt.refused.iter().filter_map(|refused| Some((refused.index?, refused))).collect();
        for (index, key) in keys.iter().enumerate() {
            match refused.get(&index) {
                None => {
                    self.acknowledged.insert(key.clone());
                }
                Some(refused) if refused.is_final() => {
                    self.refused.insert(key.clone(), refused.reason.clone());
                }
                Some(_) => {}
            }
        }
        Ok(())
    }

    /// Every acknowledged epoch is stored exactly once, and all that is stored is what was sealed.
    /// A changed bit on the collector's disk may cost one epoch.
    pub(crate) fn check_stored(&self, log: &Log, changed_bits: usize) -> Result<Stored, String> {
        let mut stored: Stored = BTreeMap::new();
        if !log.has_folder().map_err(|error| error.to_string())? {
            return self.check_none_missing(&stored, changed_bits).map(|()| stored);
        }
        let mut scan = log.scan(Query::all()).map_err(|error| error.to_string())?;
        for found in scan.by_ref() {
            let key = self.known(&found.payload).map_err(|problem| format!("stored: {problem}"))?;
            if stored.insert(key.clone(), found.payload).is_some() {
                return Err(format!("{key} is stored twice"));
            }
        }
        scan.finish().map_err(|error| format!("the log cannot be read: {error}"))?;
        self.check_none_missing(&stored, changed_bits).map(|()| stored)
    }

    fn check_none_missing(&self, stored: &Stored, changed_bits: usize) -> Result<(), String> {
        let missing: Vec<_> =
            self.acknowledged.iter().filter(|key| !stored.contains_key(*key)).collect();
        match missing.first() {
            Some(key) if missing.len() > changed_bits => {
                Err(format!("{key} was acknowledged and is not stored ({} are not)", missing.len()))
            }
            _ => Ok(()),
        }
    }

    /// At the end every epoch that was durable at an agent is stored, was refused for good, or is among
    /// those that may be lost.
    pub(crate) fn check_delivered(
        &self,
        agent: usize,
        stored: &Stored,
        lost_max: u64,
    ) -> Result<(), String> {
        let is_missing =
            |key: &EpochKey| !stored.contains_key(key) && !self.refused.contains_key(key);
        let missing: Vec<_> = self
            .sealed
            .iter()
            .filter(|(key, sealed)| sealed.agent == agent && sealed.is_durable && is_missing(key))
            .filter(|(key, _)| !self.acknowledged.contains(key))
            .collect();
        match missing.first() {
            Some((key, _)) if missing.len() as u64 > lost_max => Err(format!(
                "{key} was durable in the spool of agent {agent} and was never stored ({} were not; \
                 {lost_max} may be lost)",
                missing.len()
            )),
            _ => Ok(()),
        }
    }

    /// Points and epochs that are stored, though no request that brought them was ever acknowledged:
    /// these need not be estimated before the collector's next start.
    pub(crate) fn unacknowledged(&self, stored: &Stored) -> BTreeSet<(String, i64)> {
        let unknown = stored.keys().filter(|key| !self.acknowledged.contains(*key));
        unknown.map(|key| (key.point.clone(), key.epoch)).collect()
    }

    /// Epochs that were refused for good, and why.
    pub(crate) const fn refused(&self) -> &BTreeMap<EpochKey, String> {
        &self.refused
    }
}

/// The payloads in the collector's log.
pub(crate) type Stored = BTreeMap<EpochKey, Vec<u8>>;

fn key_of(bytes: &[u8]) -> Result<EpochKey, String> {
    let sealed = Sealed::from_bytes(bytes).map_err(|error| format!("not an epoch: {error}"))?;
    let stream = Stream::of(&sealed).to_string();
    Ok(EpochKey { point: sealed.point.0, stream, epoch: sealed.epoch.0 })
}
