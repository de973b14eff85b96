//! What an agent must reach: folders to write to, and the collector.

mod tls;

use std::io;
use std::net::{TcpStream, ToSocketAddrs};
use std::path::Path;
use std::str::FromStr;
use std::time::Duration;

use twixt_capture::free_bytes;

use super::finding::Finding;
use crate::output::units;
use tls::{Handshake, shake_hands, trusted};

/// Less room than this is soon filled by epochs that wait for a collector.
const ROOM_BYTES_MIN: u64 = 1 << 30;
/// How long to wait for a collector.
const PATIENCE: Duration = Duration::from_secs(5);

/// Whether a folder can be written to, and how much.
pub(super) fn examine_folder(name: &'static str, folder: &Path) -> Finding {
    let shown = folder.display().to_string();
    if !folder.is_dir() {
        let detail = "not a directory: epochs cannot be kept there";
        let fix = format!("install -d -m 0750 {shown}");
        return Finding::fail(name, shown, detail).mended_by(fix);
    }
    if let Err(error) = try_writing(folder) {
        let detail = format!("not writable, so epochs cannot be kept there: {error}");
        let fix = format!("chown \"$(id -u)\" {shown} && chmod u+rwx {shown}");
        return Finding::fail(name, shown, detail).mended_by(fix);
    }
    match free_bytes(folder) {
        Ok(free) => judge_room(name, shown, free),
        Err(error) => Finding::warn(name, shown, format!("writable; free space unknown: {error}")),
    }
}

fn judge_room(name: &'static str, folder: String, free_bytes: u64) -> Finding {
    let detail = format!("writable, {} free", units::bytes(free_bytes));
    if free_bytes >= ROOM_BYTES_MIN {
        return Finding::ok(name, folder, detail);
    }
    let fix = format!("df -h {folder}");
    let detail = format!("{detail}: when it is full, the oldest epochs are discarded");
    Finding::warn(name, folder, detail).mended_by(fix)
}

/// Makes a file and takes it away again: permissions alone do not tell of read-only disks.
fn try_writing(folder: &Path) -> io::Result<()> {
    let path = folder.join(format!(".twixt-doctor-{}", std::process::id()));
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true).open(&path)?;
    std::fs::remove_file(&path)
}

/// Where a collector listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Collector {
    url: String,
    encrypted: bool,
    host: String,
    port: u16,
}

impl FromStr for Collector {
    type Err = String;

    fn from_str(url: &str) -> Result<Self, String> {
        let explain = || format!("{url}: write it as https://HOST:PORT or http://HOST:PORT");
        let (scheme, rest) = url.split_once("://").ok_or_else(explain)?;
        let (encrypted, port) = match scheme {
            "https" => (true, 443),
            "http" => (false, 80),
            _ => return Err(explain()),
        };
        let authority = rest.split('/').next().unwrap_or_default();
        // A colon within brackets belongs to the address.
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, digits)) if !digits.contains(']') => {
                (host, digits.parse().map_err(|_| explain())?)
            }
            _ => (authority, port),
        };
        let host = host.trim_start_matches('[').trim_end_matches(']');
        if host.is_empty() || host.contains('@') {
            return Err(explain());
        }
        Ok(Self { url: url.to_owned(), encrypted, host: host.to_owned(), port })
    }
}

impl Collector {
    /// Connects, and shakes hands if it is encrypted. Sends no request.
    pub(super) fn examine(&self, ca: Option<&Path>) -> Finding {
        let trusted = match trusted(ca) {
            Ok(trusted) => trusted,
            Err(error) => {
                let file = ca.unwrap_or(Path::new("")).display();
                return Finding::fail("collector", &self.url, format!("{file}: {error}"))
                    .mended_by(format!("openssl x509 -in {file} -noout -subject"));
            }
        };
        let stream = match self.connect() {
            Ok(stream) => stream,
            Err(error) => return self.unreachable(&error),
        };
        if !self.encrypted {
            return Finding::ok("collector", &self.url, "accepts connections, without encryption");
        }
        match shake_hands(&self.host, stream, trusted) {
            Ok(Handshake::Trusted) => {
                Finding::ok("collector", &self.url, "answers, and its certificate is valid")
            }
            Ok(Handshake::Distrusted(reason)) => self.distrusted(&reason, ca),
            Err(error) => {
                let detail = format!("answers, but not in TLS: {error}");
                Finding::fail("collector", &self.url, detail)
                    .mended_by(format!("openssl s_client -connect {}:{}", self.host, self.port))
            }
        }
    }

    fn connect(&self) -> io::Result<TcpStream> {
        let mut last = io::Error::new(io::ErrorKind::NotFound, "the name does not resolve");
        for address in (self.host.as_str(), self.port).to_socket_addrs()? {
            match TcpStream::connect_timeout(&address, PATIENCE) {
                Ok(stream) => {
                    stream.set_read_timeout(Some(PATIENCE))?;
                    stream.set_write_timeout(Some(PATIENCE))?;
                    return Ok(stream);
                }
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    fn unreachable(&self, error: &io::Error) -> Finding {
        let detail = format!("cannot be reached, so epochs would wait in the spool: {error}");
        let fix = format!("nc -vz {} {}", self.host, self.port);
        Finding::fail("collector", &self.url, detail).mended_by(fix)
    }

    fn distrusted(&self, reason: &str, ca: Option<&Path>) -> Finding {
        let detail = format!("answers, but its certificate is not trusted: {reason}");
        match ca {
            Some(_) => Finding::fail("collector", &self.url, detail)
                .mended_by(format!("twixt collector ca init DIR --name {}", self.host)),
            None => {
                let fix = format!("twixt doctor --collector {} --ca FILE", self.url);
                Finding::warn("collector", &self.url, detail).mended_by(fix)
            }
        }
    }
}

#[cfg(test)]
mod tests;
