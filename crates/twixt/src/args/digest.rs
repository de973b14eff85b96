//! How packets are recognised at both points.

use clap::Args;
use twixt_model::{DigestHash, DigestProfile};
use twixt_wire::{Digester, HashKey, PAYLOAD_BYTES_MAX};

/// How packets are recognised at both points.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Recognising packets")]
pub(crate) struct DigestArgs {
    /// Fields that identify a packet: default, headers (cut captures) or nat (translated addresses)
    #[arg(long, value_name = "PROFILE", default_value_t)]
    digest: DigestProfile,
    /// Hash function: xxh3, or siphash where senders may be hostile
    #[arg(long, value_name = "NAME", default_value_t)]
    hash: DigestHash,
    /// Secret that both points share; without it digests are the same for everyone
    #[arg(
        long,
        value_name = "TEXT",
        env = "TWIXT_KEY",
        hide_env_values = true,
        default_value = ""
    )]
    key: String,
    /// Payload bytes that identify a packet [default: as many as both captures have, up to 24]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(..=i64::from(PAYLOAD_BYTES_MAX)))]
    payload_bytes: Option<u8>,
}

impl DigestArgs {
    /// Payload bytes to begin with.
    pub(crate) fn payload_bytes(&self) -> u8 {
        match self.digest {
            DigestProfile::Headers => 0,
            _ => self.payload_bytes.unwrap_or(PAYLOAD_BYTES_MAX),
        }
    }

    /// Computes digests over so many payload bytes.
    pub(crate) fn digester(&self, payload_bytes: u8) -> Digester {
        Digester::new(self.digest, self.hash, payload_bytes, HashKey::from_passphrase(&self.key))
    }
}
