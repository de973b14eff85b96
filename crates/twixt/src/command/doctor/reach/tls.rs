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

/// Shakes hands; trusts what the certificates of `ca` vouch for, or nobody.
pub(super) fn shake_hands(
    host: &str,
    mut stream: TcpStream,
    ca: Option<&Path>,
) -> io::Result<Handshake> {
    let name = ServerName::try_from(host.to_owned()).map_err(io::Error::other)?;
    let config = Arc::new(configuration(ca)?);
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

fn configuration(ca: Option<&Path>) -> io::Result<ClientConfig> {
    let mut roots = RootCertStore::empty();
    for certificate in ca.map(certificates).transpose()?.unwrap_or_default() {
        roots.add(certificate).map_err(io::Error::other)?;
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider);
    let builder = builder.with_safe_default_protocol_versions().map_err(io::Error::other)?;
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}

fn certificates(path: &Path) -> io::Result<Vec<CertificateDer<'static>>> {
    let unreadable = |error| io::Error::other(format!("{}: {error}", path.display()));
    let read = CertificateDer::pem_file_iter(path).map_err(unreadable)?;
    read.collect::<Result<_, _>>().map_err(unreadable)
}
