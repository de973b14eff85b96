//! A certificate authority in a folder, for those who have none: signs the collector's certificate
//! and those of agents. Keys are ECDSA over P-256, readable by their owner only.
//!
//! It keeps no list of what it signed and revokes nothing: certificates end by themselves, and a
//! stolen one is answered with a new authority.

mod files;

use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rcgen::string::Ia5String;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose, SanType, date_time_ymd,
};
use twixt_delivery::POINT_URI_PREFIX;

use crate::access::PointPattern;
use files::Pair;

/// How long an authority lasts.
pub const AUTHORITY_DAYS: u32 = 3_650;
/// Lifetime of a certificate by default.
pub const CERTIFICATE_DAYS: u32 = 825;
/// Certificates hold from this long before they were made: clocks differ.
const BACKDATED: Duration = Duration::from_secs(24 * 3_600);
const DAY: Duration = Duration::from_secs(24 * 3_600);

/// Name of the authority's files.
const AUTHORITY: &str = "ca";
/// Name of the collector's files.
const COLLECTOR: &str = "collector";
/// Longest name of a certificate, in bytes; X.509 allows no more in a common name.
const NAME_BYTES_MAX: usize = 64;

/// What was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Issued {
    /// The certificate.
    pub certificate: PathBuf,
    /// Its key.
    pub key: PathBuf,
    /// How long it holds.
    pub days: u32,
}

/// Why there is no certificate. Nothing that was there before is changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AuthorityError {
    /// The file would be overwritten. Take another folder or name, or delete it yourself.
    #[error("{} already exists, and is not overwritten", path.display())]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// There is no authority in the folder. Make one with `ca init`.
    #[error("no authority in {}: create one with `twixt collector ca init`", folder.display())]
    Missing {
        /// The folder.
        folder: PathBuf,
    },
    /// A file cannot be read or written. Check path and permissions.
    #[error("cannot {action} {}: {source}", path.display())]
    File {
        /// What was tried.
        action: &'static str,
        /// With what.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// The name makes no name of a file, or is that of a file of the authority's own.
    #[error(
        "{name:?} is not a valid certificate name: use 1 to {NAME_BYTES_MAX} letters, digits, \
         dots and dashes, and neither ca nor collector"
    )]
    Name {
        /// The name.
        name: String,
    },
    /// A certificate without a name or without a point.
    #[error("{0}")]
    Empty(&'static str),
    /// The name of a host or point cannot stand in a certificate.
    #[error("{name:?} cannot be used in a certificate: ASCII only")]
    Text {
        /// The name.
        name: String,
    },
    /// The certificate could not be made.
    #[error("cannot create the certificate: {0}")]
    Make(#[from] rcgen::Error),
}

/// Makes an authority in a folder, and a certificate for a collector that is reached under these
/// names or addresses.
///
/// # Errors
/// When one is there already, or files cannot be written.
pub fn init(folder: &Path, names: &[String], days: u32) -> Result<[Issued; 2], AuthorityError> {
    if names.is_empty() {
        return Err(AuthorityError::Empty(
            "--name is missing: give the collector's host name or address",
        ));
    }
    let alternatives = names.iter().map(|name| host(name)).collect::<Result<Vec<_>, _>>()?;
    let authority = Pair::free(folder, AUTHORITY)?;
    let collector = Pair::free(folder, COLLECTOR)?;

    let key = KeyPair::generate()?;
    let mut params = lasting(AUTHORITY_DAYS, &format!("twixt authority for {}", names[0]));
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    let certificate = params.self_signed(&key)?;
    let authority = authority.write(&certificate.pem(), &key, AUTHORITY_DAYS)?;

    let issuer = Issuer::new(params, key);
    let mut params = lasting(days, &names[0]);
    params.subject_alt_names = alternatives;
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    let collector = sign(&collector, params, &issuer, days)?;
    Ok([authority, collector])
}

/// Signs a certificate for an agent that may write these points.
///
/// # Errors
/// When there is no authority, the certificate is there already, or files cannot be written.
pub fn issue(
    folder: &Path,
    name: &str,
    points: &[PointPattern],
    days: u32,
) -> Result<Issued, AuthorityError> {
    if points.is_empty() {
        return Err(AuthorityError::Empty(
            "--point is missing: give the points that the agent may write",
        ));
    }
    check_name(name)?;
    let pair = Pair::free(folder, name)?;
    let (certificate, key) = files::read(folder, AUTHORITY)?;
    let issuer = Issuer::from_ca_cert_pem(&certificate, KeyPair::from_pem(&key)?)?;
    let mut params = lasting(days, name);
    for point in points {
        let uri = format!("{POINT_URI_PREFIX}{point}");
        params.subject_alt_names.push(SanType::URI(ascii(&uri)?));
    }
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    sign(&pair, params, &issuer, days)
}

fn sign(
    pair: &Pair,
    mut params: CertificateParams,
    issuer: &Issuer<'_, KeyPair>,
    days: u32,
) -> Result<Issued, AuthorityError> {
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.use_authority_key_identifier_extension = true;
    let key = KeyPair::generate()?;
    let certificate = params.signed_by(&key, issuer)?;
    pair.write(&certificate.pem(), &key, days)
}

/// A certificate that holds from now on, for so many days.
fn lasting(days: u32, name: &str) -> CertificateParams {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let start = date_time_ymd(1970, 1, 1);
    let mut params = CertificateParams::default();
    params.not_before = start + now.saturating_sub(BACKDATED);
    params.not_after = start + now + DAY * days;
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    params
}

fn host(name: &str) -> Result<SanType, AuthorityError> {
    match name.parse::<IpAddr>() {
        Ok(address) => Ok(SanType::IpAddress(address)),
        Err(_) if name.is_empty() => Err(AuthorityError::Text { name: name.to_owned() }),
        Err(_) => Ok(SanType::DnsName(ascii(name)?)),
    }
}

fn ascii(text: &str) -> Result<Ia5String, AuthorityError> {
    Ia5String::try_from(text).map_err(|_| AuthorityError::Text { name: text.to_owned() })
}

fn check_name(name: &str) -> Result<(), AuthorityError> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    let reserved = [AUTHORITY, COLLECTOR].contains(&name) || name.ends_with("-key");
    let fits = (1..=NAME_BYTES_MAX).contains(&name.len()) && !name.starts_with(['.', '-']);
    match fits && !reserved && name.bytes().all(plain) {
        true => Ok(()),
        false => Err(AuthorityError::Name { name: name.to_owned() }),
    }
}

#[cfg(test)]
mod tests;
