//! Tables beside that of packets: the same as Markdown and as JSON.

use serde::Serialize;

/// A table whose lines have a name and one number in each column.
#[derive(Serialize)]
pub(crate) struct Table {
    pub(crate) title: &'static str,
    pub(crate) columns: Vec<String>,
    pub(crate) lines: Vec<Row>,
}

/// One line.
#[derive(Serialize)]
pub(crate) struct Row {
    pub(crate) name: String,
    /// What is not known is `None`.
    pub(crate) values: Vec<Option<f64>>,
}

impl Table {
    pub(crate) fn print(&self) {
        println!("\n| {} | {} |", self.title, self.columns.join(" | "));
        println!("|---|{}", "---:|".repeat(self.columns.len()));
        for Row { name, values } in &self.lines {
            let values: Vec<String> = values.iter().map(|value| shown(*value)).collect();
            println!("| {name} | {} |", values.join(" | "));
        }
    }
}

/// About four digits.
fn shown(value: Option<f64>) -> String {
    match value {
        None => "–".to_owned(),
        Some(value) if value.abs() >= 100.0 => format!("{value:.0}"),
        Some(value) if value.abs() >= 10.0 => format!("{value:.1}"),
        Some(value) => format!("{value:.2}"),
    }
}
