//! What was found out about one thing, and how it is shown.

use serde::Serialize;

/// How good it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Status {
    /// As it should be, or of no consequence.
    Ok,
    /// It works, but measures worse than it could.
    Warn,
    /// What was asked about does not work.
    Fail,
}

impl Status {
    const fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warn => "warn",
            Self::Fail => "FAIL",
        }
    }
}

/// What was found out about one thing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Finding {
    /// What was looked at; a fixed word.
    pub(super) name: &'static str,
    /// Of what.
    pub(super) subject: String,
    pub(super) status: Status,
    /// How it is, and why that matters.
    pub(super) detail: String,
    /// The command that mends it.
    pub(super) fix: Option<String>,
}

impl Finding {
    pub(super) fn ok(
        name: &'static str,
        subject: impl Into<String>,
        detail: impl Into<String>,
    ) -> Self {
        let (subject, detail) = (subject.into(), detail.into());
        Self { name, subject, status: Status::Ok, detail, fix: None }
    }

    pub(super) fn warn(
        name: &'static str,
        subject: impl Into<String>,
        detail: impl Into<String>,
    ) -> Self {
        Self { status: Status::Warn, ..Self::ok(name, subject, detail) }
    }

    pub(super) fn fail(
        name: &'static str,
        subject: impl Into<String>,
        detail: impl Into<String>,
    ) -> Self {
        Self { status: Status::Fail, ..Self::ok(name, subject, detail) }
    }

    /// With the command that mends it.
    pub(super) fn mended_by(self, fix: impl Into<String>) -> Self {
        Self { fix: Some(fix.into()), ..self }
    }
}

/// `-F json`.
#[derive(Serialize)]
pub(super) struct Document<'a> {
    checks: &'a [Finding],
}

impl<'a> Document<'a> {
    pub(super) const fn new(findings: &'a [Finding]) -> Self {
        Self { checks: findings }
    }
}

/// One finding per line, its remedy on the next, and a count at the end.
pub(super) fn report(findings: &[Finding]) -> String {
    let width = |text: fn(&Finding) -> &str| {
        findings.iter().map(|finding| text(finding).chars().count()).max().unwrap_or(0)
    };
    let (names, subjects) = (width(|finding| finding.name), width(|finding| &finding.subject));
    let mut report = String::new();
    for Finding { name, subject, status, detail, fix } in findings {
        let word = status.word();
        report += &format!("{word:4}  {name:names$}  {subject:subjects$}  {detail}\n");
        if let Some(fix) = fix {
            report += &format!("{:4}  {:names$}  {:subjects$}  → {fix}\n", "", "", "");
        }
    }
    let count = |status| findings.iter().filter(|finding| finding.status == status).count();
    let [ok, warnings, failures] = [Status::Ok, Status::Warn, Status::Fail].map(count);
    report + &format!("\n{ok} ok, {warnings} warnings, {failures} failures\n")
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    fn findings() -> [Finding; 3] {
        [
            Finding::ok("kernel", "6.1.0", "4.6 or later"),
            Finding::warn("offload", "eth0", "gro is on").mended_by("ethtool -K eth0 gro off"),
            Finding::fail("interface", "a-longer-name", "is down"),
        ]
    }

    #[test]
    fn people_see_a_list() {
        expect![[r#"
            ok    kernel     6.1.0          4.6 or later
            warn  offload    eth0           gro is on
                                            → ethtool -K eth0 gro off
            FAIL  interface  a-longer-name  is down

            1 ok, 1 warnings, 1 failures
        "#]]
        .assert_eq(&report(&findings()));
    }

    #[test]
    fn programs_see_checks() {
        let document = serde_json::to_string(&Document::new(&findings()[1..2])).unwrap();
        expect![[r#"{"checks":[{"name":"offload","subject":"eth0","status":"warn","detail":"gro is on","fix":"ethtool -K eth0 gro off"}]}"#]]
            .assert_eq(&document);
    }
}
