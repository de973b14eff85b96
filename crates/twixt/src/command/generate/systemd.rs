//! Units for systemd, with no more rights than the service needs.

/// Which service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Service {
    /// `twixt agent`
    Agent,
    /// `twixt collector`
    Collector,
}

/// What both services may not do.
const HARDENING: &str = "\
NoNewPrivileges=yes
ProtectSystem=strict
ProtectHome=yes
ProtectProc=invisible
ProtectKernelTunables=yes
ProtectKernelModules=yes
ProtectKernelLogs=yes
ProtectControlGroups=yes
ProtectHostname=yes
PrivateTmp=yes
PrivateDevices=yes
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
LockPersonality=yes
MemoryDenyWriteExecute=yes
SystemCallArchitectures=native
UMask=0077
";

/// The unit of a service that reads `config` and runs as `user`.
pub(super) fn unit(service: Service, program: &str, config: &str, user: &str) -> String {
    let (name, description) = match service {
        Service::Agent => ("agent", "twixt agent: observes packets, and sends sealed epochs"),
        Service::Collector => ("collector", "twixt collector: stores and pairs sealed epochs"),
    };
    let rights = rights(service);
    format!(
        "[Unit]\n\
         Description={description}\n\
         Documentation=man:twixt-{name}(1)\n\
         Wants=network-online.target\n\
         After=network-online.target time-sync.target\n\
         \n\
         [Service]\n\
         ExecStartPre={program} --config {config} {name} --check\n\
         ExecStart={program} --config {config} {name}\n\
         Restart=on-failure\n\
         RestartSec=2\n\
         TimeoutStopSec=45\n\
         User={user}\n\
         StateDirectory=twixt\n\
         StateDirectoryMode=0750\n\
         RuntimeDirectory=twixt-{name}\n\
         ConfigurationDirectory=twixt\n\
         {rights}\
         {HARDENING}\
         \n\
         [Install]\n\
         WantedBy=multi-user.target\n"
    )
}

fn rights(service: Service) -> &'static str {
    match service {
        // adjtimex only reads, but is none of the calls that every service may make.
        Service::Agent => {
            "AmbientCapabilities=CAP_NET_RAW\n\
             CapabilityBoundingSet=CAP_NET_RAW\n\
             RestrictAddressFamilies=AF_PACKET AF_INET AF_INET6 AF_UNIX\n\
             SystemCallFilter=@system-service adjtimex\n"
        }
        Service::Collector => {
            "CapabilityBoundingSet=\n\
             RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX\n\
             SystemCallFilter=@system-service\n"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_may_capture_and_a_collector_may_not() {
        let agent = unit(Service::Agent, "/usr/bin/twixt", "/etc/twixt/agent.toml", "twixt");
        assert!(agent.contains("ExecStart=/usr/bin/twixt --config /etc/twixt/agent.toml agent\n"));
        assert!(agent.contains("AmbientCapabilities=CAP_NET_RAW\n"));
        let collector = unit(Service::Collector, "twixt", "collector.toml", "twixt");
        assert!(!collector.contains("CAP_NET_RAW") && collector.contains("ProtectSystem=strict\n"));
    }
}
