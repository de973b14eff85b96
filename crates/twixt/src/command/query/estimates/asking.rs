//! Asks a collector that runs.

use std::fs::File;
use std::io;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, bail};
use serde::de::DeserializeOwned;
use twixt_collector::api::{
    COMPLETE_HEADER, ErrorDocument, EstimatesDocument, FlowDocument, FlowsDocument,
    HistogramDocument, NEXT_HEADER,
};
use twixt_collector::bundle::UNPACKED_BYTES_MAX;
use twixt_collector::flows::FlowsAsked;
use twixt_history::{ROWS_MAX, RowQuestion, Step, moment_text};
use twixt_model::Timestamp;
use ureq::http::Response;
use ureq::tls::{Certificate, PemItem, RootCerts, TlsConfig, parse_pem};
use ureq::{Agent, Body};

use super::flows::FlowQuestion;
use super::{ANY_SCOPE, CollectorArgs, Whole, exit};
use crate::exit::{Exit, note, usage};
use crate::output;

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(60);
/// Rows of a page.
const PAGE_ROWS: usize = 20_000;
/// Bytes of an answer at most: rows of a page with long names.
const ANSWER_BYTES_MAX: u64 = 512 << 20;
/// Bytes of a bundle: packed, it is no longer than unpacked.
const BUNDLE_BYTES_MAX: u64 = UNPACKED_BYTES_MAX;

/// A collector that runs.
pub(in crate::command) struct Collector {
    url: String,
    agent: Agent,
    token: Option<String>,
}

impl Collector {
    pub(in crate::command::query) fn new(url: &str, args: &CollectorArgs) -> anyhow::Result<Self> {
        Self::patient(url, args, PATIENCE)
    }

    /// The same, with answers that may take so long.
    pub(in crate::command) fn patient(
        url: &str,
        args: &CollectorArgs,
        patience: Duration,
    ) -> anyhow::Result<Self> {
        let is_known = url.starts_with("http://") || url.starts_with("https://");
        if !is_known {
            return Err(usage(format!("--collector {url:?}: write http://HOST:PORT or https://…")));
        }
        let token = args.token_file.as_deref().map(read_token).transpose()?;
        let mut tls = TlsConfig::builder();
        if let Some(path) = &args.ca {
            tls = tls.root_certs(certificates(path)?);
        }
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .proxy(None)
            .timeout_global(Some(patience))
            .tls_config(tls.build())
            .build();
        let url = url.trim_end_matches('/').to_owned();
        Ok(Self { url, agent: Agent::new_with_config(config), token })
    }

    /// All pages of an answer.
    pub(super) fn estimates(&self, question: &RowQuestion) -> anyhow::Result<EstimatesDocument> {
        let mut whole = Whole::default();
        let mut cursor = None;
        loop {
            let mut parameters = parameters(question);
            parameters.push(("limit", PAGE_ROWS.to_string()));
            parameters.extend(cursor.map(|cursor| ("cursor", cursor)));
            let mut page: EstimatesDocument = self.document("estimates", &parameters)?;
            cursor = page.next.take();
            whole.add(page);
            if cursor.is_none() {
                return Ok(whole.document);
            }
        }
    }

    /// The answer as a table, to standard output.
    pub(super) fn estimate_table(&self, question: &RowQuestion) -> anyhow::Result<Exit> {
        let mut parameters = parameters(question);
        parameters.push(("limit", ROWS_MAX.to_string()));
        self.table("estimates", &parameters)
    }

    /// An answer as a table, to standard output.
    pub(in crate::command::query) fn table(
        &self,
        about: &str,
        parameters: &[(&'static str, String)],
    ) -> anyhow::Result<Exit> {
        let mut parameters = parameters.to_vec();
        parameters.push(("format", "parquet".to_owned()));
        let mut response = self.ask(about, &parameters)?;
        if response.headers().contains_key(NEXT_HEADER) {
            return Err(usage("there are more rows than one answer has: query a shorter time"));
        }
        let complete = response.headers().get(COMPLETE_HEADER).cloned();
        let is_complete = complete.is_some_and(|value| value == "true");
        if !is_complete {
            note("some data are missing: the rows say which; -F json lists unreadable files");
        }
        output::bytes(&response.body_mut().with_config().limit(ANSWER_BYTES_MAX).read_to_vec()?)?;
        Ok(exit(true, is_complete))
    }

    /// All of an interval of time, summed up.
    pub(super) fn totals(&self, question: &RowQuestion) -> anyhow::Result<HistogramDocument> {
        let mut parameters = parameters(question);
        // They are summed up from minutes, whatever the step.
        parameters.retain(|(name, _)| *name != "step");
        self.document("histogram", &parameters)
    }

    /// The flows with the largest of something.
    pub(super) fn flows(&self, question: &FlowQuestion) -> anyhow::Result<FlowsDocument> {
        let mut parameters = parameters_of_flows(&question.asked);
        parameters.push(("order", question.order.name().to_owned()));
        parameters.push(("limit", question.limit.to_string()));
        self.document("flows", &parameters)
    }

    /// All that is stored of a segment and a time, into a file.
    pub(super) fn bundle(&self, about: &RowQuestion, out: &mut File) -> anyhow::Result<()> {
        let mut parameters = parameters(about);
        parameters.retain(|(name, _)| !["step", "scope"].contains(name));
        let mut response = self.ask("bundle", &parameters)?;
        let mut body = response.body_mut().with_config().limit(BUNDLE_BYTES_MAX).reader();
        io::copy(&mut body, out).with_context(|| format!("cannot download from {}", self.url))?;
        Ok(())
    }

    /// One flow, epoch by epoch.
    pub(super) fn flow(&self, asked: &FlowsAsked) -> anyhow::Result<FlowDocument> {
        let mut parameters = parameters_of_flows(asked);
        parameters.extend(asked.scope.clone().map(|scope| ("scope", scope)));
        self.document("flow", &parameters)
    }

    /// The answer to a request, whatever it is.
    pub(in crate::command) fn document<T: DeserializeOwned>(
        &self,
        about: &str,
        parameters: &[(&str, String)],
    ) -> anyhow::Result<T> {
        let mut response = self.ask(about, parameters)?;
        let text = response.body_mut().with_config().limit(ANSWER_BYTES_MAX).read_to_string()?;
        serde_json::from_str(&text).context("cannot parse the collector's answer")
    }

    fn ask(&self, about: &str, parameters: &[(&str, String)]) -> anyhow::Result<Response<Body>> {
        let mut request = self.agent.get(format!("{}/v1/{about}", self.url));
        for (name, value) in parameters {
            request = request.query(*name, value);
        }
        if let Some(token) = &self.token {
            request = request.header("Authorization", format!("Bearer {token}"));
        }
        let mut response = request.call().with_context(|| format!("cannot query {}", self.url))?;
        if response.status().is_success() {
            return Ok(response);
        }
        let text = response.body_mut().read_to_string().unwrap_or_default();
        let message =
            serde_json::from_str::<ErrorDocument>(&text).map_or(text, |message| message.error);
        match response.status().as_u16() {
            401 if self.token.is_some() => Err(usage(format!(
                "{}: the token of --token-file is not accepted: it is wrong, or no longer valid",
                self.url
            ))),
            401 => Err(usage(format!("{}: {message}; use --token-file", self.url))),
            400 => Err(usage(format!("{}: {message}", self.url))),
            status => bail!("{}: {status}: {message}", self.url),
        }
    }
}

pub(in crate::command::query) fn parameters(question: &RowQuestion) -> Vec<(&'static str, String)> {
    let moment = |time: Timestamp| moment_text(time);
    let scope = question.scope.clone().unwrap_or_else(|| ANY_SCOPE.to_owned());
    let span = question.span;
    let given = [
        (
            "segment",
            question.segment.as_ref().map(|of| format!("{}:{}", of.upstream, of.downstream)),
        ),
        ("class", question.class.clone()),
        ("algorithm", question.algorithm.clone()),
        ("scope", Some(scope)),
        ("start", (span.start > Timestamp::MIN).then(|| moment(span.start))),
        ("end", (span.end < Timestamp::MAX).then(|| moment(span.end))),
        ("step", Some(question.step.name().to_owned())),
    ];
    given.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
}

fn parameters_of_flows(asked: &FlowsAsked) -> Vec<(&'static str, String)> {
    let FlowsAsked { segment, class, algorithm, span, scope: _ } = asked.clone();
    let about = RowQuestion {
        segment: Some(segment),
        class,
        algorithm,
        span,
        ..RowQuestion::all(Step::Epoch)
    };
    let mut parameters = parameters(&about);
    parameters.retain(|(name, _)| !["step", "scope"].contains(name));
    parameters
}

fn read_token(path: &Path) -> anyhow::Result<String> {
    let text = std::fs::read_to_string(path)
        .with_context(|| format!("cannot read the token in {}", path.display()))?;
    Ok(text.trim().to_owned())
}

fn certificates(path: &Path) -> anyhow::Result<RootCerts> {
    let shown = path.display();
    let pem = std::fs::read(path).with_context(|| format!("cannot read {shown}"))?;
    let mut found: Vec<Certificate<'static>> = Vec::new();
    for item in parse_pem(&pem) {
        if let PemItem::Certificate(certificate) = item.with_context(|| format!("{shown}"))? {
            found.push(certificate);
        }
    }
    match found.is_empty() {
        true => Err(usage(format!("{shown} has no certificate"))),
        false => Ok(RootCerts::new_with_certs(&found)),
    }
}
