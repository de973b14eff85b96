//! The collector as agents meet it: over connections, with real files.

mod access;
mod disk;
mod epochs;
mod hostile;
mod limits;
mod pairing;
mod running;
mod storing;
