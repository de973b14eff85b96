//! A certificate and its key as PEM files.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rcgen::KeyPair;

use super::{AuthorityError, Issued};

/// Keys are for their owner only.
const KEY_MODE: u32 = 0o600;
const CERTIFICATE_MODE: u32 = 0o644;

/// Where a certificate and its key go.
#[derive(Debug)]
pub(super) struct Pair {
    certificate: PathBuf,
    key: PathBuf,
}

impl Pair {
    /// Of this name, if there is none.
    pub(super) fn free(folder: &Path, name: &str) -> Result<Self, AuthorityError> {
        let [certificate, key] = paths(folder, name);
        for path in [&certificate, &key] {
            if path.symlink_metadata().is_ok() {
                return Err(AuthorityError::Exists { path: path.clone() });
            }
        }
        Ok(Self { certificate, key })
    }

    /// Writes both, the key first: a certificate without a key would only confuse.
    pub(super) fn write(
        &self,
        certificate: &str,
        key: &KeyPair,
        days: u32,
    ) -> Result<Issued, AuthorityError> {
        if let Some(folder) = self.key.parent() {
            fs::create_dir_all(folder).map_err(failed("create", folder))?;
        }
        write(&self.key, KEY_MODE, &key.serialize_pem())?;
        write(&self.certificate, CERTIFICATE_MODE, certificate)?;
        Ok(Issued { certificate: self.certificate.clone(), key: self.key.clone(), days })
    }
}

/// The texts of a certificate and its key.
pub(super) fn read(folder: &Path, name: &str) -> Result<(String, String), AuthorityError> {
    let read = |path: PathBuf| {
        fs::read_to_string(&path).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => AuthorityError::Missing { folder: folder.to_owned() },
            _ => failed("read", &path)(error),
        })
    };
    let [certificate, key] = paths(folder, name);
    Ok((read(certificate)?, read(key)?))
}

fn paths(folder: &Path, name: &str) -> [PathBuf; 2] {
    [folder.join(format!("{name}.pem")), folder.join(format!("{name}-key.pem"))]
}

fn write(path: &Path, mode: u32, text: &str) -> Result<(), AuthorityError> {
    let opened = OpenOptions::new().write(true).create_new(true).mode(mode).open(path);
    let mut file = opened.map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => AuthorityError::Exists { path: path.to_owned() },
        _ => failed("write", path)(error),
    })?;
    file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).map_err(failed("write", path))
}

/// For `map_err`.
fn failed(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> AuthorityError {
    move |source| AuthorityError::File { action, path: path.to_owned(), source }
}
