//! How estimates are split up.

use std::str::FromStr;

use twixt_synopsis::By;

/// How estimates are split up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Split {
    /// As the algorithm can distinguish packets.
    By(By),
    /// One per class, each with a synopsis of its own.
    Class,
    /// One per DSCP: classes that are made of the code points.
    Dscp,
}

/// Bits of an IPv6 prefix when only those of IPv4 are given: what a site usually gets.
const DEFAULT_V6_BITS: u8 = 48;

impl Split {
    /// What is asked of the algorithm; classes have a synopsis each.
    #[must_use]
    pub const fn by(self) -> By {
        match self {
            Self::By(by) => by,
            Self::Class | Self::Dscp => By::All,
        }
    }
}

impl FromStr for Split {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            "use all, flow, host, port, dscp, class, or prefix/24 (prefix/24,48 for IPv6 too)"
                .to_owned()
        };
        match text {
            "all" => return Ok(Self::By(By::All)),
            "flow" => return Ok(Self::By(By::Flow)),
            "host" => return Ok(Self::By(By::HOST)),
            "port" => return Ok(Self::By(By::Port)),
            "class" => return Ok(Self::Class),
            "dscp" => return Ok(Self::Dscp),
            _ => {}
        }
        let lengths = text.strip_prefix("prefix/").ok_or_else(wrong)?;
        let (v4, v6) = lengths.split_once(',').unwrap_or((lengths, ""));
        let v4 = v4.parse().ok().filter(|&bits| bits <= 32).ok_or_else(wrong)?;
        let v6 = match v6 {
            "" => DEFAULT_V6_BITS,
            bits => bits.parse().ok().filter(|&bits| bits <= 128).ok_or_else(wrong)?,
        };
        Ok(Self::By(By::Prefix { v4, v6 }))
    }
}
