//! Examples for help texts and manual pages, and what exit codes mean.

use clap::Command;

/// Commands, each with what one may want and what to write then.
const EXAMPLES: &[(&str, &[(&str, &str)])] = &[
    (
        "delay",
        &[
            ("what a box did to all traffic", "twixt delay before.pcap after.pcap"),
            (
                "the flows that lost most",
                "twixt delay before.pcap after.pcap --by flow --sort loss",
            ),
            (
                "delay over time, as a picture",
                "twixt delay before.pcap after.pcap --plot delay.html",
            ),
            (
                "every packet, for a program",
                "twixt delay a.pcap b.pcap --samples -F parquet > packets.parquet",
            ),
        ],
    ),
    (
        "path",
        &[
            ("which segment added the delay", "twixt path a.pcap b.pcap c.pcap"),
            ("the same as a picture", "twixt path a.pcap b.pcap c.pcap --plot path.svg"),
        ],
    ),
    (
        "rtt",
        &[
            ("round trips in a capture", "twixt rtt -r edge.pcap"),
            ("by service, the slowest first", "twixt rtt -r edge.pcap --by port --sort p95"),
            ("on an interface, every 10 seconds", "twixt rtt -i eth0 --epoch 10s"),
            (
                "fail if more than 5 % take over 50 ms",
                "twixt rtt -r edge.pcap --fail-above share:50ms=5%",
            ),
        ],
    ),
    (
        "reorder",
        &[
            ("prefixes that suffer reordering", "twixt reorder -r edge.pcap"),
            ("fail if one has more than 1 %", "twixt reorder -r edge.pcap --fail-above share=1%"),
        ],
    ),
    (
        "heavy",
        &[
            ("the ten largest flows", "twixt heavy -r edge.pcap --top 10"),
            ("by bytes, on an interface", "twixt heavy -i eth0 --for 10s --by bytes"),
        ],
    ),
    (
        "verify",
        &[
            ("how wrong LDS is in 64 KiB", "twixt verify up.pcap down.pcap -a lds --memory 64KiB"),
            ("the same as a picture", "twixt verify up.pcap down.pcap -a lds --plot errors.svg"),
        ],
    ),
    (
        "top",
        &[
            ("what a collector knows", "twixt top --collector http://127.0.0.1:9443"),
            ("round trips and flows of an interface", "twixt top -i eth0 tcp port 443"),
        ],
    ),
    (
        "record",
        &[
            (
                "a capture into an epoch file",
                "twixt record -r up.pcap -a lda --epoch 1s -w up.epochs",
            ),
            ("an interface into a store", "twixt record -i eth0 --epoch 10s --store recordings"),
        ],
    ),
    (
        "info",
        &[
            ("what is in a capture", "twixt info edge.pcap"),
            ("the same for a program", "twixt info edge.pcap -F json"),
        ],
    ),
    ("view", &[("an incident that another collector saw", "twixt view incident.twxb")]),
];

/// What exit codes mean.
pub(super) const EXIT_STATUS: &[(u8, &str)] = &[
    (0, "done"),
    (1, "failed: a file cannot be read or written"),
    (2, "usage: the command line or the configuration is invalid"),
    (3, "done, but part of the input was unusable; standard error says which"),
    (4, "not enough data to answer"),
    (10, "a limit given with --fail-above is exceeded"),
    (130, "interrupted; what was measured before was written"),
];

/// The examples of a command, if it has some.
pub(super) fn of(command: &str) -> &'static [(&'static str, &'static str)] {
    let found = EXAMPLES.iter().find(|(name, _)| *name == command);
    found.map_or(&[], |(_, examples)| examples)
}

/// The same command, with examples at the top of the help of those below it that have some.
pub(crate) fn with_examples(command: Command) -> Command {
    let names: Vec<String> =
        command.get_subcommands().map(|sub| sub.get_name().to_owned()).collect();
    let with = |command: Command, name: String| match of(&name) {
        [] => command,
        examples => command.mut_subcommand(&name, |sub| sub.before_help(text(examples))),
    };
    names.into_iter().fold(command, with)
}

fn text(examples: &[(&str, &str)]) -> String {
    let lines = examples.iter().map(|(what, line)| format!("  {line}\n      {what}\n"));
    format!("Examples:\n{}", lines.collect::<String>()).trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::command::Cli;

    #[test]
    fn every_example_is_understood() {
        for (_, line) in EXAMPLES.iter().flat_map(|(_, examples)| *examples) {
            let words = line.split_whitespace().take_while(|&word| word != ">");
            if let Err(error) = Cli::command().try_get_matches_from(words) {
                panic!("{line}: {error}");
            }
        }
    }

    #[test]
    fn examples_stand_at_the_top_of_help() {
        let mut command = with_examples(Cli::command());
        let delay = command.find_subcommand_mut("delay").expect("it is a command");
        let help = delay.render_long_help().to_string();
        assert!(help.starts_with("Examples:\n  twixt delay before.pcap after.pcap\n"), "{help}");
    }
}
