//! Why a collector could not be reached, and what to do about it.

use rustls::{AlertDescription, CertificateError};
use ureq::Error;

/// Says it.
pub(super) fn explain(error: &Error) -> String {
    match rustls_error(error) {
        Some(problem) => explain_tls(problem),
        None => match error {
            Error::HostNotFound => "the collector's name cannot be resolved".to_owned(),
            Error::ConnectionFailed => "the collector cannot be reached".to_owned(),
            Error::Timeout(what) => format!("the collector is too slow: timeout ({what})"),
            Error::Io(error) => format!("the connection failed: {error}"),
            Error::Protocol(error) => {
                format!("unexpected reply, not HTTP ({error}): is it https?")
            }
            other => other.to_string(),
        },
    }
}

/// Errors of TLS come by themselves, or as those of a stream.
fn rustls_error(error: &Error) -> Option<&rustls::Error> {
    match error {
        Error::Rustls(problem) => Some(problem),
        Error::Io(error) => error.get_ref()?.downcast_ref(),
        _ => None,
    }
}

fn explain_tls(problem: &rustls::Error) -> String {
    let remedy = match problem {
        rustls::Error::InvalidCertificate(invalid) => match invalid {
            CertificateError::UnknownIssuer | CertificateError::BadSignature => {
                "the collector's certificate is signed by an unknown authority: set `ca` to the \
                 authority's file (`twixt collector ca init` wrote it as ca.pem)"
            }
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                "the collector's certificate is for another name: use that in the URL, or issue one \
                 for this name"
            }
            CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
                "the collector's certificate has expired, or the clock here is wrong"
            }
            CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
                "the collector's certificate is not valid yet, or the clock here is wrong"
            }
            _ => {
                "the collector's certificate is not accepted: if it is self-signed, create an \
                 authority with `twixt collector ca init`, and set `ca` to its file"
            }
        },
        rustls::Error::AlertReceived(
            AlertDescription::CertificateRequired
            | AlertDescription::BadCertificate
            | AlertDescription::CertificateUnknown
            | AlertDescription::UnknownCA
            | AlertDescription::HandshakeFailure
            | AlertDescription::AccessDenied,
        ) => {
            "the collector does not accept this agent's certificate: use a `certificate` and \
             `key` issued by its authority"
        }
        rustls::Error::InvalidMessage(_) => "unexpected reply, not TLS: is it http?",
        _ => "TLS handshake failed",
    };
    format!("{remedy} ({problem})")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(problem: rustls::Error, remedy: &str) {
        let wrapped = Error::Io(std::io::Error::other(problem.clone()));
        for error in [Error::Rustls(problem), wrapped] {
            let explained = explain(&error);
            assert!(explained.contains(remedy), "{explained}");
        }
    }

    #[test]
    fn what_is_wrong_with_certificates_is_explained() {
        check(CertificateError::UnknownIssuer.into(), "set `ca`");
        check(CertificateError::NotValidForName.into(), "another name");
        check(CertificateError::Expired.into(), "expired");
        let required = AlertDescription::CertificateRequired;
        check(rustls::Error::AlertReceived(required), "use a `certificate` and `key`");
    }
}
