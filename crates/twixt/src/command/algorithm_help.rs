//! `--help-algorithms`: the options of the algorithms, which would be most of a command's help.

use std::ffi::OsString;

use clap::{Arg, ArgAction, Command};

use crate::args::ALGORITHM_HEADING;

const FLAG: &str = "help-algorithms";

/// The same command: options of the algorithms are accepted, but only `--help-algorithms` shows them.
pub(super) fn hidden(command: Command) -> Command {
    let names: Vec<String> =
        command.get_subcommands().map(|below| below.get_name().to_owned()).collect();
    let command =
        names.into_iter().fold(command, |command, name| command.mut_subcommand(name, hidden));
    if !has_algorithms(&command) {
        return command;
    }
    let flag = Arg::new(FLAG)
        .long(FLAG)
        .action(ArgAction::SetTrue)
        .help("Print the options of the algorithms")
        .display_order(FLAG_ORDER);
    command.mut_args(|arg| if is_algorithms(&arg) { arg.hide(true) } else { arg }).arg(flag)
}

/// After all others.
const FLAG_ORDER: usize = 1_000;

/// The help that these words ask for, if they ask for it.
pub(super) fn asked(command: Command, words: impl Iterator<Item = OsString>) -> Option<String> {
    let words: Vec<String> =
        words.skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
    let end = words.iter().position(|word| word == "--").unwrap_or(words.len());
    if !words[..end].iter().any(|word| word.strip_prefix("--") == Some(FLAG)) {
        return None;
    }
    let mut found = command;
    let mut name = found.get_name().to_owned();
    for word in &words[..end] {
        if let Some(below) = found.find_subcommand(word) {
            found = below.clone();
            name = format!("{name} {word}");
        }
    }
    let shown = |arg: Arg| if is_algorithms(&arg) { arg } else { arg.hide(true) };
    has_algorithms(&found).then(|| {
        let only = found.mut_args(shown).disable_help_flag(true).before_help(None::<&str>);
        let only = only.about(None::<&str>).long_about(None::<&str>);
        let usage = format!("{name} -a NAME [OPTIONS] …");
        only.override_usage(usage).render_long_help().to_string()
    })
}

fn has_algorithms(command: &Command) -> bool {
    command.get_arguments().any(is_algorithms)
}

fn is_algorithms(arg: &Arg) -> bool {
    arg.get_help_heading() == Some(ALGORITHM_HEADING)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::command::Cli;

    fn help(line: &str) -> Option<String> {
        asked(Cli::command(), line.split_whitespace().map(OsString::from))
    }

    #[test]
    fn only_options_of_algorithms_are_shown() {
        let text = help("twixt delay --help-algorithms").expect("delay has algorithms");
        assert!(text.contains("--virtual-cells") && text.contains("--memory"), "{text}");
        assert!(!text.contains("--toward"), "{text}");
        assert!(text.starts_with("Usage: twixt delay -a NAME"), "{text}");
        assert_eq!(help("twixt info --help-algorithms"), None);
        assert_eq!(help("twixt delay a b"), None);
    }

    #[test]
    fn options_of_algorithms_are_not_in_help_but_accepted() {
        let mut command = hidden(Cli::command());
        let words = "twixt delay a b -a lds --virtual-cells 4".split_whitespace();
        command.clone().try_get_matches_from(words).expect("it is understood");
        let delay = command.find_subcommand_mut("delay").expect("it is a command");
        let text = delay.render_long_help().to_string();
        assert!(!text.contains("--virtual-cells") && text.contains("--help-algorithms"), "{text}");
    }
}
