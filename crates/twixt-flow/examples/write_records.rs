//! Writes the records of two points, for measuring what reads them.
//!
//! `cargo run --release -p twixt-flow --example write_records -- RECORDS UP DOWN`

mod made;

use std::fs::File;
use std::io::{BufWriter, Write};

use twixt_flow::{FlowWriter, WriterConfig};
use twixt_model::FlowRecord;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [records, upstream, downstream] = &arguments[..] else {
        return Err("write_records RECORDS UP DOWN".into());
    };
    let records: u64 = records.parse()?;
    let [sent, received] = made::records(records);
    write(upstream, &sent)?;
    write(downstream, &received)
}

fn write(path: &str, records: &[FlowRecord]) -> Result<(), Box<dyn std::error::Error>> {
    let mut writer = FlowWriter::new(WriterConfig::STREAM)?;
    let mut file = BufWriter::new(File::create(path)?);
    for record in records {
        writer.record(record, record.last)?;
        while let Some(message) = writer.poll() {
            file.write_all(&message)?;
        }
    }
    writer.finish();
    while let Some(message) = writer.poll() {
        file.write_all(&message)?;
    }
    Ok(file.flush()?)
}
