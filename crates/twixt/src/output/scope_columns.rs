//! A scope in columns of its own, for tables that are filtered and grouped.

use serde::Serialize;
use twixt_model::{FlowKey, Scope, protocol};

/// Source, destination, ports and protocol of a scope; `null` where it has none.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct ScopeColumns {
    /// An address or a prefix.
    source: Option<String>,
    destination: Option<String>,
    source_port: Option<u16>,
    destination_port: Option<u16>,
    /// Its name, or its number if twixt has none for it.
    protocol: Option<String>,
}

impl From<&FlowKey> for ScopeColumns {
    fn from(key: &FlowKey) -> Self {
        let has_ports = matches!(key.protocol, protocol::TCP | protocol::UDP | protocol::SCTP);
        Self {
            source: Some(key.source.to_string()),
            destination: Some(key.destination.to_string()),
            source_port: has_ports.then_some(key.source_port),
            destination_port: has_ports.then_some(key.destination_port),
            protocol: Some(protocol_name(key.protocol)),
        }
    }
}

impl From<&Scope> for ScopeColumns {
    fn from(scope: &Scope) -> Self {
        match scope {
            Scope::Flow(key) => key.into(),
            Scope::PrefixPair { source, destination } => Self {
                source: Some(source.to_string()),
                destination: Some(destination.to_string()),
                ..Self::default()
            },
            Scope::Port { protocol, port } => Self {
                destination_port: Some(*port),
                protocol: Some(protocol_name(*protocol)),
                ..Self::default()
            },
            Scope::All | Scope::Class(_) | Scope::Other => Self::default(),
        }
    }
}

impl ScopeColumns {
    /// Of a scope as it is shown.
    pub(crate) fn of_text(scope: &str) -> Self {
        if let Ok(key) = scope.parse::<FlowKey>() {
            return Self::from(&key);
        }
        match scope.split_once(" > ") {
            Some((source, destination)) => Self {
                source: Some(source.to_owned()),
                destination: Some(destination.to_owned()),
                ..Self::default()
            },
            None => Self::default(),
        }
    }
}

fn protocol_name(number: u8) -> String {
    match number {
        protocol::TCP => "tcp".to_owned(),
        protocol::UDP => "udp".to_owned(),
        protocol::SCTP => "sctp".to_owned(),
        protocol::ICMP | protocol::ICMPV6 => "icmp".to_owned(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(scope: &str, expected: &serde_json::Value) {
        assert_eq!(
            serde_json::to_value(ScopeColumns::of_text(scope)).unwrap(),
            *expected,
            "{scope}"
        );
    }

    #[test]
    fn scopes_are_split_into_columns() {
        let columns = |source, destination, ports: Option<(u16, u16)>, protocol: Option<&str>| {
            json!({"source": source, "destination": destination,
                "source_port": ports.map(|(port, _)| port),
                "destination_port": ports.map(|(_, port)| port), "protocol": protocol})
        };
        let (from, to) = (Some("10.0.0.1"), Some("10.0.1.9"));
        check(
            "tcp 10.0.0.1:40312 > 10.0.1.9:443",
            &columns(from, to, Some((40312, 443)), Some("tcp")),
        );
        check("ip-proto 50 10.0.0.1 > 10.0.1.9", &columns(from, to, None, Some("50")));
        let (from, to) = (Some("2001:db8::1"), Some("2001:db8::2"));
        check("icmp [2001:db8::1] > [2001:db8::2]", &columns(from, to, None, Some("icmp")));
        check(
            "10.0.0.0/24 > 10.0.1.0/24",
            &columns(Some("10.0.0.0/24"), Some("10.0.1.0/24"), None, None),
        );
        check("all", &columns(None, None, None, None));
    }
}
