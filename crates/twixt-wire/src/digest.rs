//! Keyed hashes that stand for packets and flows.
//!
//! A digest is the hash of one record of fixed size and documented layout ([`Record`]), computed
//! in one straight line, so that a kernel program or another tool can compute the same. Nothing
//! here knows what digests are used for.

mod flow;
mod key;
mod mask;
mod record;
mod usual;
mod xxh3;

use siphasher::sip::SipHasher13;
use twixt_model::{
    DigestHash, DigestIdentity, DigestProfile, FlowHash, FlowKey, GroupId, GroupPrefixes,
    PacketDigest, mix,
};

use crate::packet::Packet;
use crate::window::Window;
use flow::FlowEnds;
pub use key::HashKey;
use mask::Mask;
use record::Words;
pub use record::{Available, PAYLOAD_BYTES_MAX, RECORD_BYTES, Record, available};
use usual::UsualMasks;
use xxh3::Secret;

/// Keeps hashes of flows apart from those of packets under the same key.
const FLOW_DOMAIN: u64 = 0x666c_6f77_6b65_7931;
/// Keeps hashes of prefixes apart from both.
const GROUP_DOMAIN: u64 = 0x6772_6f75_7073_5f31;
/// Keeps hashes of addresses apart from all of them.
const ADDRESS_DOMAIN: u64 = 0x6164_6472_6573_7331;

/// Computes packet digests and flow hashes of one identity.
#[derive(Clone, Debug)]
pub struct Digester {
    identity: DigestIdentity,
    key: HashKey,
    mask: Mask,
    usual: UsualMasks,
    secrets: Secrets,
}

/// What XXH3 mixes with, by what is hashed.
#[derive(Clone, Debug)]
struct Secrets {
    packets: Secret,
    flows: Secret,
    groups: Secret,
}

impl Digester {
    /// A digester whose digests cover `payload_bytes` of payload: at most
    /// [`PAYLOAD_BYTES_MAX`], and none under [`DigestProfile::Headers`]. The identity says how
    /// many it became.
    #[must_use]
    pub fn new(profile: DigestProfile, hash: DigestHash, payload_bytes: u8, key: HashKey) -> Self {
        let payload_bytes = match profile {
            DigestProfile::Headers => 0,
            DigestProfile::Default | DigestProfile::Nat => payload_bytes.min(PAYLOAD_BYTES_MAX),
        };
        let (key_id, groups) = (key.id(), GroupPrefixes::default());
        let identity = DigestIdentity { profile, hash, payload_bytes, key_id, groups };
        let secret = |domain| Secret::new(key.seed() ^ domain);
        let (packets, flows, groups) = (secret(0), secret(FLOW_DOMAIN), secret(GROUP_DOMAIN));
        let secrets = Secrets { packets, flows, groups };
        let mask = Mask::new(profile, payload_bytes);
        Self { identity, key, usual: UsualMasks::new(&mask), mask, secrets }
    }

    /// The same, with flows grouped by prefixes of other lengths.
    #[must_use]
    pub const fn with_groups(mut self, groups: GroupPrefixes) -> Self {
        self.identity.groups = groups;
        self
    }

    /// What must be equal at two points for their digests to be comparable.
    #[must_use]
    pub const fn identity(&self) -> DigestIdentity {
        self.identity
    }

    /// Stands for the packet.
    #[must_use]
    pub fn digest(&self, packet: &Packet, frame: &[u8]) -> PacketDigest {
        self.words_digest(&self.general_words(packet, frame))
    }

    /// The same, with a window over the frame at hand: faster.
    #[inline(always)]
    pub(crate) fn digest_in(
        &self,
        packet: &Packet,
        frame: &[u8],
        window: Window<'_>,
    ) -> PacketDigest {
        match self.usual.words(packet, window) {
            Some(words) => self.words_digest(&words),
            // A copy, so that the packet itself may stay in registers.
            None => self.digest_general(*packet, frame),
        }
    }

    #[cold]
    fn digest_general(&self, packet: Packet, frame: &[u8]) -> PacketDigest {
        self.digest(&packet, frame)
    }

    #[inline(always)]
    fn words_digest(&self, words: &Words) -> PacketDigest {
        PacketDigest(match self.identity.hash {
            DigestHash::Xxh3 => self.secrets.packets.hash_96(words),
            DigestHash::Sip13 => self.sip::<12, RECORD_BYTES>(*words, 0),
        })
    }

    /// The bytes that the digest hashes.
    #[must_use]
    #[inline]
    pub fn record(&self, packet: &Packet, frame: &[u8]) -> Record {
        record::bytes(self.general_words(packet, frame))
    }

    /// Stands for a directed flow.
    #[must_use]
    pub fn flow_hash(&self, key: &FlowKey) -> FlowHash {
        self.ends_hash(&FlowEnds::of_key(key))
    }

    /// Stands for the directed flow of a packet: equal to that of its flow key, but faster.
    #[must_use]
    #[inline(always)]
    pub fn packet_flow_hash(&self, packet: &Packet) -> FlowHash {
        self.ends_hash(&FlowEnds::of_packet(packet))
    }

    /// Stands for the prefixes of a flow's addresses. 0 for all flows under
    /// [`DigestProfile::Nat`], where addresses differ between points.
    #[must_use]
    pub fn group(&self, key: &FlowKey) -> GroupId {
        self.ends_group(&FlowEnds::of_key(key))
    }

    /// The same of a packet: equal to that of its flow key, but faster.
    #[must_use]
    #[inline]
    pub fn packet_group(&self, packet: &Packet) -> GroupId {
        self.ends_group(&FlowEnds::of_packet(packet))
    }

    /// Stand for the source and for the destination address of a packet. Cheap, and no secret
    /// against an adversary, whatever the hash.
    #[must_use]
    #[inline]
    pub fn address_hashes(&self, packet: &Packet) -> (u64, u64) {
        let seed = self.key.seed() ^ ADDRESS_DOMAIN ^ u64::from(packet.version);
        (address_hash(packet.source, seed), address_hash(packet.destination, seed))
    }

    fn general_words(&self, packet: &Packet, frame: &[u8]) -> Words {
        self.mask.applied(packet, record::words(packet, frame))
    }

    #[inline(always)]
    fn ends_hash(&self, ends: &FlowEnds) -> FlowHash {
        FlowHash(self.hash_40(ends.words(), &self.secrets.flows, FLOW_DOMAIN))
    }

    #[inline(always)]
    fn ends_group(&self, ends: &FlowEnds) -> GroupId {
        if self.identity.profile == DigestProfile::Nat {
            return GroupId::default();
        }
        let prefixes = ends.prefixes(self.identity.groups);
        GroupId(self.hash_40(prefixes, &self.secrets.groups, GROUP_DOMAIN) as u16)
    }

    #[inline(always)]
    fn hash_40(&self, words: [u64; 5], secret: &Secret, domain: u64) -> u64 {
        match self.identity.hash {
            DigestHash::Xxh3 => secret.hash_40(&words),
            DigestHash::Sip13 => self.sip::<5, 40>(words, domain),
        }
    }

    #[inline(never)]
    fn sip<const WORDS: usize, const BYTES: usize>(&self, words: [u64; WORDS], domain: u64) -> u64 {
        let bytes: [u8; BYTES] = record::bytes(words);
        SipHasher13::new_with_key(&self.key.for_domain(domain)).hash(&bytes)
    }
}

#[inline]
fn address_hash(address: u128, seed: u64) -> u64 {
    mix(mix(seed ^ address as u64) ^ (address >> 64) as u64)
}
