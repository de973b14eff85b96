//! Manual pages: those of the command line, with examples and exit codes.

use std::io::Write;
use std::path::Path;

use anyhow::Context;
use clap::Command;
use clap_mangen::Man;

use crate::command::examples::{self, EXIT_STATUS};

/// One page for the program, and one for each command that can be run.
pub(super) fn write_all(command: &mut Command, folder: &Path) -> anyhow::Result<()> {
    command.build();
    write_page(command, "twixt", folder)?;
    let commands = command.get_subcommands().filter(|command| !command.is_hide_set());
    commands.cloned().try_for_each(|command| write_below(&command, "twixt", folder))
}

fn write_below(command: &Command, above: &str, folder: &Path) -> anyhow::Result<()> {
    if command.get_name() == "help" {
        return Ok(());
    }
    let name = format!("{above}-{}", command.get_name());
    write_page(command, &name, folder)?;
    command.get_subcommands().try_for_each(|below| write_below(below, &name, folder))
}

fn write_page(command: &Command, name: &str, folder: &Path) -> anyhow::Result<()> {
    let path = folder.join(format!("{name}.1"));
    std::fs::write(&path, page(command, name)?)
        .with_context(|| format!("cannot write {}", path.display()))
}

/// The page of a command, under this name.
pub(super) fn page(command: &Command, name: &str) -> anyhow::Result<Vec<u8>> {
    let mut page = Vec::new();
    Man::new(command.clone()).title(name.to_owned()).render(&mut page)?;
    let short = name.strip_prefix("twixt-").unwrap_or_default();
    let examples = examples::of(short);
    if !examples.is_empty() {
        writeln!(page, ".SH EXAMPLES")?;
    }
    for (what, line) in examples {
        writeln!(page, ".TP\n{what}:\n\\fB{}\\fR", line.replace('-', "\\-"))?;
    }
    writeln!(page, ".SH \"EXIT STATUS\"")?;
    for (code, meaning) in EXIT_STATUS {
        writeln!(page, ".TP\n\\fB{code}\\fR\n{meaning}")?;
    }
    Ok(page)
}
