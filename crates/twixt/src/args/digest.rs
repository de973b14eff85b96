//! How packets are recognised at both points.

use std::str::FromStr;

use crate::configuration::Configuration;
use clap::Args;
use twixt_model::{DigestHash, DigestProfile, GroupPrefixes};
use twixt_offline::{DigestPlan, Recognition, Split};
use twixt_synopsis::By;
use twixt_wire::{Digester, HashKey, PAYLOAD_BYTES_MAX};

/// How packets are recognised at both points.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Recognising packets")]
pub(crate) struct DigestArgs {
    /// Fields that identify a packet: default, headers (truncated captures) or nat (translated
    /// addresses)
    #[arg(long, value_name = "PROFILE")]
    digest: Option<DigestProfile>,
    /// Hash function: xxh3, or siphash where senders may be hostile
    #[arg(long, value_name = "NAME")]
    hash: Option<DigestHash>,
    /// Secret shared by both points; without it, digests are the same for everyone
    #[arg(long, value_name = "TEXT", env = "TWIXT_KEY", hide_env_values = true)]
    key: Option<String>,
    /// Payload bytes that identify a packet [default: as many as both captures have, up to 24]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(..=i64::from(PAYLOAD_BYTES_MAX)))]
    payload_bytes: Option<u8>,
    /// Prefixes that group flows, for algorithms with banks [default: prefix/24,48]
    #[arg(long, value_name = "prefix/N,N")]
    group_by: Option<Groups>,
}

/// By which prefixes flows are grouped.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Groups(GroupPrefixes);

impl FromStr for Groups {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.parse() {
            Ok(Split::By(By::Prefix { v4, v6 })) => Ok(Self(GroupPrefixes { v4, v6 })),
            _ => Err("use prefix/24 (prefix/24,48 for IPv6 too)".to_owned()),
        }
    }
}

impl DigestArgs {
    /// How packets are recognised.
    pub(crate) fn plan(&self) -> DigestPlan {
        let profile = self.digest.unwrap_or_default();
        let payload_bytes = match profile {
            DigestProfile::Headers => 0,
            _ => self.payload_bytes.unwrap_or(PAYLOAD_BYTES_MAX),
        };
        DigestPlan {
            recognition: Recognition { profile, payload_bytes },
            hash: self.hash.unwrap_or_default(),
            key: HashKey::from_passphrase(self.key.as_deref().unwrap_or_default()),
            groups: self.group_by.map_or_else(GroupPrefixes::default, |groups| groups.0),
        }
    }

    /// Computes digests that recognise packets so.
    pub(crate) fn digester(&self) -> Digester {
        self.plan().digester()
    }

    /// Takes from the configuration file what the command line left out.
    pub(crate) fn with(self, configuration: &Configuration) -> Self {
        let written = &configuration.digest;
        let known = "the file was checked when it was read";
        Self {
            digest: self.digest.or_else(|| Some(written.profile.as_ref()?.parse().expect(known))),
            hash: self.hash.or_else(|| Some(written.hash.as_ref()?.parse().expect(known))),
            key: self.key.or_else(|| written.key.clone()),
            payload_bytes: self.payload_bytes.or(written.payload_bytes),
            group_by: self
                .group_by
                .or_else(|| Some(written.group_by.as_ref()?.parse().expect(known))),
        }
    }
}
