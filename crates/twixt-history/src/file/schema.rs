//! The schema of files.

use std::fmt::Write as _;
use std::sync::Arc;

use parquet::schema::parser::parse_message_type;
use parquet::schema::types::Type;

use crate::column::Kind;
use crate::table::Table;

/// Bytes of a wide integer, big-endian.
pub(super) const WIDE_BYTES: usize = 16;
/// Decimal digits that every wide integer has at most.
const WIDE_DIGITS: usize = 38;

/// The schema of a table's files, as Parquet's own language has it.
///
/// Times are plain integers, not Parquet timestamps: not all programs that should read the files
/// know those of nanoseconds.
#[must_use]
pub fn schema(table: Table) -> String {
    // Names of schemas have no hyphens.
    let mut text = format!("message {} {{\n", table.name().replace('-', "_"));
    for column in table.columns() {
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
pub(super) fn parsed(table: Table) -> Arc<Type> {
    Arc::new(parse_message_type(&schema(table)).expect("the table of columns makes a schema"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A change breaks users' queries: add columns at the end, and nothing
    /// else.
    #[test]
    fn the_schemas_are_stable() {
        let golden = [
            include_str!("../../../../testdata/golden/estimates-v1.schema"),
            include_str!("../../../../testdata/golden/estimates-v2.schema"),
            include_str!("../../../../testdata/golden/estimates-v3.schema"),
            include_str!("../../../../testdata/golden/estimates-v4.schema"),
        ];
        let of_one_point = [
            include_str!("../../../../testdata/golden/round-trips-v1.schema"),
            include_str!("../../../../testdata/golden/reordering-v1.schema"),
            include_str!("../../../../testdata/golden/heavy-v1.schema"),
        ];
        let of_estimates = golden.map(|golden| (Table::Estimates, golden));
        let of_one_point = Table::OF_ONE_POINT.into_iter().zip(of_one_point);
        for (table, golden) in of_estimates.into_iter().chain(of_one_point) {
            let schema = schema(table);
            assert!(schema.starts_with(golden.trim_end().trim_end_matches('}')), "{schema}");
        }
        for table in Table::ALL {
            assert_eq!(parsed(table).get_fields().len(), table.columns().len());
        }
    }
}
