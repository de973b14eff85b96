//! How packets are recognised at both points.

use crate::settings::Settings;
use clap::Args;
use twixt_model::{DigestHash, DigestProfile};
use twixt_wire::{Digester, HashKey, PAYLOAD_BYTES_MAX};

/// How packets are recognised at both points.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Recognising packets")]
pub(crate) struct DigestArgs {
    /// Fields that identify a packet: default, headers (cut captures) or nat (translated addresses)
    #[arg(long, value_name = "PROFILE")]
    digest: Option<DigestProfile>,
    /// Hash function: xxh3, or siphash where senders may be hostile
    #[arg(long, value_name = "NAME")]
    hash: Option<DigestHash>,
    /// Secret that both points share; without it digests are the same for everyone
    #[arg(long, value_name = "TEXT", env = "TWIXT_KEY", hide_env_values = true)]
    key: Option<String>,
    /// Payload bytes that identify a packet [default: as many as both captures have, up to 24]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(..=i64::from(PAYLOAD_BYTES_MAX)))]
    payload_bytes: Option<u8>,
}

/// Which parts of a packet identify it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Recognition {
    pub(crate) profile: DigestProfile,
    pub(crate) payload_bytes: u8,
}

impl DigestArgs {
    /// By what to recognise packets, if the captures have all of it.
    pub(crate) fn recognition(&self) -> Recognition {
        let profile = self.digest.unwrap_or_default();
        let payload_bytes = match profile {
            DigestProfile::Headers => 0,
            _ => self.payload_bytes.unwrap_or(PAYLOAD_BYTES_MAX),
        };
        Recognition { profile, payload_bytes }
    }

    /// Computes digests that recognise packets so.
    pub(crate) fn digester(&self, recognition: Recognition) -> Digester {
        let Recognition { profile, payload_bytes } = recognition;
        let key = HashKey::from_passphrase(self.key.as_deref().unwrap_or_default());
        Digester::new(profile, self.hash.unwrap_or_default(), payload_bytes, key)
    }

    /// Takes from the configuration file what the command line left out.
    pub(crate) fn with(self, settings: &Settings) -> Self {
        let written = &settings.digest;
        let known = "the file was checked when it was read";
        Self {
            digest: self.digest.or_else(|| Some(written.profile.as_ref()?.parse().expect(known))),
            hash: self.hash.or_else(|| Some(written.hash.as_ref()?.parse().expect(known))),
            key: self.key.or_else(|| written.key.clone()),
            payload_bytes: self.payload_bytes.or(written.payload_bytes),
        }
    }
}
