//! A handshake of TLS, and nothing after it.

use std::io;
use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore};

/// What came of it.
#[derive(Debug)]
pub(super) enum Handshake {
    /// It is who it should be.
    Trusted,
    /// It speaks TLS, but cannot prove who it is, for this reason.
    Distrusted(String),
}

/// The authorities in a file, at least one; none without a file.
pub(super) fn trusted(ca: Option<&Path>) -> io::Result<RootCertStore> {
    let mut roots = RootCertStore::empty();
    let Some(path) = ca else { return Ok(roots) };
    for certificate in CertificateDer::pem_file_iter(path).map_err(io::Error::other)? {
        roots.add(certificate.map_err(io::Error::other)?).map_err(io::Error::other)?;
    }
    match roots.is_empty() {
        true => Err(io::Error::other("it contains no certificate")),
        false => Ok(roots),
    }
}

/// Shakes hands with a server whose certificate is verified.
pub(super) fn shake_hands(
    host: &str,
    mut stream: TcpStream,
    trusted: RootCertStore,
) -> io::Result<Handshake> {
    let name = ServerName::try_from(host.to_owned()).map_err(io::Error::other)?;
    let config = Arc::new(configuration(trusted)?);
    let mut connection = ClientConnection::new(config, name).map_err(io::Error::other)?;
    while connection.is_handshaking() {
        let Err(error) = connection.complete_io(&mut stream) else { continue };
        return match error.get_ref().and_then(|inner| inner.downcast_ref()) {
            Some(rustls::Error::InvalidCertificate(reason)) => {
                Ok(Handshake::Distrusted(reason.to_string()))
            }
            _ => Err(error),
        };
    }
    Ok(Handshake::Trusted)
}

fn configuration(trusted: RootCertStore) -> io::Result<ClientConfig> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider);
    let builder = builder.with_safe_default_protocol_versions().map_err(io::Error::other)?;
    Ok(builder.with_root_certificates(trusted).with_no_client_auth())
}
