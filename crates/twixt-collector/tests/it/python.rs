//! What other people's programs make of it.

use std::process::Command;

use twixt_collector::access::{ReaderConfig, TokenHash};
use twixt_collector::{CollectorConfig, ESTIMATES_FOLDER};
use twixt_history::{History, HistoryConfig, Row, Step};
use twixt_testing::require;

use crate::epochs::{Agent, DELAY_NS, body, epoch_now};
use crate::running::{Running, config};

const EPOCHS: i64 = 12;
const READER: &str = "a-token-of-a-reader";

/// A collector that has estimated something.
fn fed(mut config: CollectorConfig) -> Running {
    config.limits.queries_per_second = 100_000;
    config.limits.queries_burst = 100_000;
    config.engine.patience = twixt_model::Delay::from_nanos(6_000_000_000);
    let collector = Running::start(config);
    let first = epoch_now() - EPOCHS;
    for agent in [Agent::at("up"), Agent::at("down").after(DELAY_NS)] {
        collector.send(&body(&agent.seal(first, EPOCHS))).counts();
    }
    collector.estimated(EPOCHS as usize - 2);
    collector
}

/// Sums over all sealed hours, as Rust has them: rows, packets, sum of delays.
fn sums(rows: &[Row]) -> String {
    let packets: u64 = rows.iter().filter_map(|row| row.packets).sum();
    let delays: i128 = rows.iter().filter_map(|row| Some(row.delay.as_ref()?.sum_ns)).sum();
    format!("{} {packets} {delays}", rows.len())
}

#[track_caller]
fn check(module: &str, script: &str) {
    let python = require!(python module);
    let folder = tempfile::tempdir().unwrap();
    fed(config(folder.path())).stop();
    let estimates = folder.path().join(ESTIMATES_FOLDER);
    let history = History::open(&estimates, HistoryConfig::default()).unwrap();
    history.seal_all().unwrap();
    let answer = history.answer(&twixt_history::RowQuestion::all(Step::Epoch)).unwrap();
    let known: Vec<Row> = answer.rows.into_iter().filter(|row| !row.is_gap()).collect();
    let output = Command::new(python).args(["-c", script]).arg(&estimates).output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}");
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), sums(&known));
}

#[test]
fn pyarrow_reads_sealed_hours() {
    check(
        "pyarrow",
        r#"
import sys, glob, pyarrow, pyarrow.parquet as parquet
tables = [parquet.read_table(path) for path in glob.glob(sys.argv[1] + '/epochs/*/*.parquet')]
rows = [row for row in pyarrow.concat_tables(tables).to_pylist() if row['epochs'] > 0]
assert all(row['mean_ns'] == 1_000_000 and row['step'] == 'epoch' for row in rows)
assert all(row['delay_sum_ns'] == row['delay_count'] * row['mean_ns'] for row in rows)
print(len(rows), sum(row['packets'] for row in rows), sum(row['delay_sum_ns'] for row in rows))
"#,
    );
}

#[test]
fn duckdb_asks_sealed_hours() {
    check(
        "duckdb",
        r#"
import sys, duckdb
ask = lambda question: duckdb.connect().execute(question).fetchone()
print(*ask(f"""
    SELECT count(*), sum(packets)::BIGINT, sum(delay_sum_ns)::HUGEINT
    FROM '{sys.argv[1]}/epochs/*/*.parquet' WHERE epochs > 0
"""))
minutes = ask(f"""
    SELECT sum(packets)::BIGINT FROM '{sys.argv[1]}/rollups/*/*.parquet' WHERE step = 'minute'
""")
hours = ask(f"""
    SELECT sum(packets)::BIGINT FROM '{sys.argv[1]}/rollups/*/*.parquet' WHERE step = 'hour'
""")
assert minutes == hours, (minutes, hours)
"#,
    );
}

/// The running collector keeps what its description promises, whatever is asked.
#[test]
fn schemathesis_finds_nothing() {
    let schemathesis = require!(python "schemathesis").with_file_name("schemathesis");
    let folder = tempfile::tempdir().unwrap();
    let mut config = config(folder.path());
    let hash = TokenHash::of_token(READER).unwrap();
    config.readers = vec![ReaderConfig { name: "tests".to_owned(), hash, may_silence: false }];
    let collector = fed(config);
    let url = format!("http://{}/v1/openapi.json", collector.addresses.listen);
    let output = Command::new(schemathesis)
        .args(["run", &url, "--exclude-path", "/v1/live", "--max-examples", "5", "--seed", "1"])
        // What parameters mean together, such as a start before an end, no description can say.
        .args(["--checks", "all", "--exclude-checks", "positive_data_acceptance"])
        .args(["--header", &format!("Authorization: Bearer {READER}")])
        // One worker: threads of Python 3.11 that parse at once may spoil each other's count of levels.
        .args(["--no-color", "--workers", "1"])
        .current_dir(folder.path())
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{told}\n{}", String::from_utf8_lossy(&output.stderr));
    println!("{}", told.lines().rev().take(20).collect::<Vec<_>>().join("\n"));
    assert_eq!(collector.metrics().matches("history_failures_total 0").count(), 1);
}
