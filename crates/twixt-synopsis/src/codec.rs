//! Little-endian bytes of synopses and messages, written and read field by field.
//!
//! Bytes may be hostile: each read names its field, so that an error says where, and the
//! bytes that are left are checked before anything is allocated.

/// Appends fields to a buffer.
#[derive(Clone, Debug, Default)]
pub struct Writer {
    bytes: Vec<u8>,
}

macro_rules! write_integers {
    ($($type:ident),+) => {
        $(
            #[doc = concat!("Appends a little-endian ", stringify!($type), ".")]
            #[inline]
            pub fn $type(&mut self, value: $type) {
                self.bytes.extend_from_slice(&value.to_le_bytes());
            }
        )+
    };
}

impl Writer {
    /// An empty buffer.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    write_integers!(u8, u16, u32, u64, i64, f64);

    /// Appends bytes as they are.
    pub fn raw(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Makes room for so many bytes more at once.
    pub fn reserve(&mut self, bytes: usize) {
        self.bytes.reserve(bytes);
    }

    /// Appends a length (u32) and that many bytes.
    pub fn block(&mut self, bytes: &[u8]) {
        self.block_of(|out| out.raw(bytes));
    }

    /// Appends a length (u32) and what is written, which is copied nowhere on its way.
    pub fn block_of(&mut self, write: impl FnOnce(&mut Self)) {
        let start = self.bytes.len();
        self.u32(0);
        write(self);
        let body = start + size_of::<u32>();
        let length = u32::try_from(self.bytes.len() - body).expect("blocks are far below 4 GiB");
        self.bytes[start..body].copy_from_slice(&length.to_le_bytes());
    }

    /// Appends a text as a block.
    pub fn text(&mut self, text: &str) {
        self.block(text.as_bytes());
    }

    /// What was written so far.
    #[must_use]
    pub fn as_slice(&self) -> &[u8] {
        &self.bytes
    }

    /// What was written.
    #[must_use]
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

/// Why bytes are not what they should be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// The bytes are something else. Check that the file is one that twixt wrote.
    #[error("not {expected}")]
    Magic {
        /// What it should have been.
        expected: &'static str,
    },
    /// The writer runs a newer release. Upgrade the reader before the writers.
    #[error("{what} format version {found}, newest known is {newest}")]
    NewerVersion {
        /// Which format.
        what: &'static str,
        /// Version in the bytes.
        found: u8,
        /// Version that this release writes.
        newest: u8,
    },
    /// The bytes were cut short on their way.
    #[error("{field}: {needed} bytes needed, {left} left")]
    Truncated {
        /// Where.
        field: &'static str,
        /// Bytes that the field takes.
        needed: u64,
        /// Bytes that were left.
        left: u64,
    },
    /// The bytes were damaged on their way.
    #[error("{what}: checksum does not match, the bytes are damaged")]
    Checksum {
        /// Which part.
        what: &'static str,
    },
    /// A field holds what twixt never writes.
    #[error("{field}: {problem}")]
    Invalid {
        /// Where.
        field: &'static str,
        /// What is wrong with it.
        problem: String,
    },
    /// The writer knows an algorithm that this release does not. Upgrade the reader.
    #[error("unknown algorithm, tag {tag}")]
    UnknownAlgorithm {
        /// Its tag.
        tag: u16,
    },
    /// There is more than what was written.
    #[error("{left} surplus bytes")]
    Trailing {
        /// How many.
        left: u64,
    },
}

impl DecodeError {
    /// A field with a value that cannot be.
    pub fn invalid(field: &'static str, problem: impl Into<String>) -> Self {
        Self::Invalid { field, problem: problem.into() }
    }
}

/// Takes fields from the front of a slice.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    left: &'a [u8],
}

macro_rules! read_integers {
    ($($type:ident),+) => {
        $(
            #[doc = concat!("Takes a little-endian ", stringify!($type), ".")]
            #[doc = ""]
            #[doc = "# Errors"]
            #[doc = "When too few bytes are left."]
            pub fn $type(&mut self, field: &'static str) -> Result<$type, DecodeError> {
                let bytes = self.raw(field, size_of::<$type>())?;
                Ok($type::from_le_bytes(bytes.try_into().expect("raw() gave as many bytes as asked")))
            }
        )+
    };
}

impl<'a> Reader<'a> {
    /// Reads from the front of `bytes`.
    #[must_use]
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { left: bytes }
    }

    read_integers!(u8, u16, u32, u64, i64, f64);

    /// Takes `length` bytes.
    ///
    /// # Errors
    /// When too few are left.
    pub fn raw(&mut self, field: &'static str, length: usize) -> Result<&'a [u8], DecodeError> {
        let Some((taken, left)) = self.left.split_at_checked(length) else {
            return Err(DecodeError::Truncated {
                field,
                needed: length as u64,
                left: self.left.len() as u64,
            });
        };
        self.left = left;
        Ok(taken)
    }

    /// Takes a length and that many bytes.
    ///
    /// # Errors
    /// When too few are left.
    pub fn block(&mut self, field: &'static str) -> Result<&'a [u8], DecodeError> {
        let length = self.u32(field)?;
        self.raw(field, length as usize)
    }

    /// Takes a block that is a text.
    ///
    /// # Errors
    /// When too few bytes are left, or they are not UTF-8.
    pub fn text(&mut self, field: &'static str) -> Result<&'a str, DecodeError> {
        std::str::from_utf8(self.block(field)?)
            .map_err(|_| DecodeError::invalid(field, "is not UTF-8 text"))
    }

    /// Takes a byte that is 0 or 1.
    ///
    /// # Errors
    /// When it is not, or there is none.
    pub fn flag(&mut self, field: &'static str) -> Result<bool, DecodeError> {
        match self.u8(field)? {
            0 => Ok(false),
            1 => Ok(true),
            other => Err(DecodeError::invalid(field, format!("{other} is not 0 or 1"))),
        }
    }

    /// Takes a number of items (u64), having checked that bytes for so many are left.
    /// Only then may room for them be reserved.
    ///
    /// # Errors
    /// When there are not.
    pub fn count(&mut self, field: &'static str, item_bytes: usize) -> Result<usize, DecodeError> {
        let items = self.u64(field)?;
        let needed = items.saturating_mul(item_bytes as u64);
        if needed > self.left.len() as u64 {
            return Err(DecodeError::Truncated { field, needed, left: self.left.len() as u64 });
        }
        Ok(items as usize)
    }

    /// How many bytes are left.
    #[must_use]
    pub const fn left(&self) -> usize {
        self.left.len()
    }

    /// Ends reading.
    ///
    /// # Errors
    /// When bytes are left.
    pub fn finish(self) -> Result<(), DecodeError> {
        match self.left.len() as u64 {
            0 => Ok(()),
            left => Err(DecodeError::Trailing { left }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_read_back_in_order() {
        let mut out = Writer::new();
        out.u16(7);
        out.text("paris");
        out.f64(0.5);
        let bytes = out.into_bytes();
        let mut input = Reader::new(&bytes);
        assert_eq!(input.u16("a"), Ok(7));
        assert_eq!(input.text("b"), Ok("paris"));
        assert_eq!(input.f64("c"), Ok(0.5));
        assert_eq!(input.finish(), Ok(()));
    }

    #[test]
    fn an_error_says_which_field_and_how_much_is_missing() {
        let error = Reader::new(&[1, 2]).u64("time sum").unwrap_err();
        assert_eq!(error.to_string(), "time sum: 8 bytes needed, 2 left");
    }

    #[test]
    fn a_count_beyond_the_bytes_is_refused_before_anything_is_reserved() {
        let mut out = Writer::new();
        out.u64(u64::MAX);
        let bytes = out.into_bytes();
        assert!(matches!(
            Reader::new(&bytes).count("cells", 24),
            Err(DecodeError::Truncated { .. })
        ));
    }
}
