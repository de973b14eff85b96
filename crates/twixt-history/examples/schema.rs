//! Prints the schema of the sealed hours of a table, as Parquet's own language has it.

use twixt_history::Table;

fn main() {
    let name = std::env::args().nth(1).unwrap_or_else(|| Table::Estimates.name().to_owned());
    let table = Table::ALL.into_iter().find(|table| table.name() == name);
    print!("{}", twixt_history::schema(table.expect("the name of a table")));
}
