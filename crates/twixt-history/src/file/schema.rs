//! The schema of files.

use std::fmt::Write as _;
use std::sync::{Arc, LazyLock};

use parquet::schema::parser::parse_message_type;
use parquet::schema::types::Type;

use crate::column::{COLUMNS, Kind};

/// Bytes of a wide integer, big-endian.
pub(super) const WIDE_BYTES: usize = 16;
/// Decimal digits that every wide integer has at most.
const WIDE_DIGITS: usize = 38;

/// The schema of files, as Parquet's own language has it.
///
/// Times are plain integers, not Parquet timestamps: not all programs that should read the files
/// know those of nanoseconds.
#[must_use]
pub fn schema() -> String {
    let mut text = "message estimates {\n".to_owned();
    for column in COLUMNS {
        let repetition = if column.required { "required" } else { "optional" };
        let (kind, meaning) = match column.kind {
            Kind::Text => ("binary".to_owned(), " (STRING)".to_owned()),
            Kind::Integer => ("int64".to_owned(), String::new()),
            Kind::Real => ("double".to_owned(), String::new()),
            Kind::Bytes => ("binary".to_owned(), String::new()),
            Kind::Wide => (
                format!("fixed_len_byte_array({WIDE_BYTES})"),
                format!(" (DECIMAL({WIDE_DIGITS},0))"),
            ),
        };
        let _ = writeln!(text, "  {repetition} {kind} {}{meaning};", column.name);
    }
    text + "}\n"
}

/// The same, parsed.
pub(super) fn parsed() -> Arc<Type> {
    static PARSED: LazyLock<Arc<Type>> = LazyLock::new(|| {
        Arc::new(parse_message_type(&schema()).expect("the table of columns makes a schema"))
    });
    Arc::clone(&PARSED)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A change breaks users' queries: add columns at the end, and nothing
    /// else.
    #[test]
    fn the_schema_is_stable() {
        let golden = [
            include_str!("../../../../testdata/golden/estimates-v1.schema"),
            include_str!("../../../../testdata/golden/estimates-v2.schema"),
            include_str!("../../../../testdata/golden/estimates-v3.schema"),
            include_str!("../../../../testdata/golden/estimates-v4.schema"),
        ];
        for golden in golden {
            assert!(schema().starts_with(golden.trim_end().trim_end_matches('}')), "{}", schema());
        }
        assert_eq!(parsed().get_fields().len(), COLUMNS.len());
    }
}
