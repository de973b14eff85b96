//! A sealed hour as a Parquet file.
//!
//! A file is written beside its place, made durable, and renamed: it is there as a whole or not at
//! all. Its name ends with a checksum of its bytes (XXH3 of 64 bits, hexadecimal): a damaged file
//! is found out before anything of it is believed, and any program reads it as it is.
//!
//! Rows are sorted by step, series, scope and time, so that pages have short ranges of each, and a
//! reader that asks for one segment skips the others by the page index.

mod name;
mod pruning;
mod read;
mod schema;
mod source;
mod write;

pub(crate) use name::{FileName, Folder, names};
pub(crate) use read::{Columns, Footers, Wanted, read, read_groups};
pub use schema::schema;
pub(crate) use write::FileWriter;
pub use write::to_parquet;
