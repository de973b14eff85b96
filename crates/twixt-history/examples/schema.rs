//! Prints the schema of sealed hours, as Parquet's own language has it.

fn main() {
    print!("{}", twixt_history::schema());
}
