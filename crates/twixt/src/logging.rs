//! What long-running commands say of their life, on standard error.

use std::fmt::{self, Write};
use std::io::{self, IsTerminal};

use tracing_subscriber::EnvFilter;
use tracing_subscriber::field::MakeExt;
use tracing_subscriber::fmt::format::debug_fn;
use twixt_model::is_hidden;

/// Which messages are wanted, such as `debug` or `twixt_collector=trace`.
const VARIABLE: &str = "TWIXT_LOG";

/// Begins to log. A second call changes nothing.
pub(crate) fn start() {
    let filter = EnvFilter::try_from_env(VARIABLE).unwrap_or_else(|_| EnvFilter::new("info"));
    let fields = debug_fn(|writer, field, value| match field.name() {
        "message" => write!(writer, "{}", Escaped(value)),
        name => write!(writer, "{name}={}", Escaped(value)),
    });
    let subscriber = tracing_subscriber::fmt()
        .fmt_fields(fields.delimited(" "))
        .with_env_filter(filter)
        .with_writer(io::stderr)
        .with_ansi(io::stderr().is_terminal())
        .with_target(false);
    let _ = subscriber.try_init();
}

/// Shows a value on one line, and as it is: texts of agents, collectors and files must not forge
/// lines or colours of the log.
struct Escaped<'a>(&'a dyn fmt::Debug);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(Escaping(formatter), "{:?}", self.0)
    }
}

struct Escaping<'a, 'b>(&'a mut fmt::Formatter<'b>);

impl Write for Escaping<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        text.chars().try_for_each(|character| match is_hidden(character) {
            true => write!(self.0, "{}", character.escape_debug()),
            false => self.0.write_char(character),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_of_others_forges_a_line() {
        let forged = "a\n2026 ERROR \u{1b}[31mforged\u{202e}";
        let shown = Escaped(&format_args!("{forged}")).to_string();
        assert_eq!(shown, "a\\n2026 ERROR \\u{1b}[31mforged\\u{202e}");
        assert_eq!(Escaped(&"Zürich 北").to_string(), "\"Zürich 北\"");
    }
}
