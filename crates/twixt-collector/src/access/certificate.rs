//! What a client certificate says about its owner. Whether it is genuine was checked before, when
//! the connection was made.

use twixt_delivery::POINT_URI_PREFIX;
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::{FromDer, X509Certificate};

use super::{Caller, PointPattern};

/// Patterns of one certificate at most; more are not looked at.
const PATTERNS_MAX: usize = 1024;

/// The owner of a certificate: named by its subject, allowed what its URI names say, each
/// `twixt:point:` and a pattern. `None` if it names no point.
pub(crate) fn caller_of(der: &[u8]) -> Option<Caller> {
    let (_, certificate) = X509Certificate::from_der(der).ok()?;
    let names = certificate.subject_alternative_name().ok()??;
    let patterns = names.value.general_names.iter().filter_map(|name| match name {
        GeneralName::URI(uri) => uri.strip_prefix(POINT_URI_PREFIX)?.parse().ok(),
        _ => None,
    });
    let points: Vec<PointPattern> = patterns.take(PATTERNS_MAX).collect();
    if points.is_empty() {
        return None;
    }
    let subject = certificate.subject();
    let common = subject.iter_common_name().next().and_then(|name| name.as_str().ok());
    let name = common.map_or_else(|| certificate.raw_serial_as_string(), str::to_owned);
    Some(Caller::new(format!("certificate {name}"), points))
}
