//! Who gets in, and who does not.

use std::path::Path;

use twixt_collector::access::{PointPattern, TokenConfig, TokenHash};
use twixt_collector::{CollectorConfig, TlsConfig, authority};
use twixt_delivery::UPLOAD_PATH;
use ureq::tls::{Certificate, ClientCert, PrivateKey, RootCerts};

use crate::epochs::{Agent, body, epoch_now};
use crate::running::{Answer, Running, client, config, logged, send, try_send};

const TOKEN: &str = "a-token-that-nobody-guesses";

fn patterns(points: &[&str]) -> Vec<PointPattern> {
    points.iter().map(|point| point.parse().unwrap()).collect()
}

fn with_token(folder: &Path) -> CollectorConfig {
    let token = TokenConfig {
        name: "rack".to_owned(),
        hash: TokenHash::of_token(TOKEN).unwrap(),
        points: patterns(&["r-*"]),
    };
    CollectorConfig { tokens: vec![token], ..config(folder) }
}

#[test]
fn without_a_token_nothing_gets_in_and_nothing_out() {
    let folder = tempfile::tempdir().unwrap();
    let collector = Running::start(with_token(folder.path()));
    let epochs = body(&Agent::at("r-in").seal(epoch_now(), 1));
    let base = format!("http://{}", collector.addresses.listen);
    let bearer = format!("Bearer {TOKEN}");
    let almost = format!("Bearer {}", &TOKEN[1..]);
    let stranger = send(&client(), &collector.url(), &[], &epochs);
    assert_eq!(stranger.status, 401);
    for path in [UPLOAD_PATH, "/", "/metrics", "/healthz", "/v1/segments"] {
        for headers in [vec![], vec![("authorization", almost.as_str())]] {
            let answer = send(&client(), &format!("{base}{path}"), &headers, &epochs);
            assert_eq!(answer, stranger, "every path looks alike to a stranger");
        }
    }
    assert!(!folder.path().join("epochs").exists());
    let answer = send(&client(), &collector.url(), &[("authorization", &bearer)], &epochs);
    assert_eq!(answer.counts(), (1, 0));
}

#[test]
fn a_caller_writes_its_own_points_only() {
    let folder = tempfile::tempdir().unwrap();
    let collector = Running::start(with_token(folder.path()));
    let bearer = format!("Bearer {TOKEN}");
    let mut epochs = Agent::at("r-in").seal(epoch_now(), 1);
    epochs.extend(Agent::at("core").seal(epoch_now(), 1));
    let answer = send(&client(), &collector.url(), &[("authorization", &bearer)], &body(&epochs));
    assert_eq!(
        (answer.status, answer.text.as_str()),
        (403, r#"{"error":"not allowed to write point \"core\""}"#)
    );
    assert!(!folder.path().join("epochs").exists(), "all or nothing");
}

/// A client that trusts an authority, with a certificate of it or of another.
fn certified(trusted: &Path, own: Option<(&Path, &str)>) -> ureq::Agent {
    let read = |folder: &Path, file: &str| std::fs::read(folder.join(file)).unwrap();
    let root = Certificate::from_pem(&read(trusted, "ca.pem")).unwrap();
    let own = own.map(|(folder, name)| {
        let certificate = Certificate::from_pem(&read(folder, &format!("{name}.pem"))).unwrap();
        let key = PrivateKey::from_pem(&read(folder, &format!("{name}-key.pem"))).unwrap();
        ClientCert::new_with_certs(&[certificate], key)
    });
    let tls = ureq::tls::TlsConfig::builder()
        .root_certs(RootCerts::new_with_certs(&[root]))
        .client_cert(own)
        .build();
    ureq::Agent::config_builder().http_status_as_error(false).tls_config(tls).build().into()
}

fn made_authority(folder: &Path) {
    authority::init(folder, &["localhost".to_owned()], 10).unwrap();
    authority::issue(folder, "agent", &patterns(&["r-in", "x-*"]), 10).unwrap();
}

fn with_tls(folder: &Path, keys: &Path, base: CollectorConfig) -> CollectorConfig {
    let tls = TlsConfig {
        certificate: keys.join("collector.pem"),
        key: keys.join("collector-key.pem"),
        client_ca: Some(keys.join("ca.pem")),
    };
    CollectorConfig { tls: Some(tls), directory: folder.to_owned(), ..base }
}

#[test]
fn certificates_say_which_points() {
    let (folder, keys, others) =
        (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    made_authority(keys.path());
    made_authority(others.path());
    let collector = Running::start(with_tls(folder.path(), keys.path(), config(folder.path())));
    let url = format!("https://localhost:{}{UPLOAD_PATH}", collector.addresses.listen.port());
    let ask = |client: &ureq::Agent, point: &'static str| -> Result<Answer, ureq::Error> {
        try_send(client, &url, &[], &body(&Agent::at(point).seal(epoch_now(), 1)))
    };
    let agent = certified(keys.path(), Some((keys.path(), "agent")));
    assert_eq!(ask(&agent, "r-in").unwrap().counts(), (1, 0));
    assert_eq!(ask(&agent, "x-7").unwrap().counts(), (1, 0));
    assert_eq!(ask(&agent, "r-out").unwrap().status, 403);
    // Another authority's certificate, one without points, none, and no encryption at all.
    let foreign = certified(keys.path(), Some((others.path(), "agent")));
    assert!(ask(&foreign, "r-in").is_err());
    assert!(ask(&certified(keys.path(), Some((keys.path(), "collector"))), "r-in").is_err());
    assert!(ask(&certified(keys.path(), None), "r-in").is_err());
    assert!(ask(&certified(others.path(), Some((keys.path(), "agent"))), "r-in").is_err());
    let plain = format!("http://127.0.0.1:{}{UPLOAD_PATH}", collector.addresses.listen.port());
    assert!(try_send(&client(), &plain, &[], b"").is_err());
    assert_eq!(logged(folder.path()).len(), 2);
    assert!(collector.metrics().contains("connections_refused_total{reason=\"handshake\"}"));
}

#[test]
fn tokens_and_certificates_go_together() {
    let (folder, keys) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    made_authority(keys.path());
    let config = with_tls(folder.path(), keys.path(), with_token(folder.path()));
    let collector = Running::start(config);
    let url = format!("https://localhost:{}{UPLOAD_PATH}", collector.addresses.listen.port());
    let epochs = body(&Agent::at("r-in").seal(epoch_now(), 1));
    let bearer = format!("Bearer {TOKEN}");
    let bare = certified(keys.path(), None);
    assert_eq!(send(&bare, &url, &[("authorization", &bearer)], &epochs).counts(), (1, 0));
    assert_eq!(send(&bare, &url, &[], &epochs).status, 401);
    let agent = certified(keys.path(), Some((keys.path(), "agent")));
    assert_eq!(send(&agent, &url, &[], &epochs).counts(), (0, 1));
}
