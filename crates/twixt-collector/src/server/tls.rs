//! Reads keys and certificates, and says whom to believe.

use std::path::Path;
use std::sync::Arc;

use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use rustls::{RootCertStore, ServerConfig};
use tokio_rustls::TlsAcceptor;

use super::{TlsConfig, TlsError};

/// Whether clients without a certificate may connect: they need another way to say who they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WithoutCertificate {
    Welcome,
    Refused,
}

/// Makes encrypted connections.
pub(crate) fn acceptor(
    config: &TlsConfig,
    others: WithoutCertificate,
) -> Result<TlsAcceptor, TlsError> {
    let certificates = certificates(&config.certificate)?;
    let key = PrivateKeyDer::from_pem_file(&config.key).map_err(unreadable("key", &config.key))?;
    let provider = Arc::new(ring::default_provider());
    let builder =
        ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    let builder = match &config.client_ca {
        Some(path) => builder.with_client_cert_verifier(verifier(path, others)?),
        None => builder.with_no_client_auth(),
    };
    let mut server = builder.with_single_cert(certificates, key)?;
    server.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(server)))
}

fn verifier(
    path: &Path,
    others: WithoutCertificate,
) -> Result<Arc<dyn ClientCertVerifier>, TlsError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(path)? {
        roots.add(certificate).map_err(|error| TlsError::Authority(error.to_string()))?;
    }
    let provider = Arc::new(ring::default_provider());
    let mut builder = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
    if others == WithoutCertificate::Welcome {
        builder = builder.allow_unauthenticated();
    }
    builder.build().map_err(|error| TlsError::Authority(error.to_string()))
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let unreadable = || unreadable("certificates", path);
    let found = CertificateDer::pem_file_iter(path).map_err(unreadable())?;
    let found: Vec<_> = found.collect::<Result<_, _>>().map_err(unreadable())?;
    match found.is_empty() {
        true => Err(unreadable()(rustls::pki_types::pem::Error::NoItemsFound)),
        false => Ok(found),
    }
}

/// For `map_err`.
fn unreadable(
    what: &'static str,
    path: &Path,
) -> impl FnOnce(rustls::pki_types::pem::Error) -> TlsError {
    move |error| TlsError::File { what, path: path.to_owned(), problem: error.to_string() }
}
