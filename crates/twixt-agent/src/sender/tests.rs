//! Where epochs may be sent, and to whom.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::pki_types::PrivateKeyDer;
use rustls::server::WebPkiClientVerifier;

use super::*;

fn config(url: &str) -> CollectorConfig {
    let (token, ca, identity) = (None, None, None);
    CollectorConfig { url: url.to_owned(), token, ca, identity, plain_http_forced: false }
}

#[track_caller]
fn check(url: &str, problem: Option<&str>) {
    let found = Sender::new(&config(url), 1).err().map(|error| error.to_string());
    match (found, problem) {
        (None, None) => {}
        (Some(found), Some(problem)) => assert!(found.contains(problem), "{url}: {found}"),
        (found, _) => panic!("{url}: {found:?}"),
    }
}

#[test]
fn plain_http_is_for_this_machine() {
    check("http://127.0.0.1:9443", None);
    check("http://127.0.0.1:9443/", None);
    check("http://localhost", None);
    check("http://[::1]:9443", None);
    check("https://collector:9443", None);
    check("http://collector:9443", Some("plain http"));
    check("http://10.0.0.1", Some("plain http"));
    check("collector:9443", Some("write https"));
    check("https://", Some("write https"));
    check("http://", Some("write https"));
    check("ftp://collector", Some("write https"));
    let forced = CollectorConfig { plain_http_forced: true, ..config("http://collector") };
    assert!(Sender::new(&forced, 1).is_ok());
}

#[test]
fn files_that_hold_no_certificate_are_named() {
    let with_ca = CollectorConfig { ca: Some(b"nonsense".to_vec()), ..config("https://c") };
    let problem = Sender::new(&with_ca, 1).unwrap_err().to_string();
    assert!(problem.starts_with("ca: holds no certificate"), "{problem}");
}

/// An authority, and certificates that it signed.
struct Authority {
    pem: String,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let pem = params.self_signed(&key).unwrap().pem();
        Self { pem, issuer: Issuer::new(params, key) }
    }

    /// Certificate and key for a name.
    fn issue(&self, name: &str) -> (rcgen::Certificate, KeyPair) {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        (params.signed_by(&key, &self.issuer).unwrap(), key)
    }
}

/// A collector that stores one epoch per request, for those whose certificate `clients` signed.
fn serve(authority: &Authority, name: &str, clients: Option<&Authority>) -> u16 {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = rustls::ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .unwrap();
    let builder = match clients {
        None => builder.with_no_client_auth(),
        Some(clients) => {
            let mut roots = rustls::RootCertStore::empty();
            roots
                .add(certificates("ca", clients.pem.as_bytes()).unwrap()[0].der().to_vec().into())
                .unwrap();
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
            builder.with_client_cert_verifier(verifier.build().unwrap())
        }
    };
    let (certificate, key) = authority.issue(name);
    let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    let config = builder.with_single_cert(vec![certificate.der().clone()], key).unwrap();
    let (config, listener) = (Arc::new(config), TcpListener::bind("127.0.0.1:0").unwrap());
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for mut socket in listener.incoming().flatten() {
            let mut connection = rustls::ServerConnection::new(Arc::clone(&config)).unwrap();
            let mut stream = rustls::Stream::new(&mut connection, &mut socket);
            let mut request = [0; 1 << 16];
            // Head and body of a small request come together, or nearly so.
            let mut length = 0;
            while let Ok(more @ 1..) = stream.read(&mut request[length..]) {
                length += more;
                if request[..length].windows(4).any(|end| end == b"\r\n\r\n") && length > 250 {
                    break;
                }
            }
            let receipt = r#"{"stored": 1, "duplicates": 0, "refused": []}"#;
            let bytes = receipt.len();
            let _ = write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: {bytes}\r\n\r\n{receipt}");
            let _ = stream.flush();
        }
    });
    port
}

/// What comes of sending one epoch.
fn send_one(config: &CollectorConfig) -> Answer {
    let folder = tempfile::tempdir().unwrap();
    let spool = Spool::open(folder.path(), 1 << 20).unwrap();
    let noise: Vec<u8> = (0..50).flat_map(|word| twixt_model::mix(word).to_le_bytes()).collect();
    spool.append(twixt_model::Epoch(1), &noise).unwrap();
    Sender::new(config, 1).unwrap().send(&spool.batch(1, 1 << 20), true)
}

#[track_caller]
fn check_answer(config: &CollectorConfig, shown: &str) {
    let answer = format!("{:?}", send_one(config));
    assert!(answer.contains(shown), "{answer}");
}

#[test]
fn who_signed_what_decides_and_is_explained() {
    let (ours, theirs) = (Authority::new(), Authority::new());
    let pem = |authority: &Authority| Some(authority.pem.clone().into_bytes());
    let port = serve(&ours, "localhost", None);
    let trusting =
        CollectorConfig { ca: pem(&ours), ..config(&format!("https://localhost:{port}")) };
    check_answer(&trusting, "stored: 1");
    check_answer(&CollectorConfig { ca: pem(&theirs), ..trusting.clone() }, "as `ca`");
    check_answer(&CollectorConfig { ca: None, ..trusting.clone() }, "as `ca`");
    let plain = CollectorConfig { url: format!("http://localhost:{port}"), ..trusting.clone() };
    check_answer(&plain, "NotNow");
    let port = serve(&ours, "elsewhere", None);
    let url = format!("https://localhost:{port}");
    check_answer(&CollectorConfig { url, ..trusting }, "another name");
}

#[test]
fn a_client_certificate_opens_the_door() {
    let (ours, clients) = (Authority::new(), Authority::new());
    let port = serve(&ours, "localhost", Some(&clients));
    let identity = |authority: &Authority| {
        let (certificate, key) = authority.issue("agent");
        Some((certificate.pem().into_bytes(), key.serialize_pem().into_bytes()))
    };
    let ca = Some(ours.pem.clone().into_bytes());
    let without = CollectorConfig { ca, ..config(&format!("https://localhost:{port}")) };
    check_answer(&CollectorConfig { identity: identity(&clients), ..without.clone() }, "stored: 1");
    check_answer(&without, "NotNow");
    check_answer(&CollectorConfig { identity: identity(&ours), ..without }, "NotNow");
}
