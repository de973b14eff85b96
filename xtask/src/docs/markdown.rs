//! Just enough Markdown to find links.

/// The targets of all links and images outside code, in the order of the text.
pub(super) fn links(text: &str) -> Vec<String> {
    let mut links = Vec::new();
    let mut fence: Option<&str> = None;
    for line in text.lines() {
        let marker =
            ["```", "~~~"].into_iter().find(|marker| line.trim_start().starts_with(marker));
        match (fence, marker) {
            (None, Some(_)) => fence = marker,
            (Some(open), Some(close)) if open == close => fence = None,
            (Some(_), _) => {}
            (None, None) => links.extend(links_in(&without_code(line))),
        }
    }
    links
}

/// Those of `[text](target "title")` and of `[label]: target`.
fn links_in(line: &str) -> Vec<String> {
    let definition = line.trim_start().strip_prefix('[').and_then(|rest| rest.split_once("]:"));
    let inline = line.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    let definition = definition.map(|(_, target)| target);
    inline.chain(definition).filter_map(target_of).collect()
}

/// What is left of a target without title and angle brackets.
fn target_of(text: &str) -> Option<String> {
    let target = text.split_whitespace().next()?;
    Some(target.trim_start_matches('<').trim_end_matches('>').to_owned())
}

/// The line without what stands between backticks.
fn without_code(line: &str) -> String {
    line.split('`').step_by(2).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        assert_eq!(links(text), expected, "{text}");
    }

    #[test]
    fn inline_links_and_images() {
        check("see [one](a.md) and ![two](b.png \"title\")", &["a.md", "b.png"]);
        check("a [bracket] (and more), f(x)[0]", &[]);
    }

    #[test]
    fn definitions() {
        check("[label]: docs/a.md", &["docs/a.md"]);
        check("[label]: <a.md> 'title'", &["a.md"]);
    }

    #[test]
    fn code_holds_no_links() {
        check("`[no](x.md)` but [yes](y.md)", &["y.md"]);
        check("```\n[no](x.md)\n```\n[yes](y.md)", &["y.md"]);
        check("~~~\n```\n[no](x.md)\n~~~\n[yes](y.md)", &["y.md"]);
    }
}
