//! `/v1/bundle`: all that is known of a segment and a time, in one file; and `/v1/source`: whether
//! answers come from a collector, or from such a file.

use std::fs::File;
use std::io::{self, BufWriter, Read, Seek};
use std::sync::Arc;

use axum::Json;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use futures_util::stream::unfold;
use twixt_model::{Segment, Span};

use super::documents::{SourceDocument, SourceKind};
use super::parameters::{Asked, BundleParameters, NoParameters};
use super::problem::Problem;
use super::{Api, ErrorDocument};
use crate::bundle::{BundleError, BundleOrigin, BundleWriterDocument, EstimateSource, pack};

/// Bytes of a file that are read and sent at a time.
const PIECE_BYTES: usize = 256 << 10;
/// Longest part of a name of a file that is a point's name.
const NAME_LETTERS_MAX: usize = 40;

/// All that is stored of a segment and a time, in one file: estimates, raw epochs, clocks, and the
/// collector's configuration without secrets. `twixt info`, `twixt query` and `twixt view` read it.
#[utoipa::path(
    get,
    path = "/v1/bundle",
    params(BundleParameters),
    responses(
        (
            status = 200,
            description = "The incident bundle",
            body = Vec<u8>,
            content_type = "application/octet-stream"
        ),
        (
            status = 400,
            description = "Invalid request, more time than a bundle may cover, or nothing is stored",
            body = ErrorDocument
        ),
        (status = 401, description = "No valid reader token", body = ErrorDocument),
        (status = 429, description = "Too many requests", body = ErrorDocument),
        (status = 503, description = "Too many requests are waiting", body = ErrorDocument),
    ),
    security(("reader" = []))
)]
pub(super) async fn bundle(
    State(api): State<Arc<Api>>,
    Asked(asked): Asked<BundleParameters>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let now = api.estimates.clock.now();
    let asked = asked.question(now)?;
    let name = file_name(&asked.segment, asked.span);
    let origin = BundleOrigin {
        writer: BundleWriterDocument::here(api.readers.name(&headers)),
        now,
        configuration: api.about.configuration.clone(),
        directory: api.directory.clone(),
    };
    let (history, log) = (Arc::clone(&api.estimates.history), api.epochs.clone());
    let directory = api.directory.clone();
    let packed = api.compare(move || {
        // It has no name: nothing of it is left behind, whatever happens.
        let file = tempfile::tempfile_in(&directory).map_err(twixt_store::SectionError::Io)?;
        let source = EstimateSource::Written(&history);
        let (out, _) = pack(source, &log, &asked, origin, BufWriter::new(file))?;
        whole(out).map_err(|error| BundleError::Sections(error.into()))
    });
    let (file, bytes) = packed.await?.map_err(|error| match error {
        BundleError::TooLong | BundleError::Empty => Problem::Question(error.to_string()),
        error => Problem::Failed(api.hidden(&error.to_string())),
    })?;
    let mut response = Body::from_stream(pieces(file)).into_response();
    let headers = response.headers_mut();
    let disposition = HeaderValue::from_str(&format!("attachment; filename=\"{name}\""));
    let media_type = HeaderValue::from_static("application/octet-stream");
    headers.insert(header::CONTENT_TYPE, media_type);
    headers.insert(header::CONTENT_LENGTH, HeaderValue::from(bytes));
    headers.extend(disposition.ok().map(|value| (header::CONTENT_DISPOSITION, value)));
    Ok(response)
}

/// What answers: a collector, or an incident bundle that was opened.
#[utoipa::path(
    get,
    path = "/v1/source",
    responses(
        (status = 200, description = "The answer", body = SourceDocument),
        (status = 400, description = "This request has no parameters", body = ErrorDocument),
        (status = 401, description = "No valid reader token", body = ErrorDocument),
        (status = 429, description = "Too many requests", body = ErrorDocument),
    ),
    security(("reader" = []))
)]
pub(super) async fn source(
    State(api): State<Arc<Api>>,
    Asked(NoParameters {}): Asked<NoParameters>,
) -> Json<SourceDocument> {
    let bundle = api.about.bundle.clone();
    let kind = if bundle.is_some() { SourceKind::Bundle } else { SourceKind::Collector };
    Json(SourceDocument { kind, bundle })
}

/// The file from its beginning, and its length.
fn whole(out: BufWriter<File>) -> io::Result<(File, u64)> {
    let mut file = out.into_inner().map_err(io::IntoInnerError::into_error)?;
    let bytes = file.stream_position()?;
    file.rewind()?;
    Ok((file, bytes))
}

/// The content of a file, read as it is sent.
fn pieces(file: File) -> impl futures_util::Stream<Item = io::Result<Bytes>> {
    unfold(Some(file), |file| async move {
        let mut file = file?;
        let read = tokio::task::spawn_blocking(move || {
            let mut piece = Vec::with_capacity(PIECE_BYTES);
            let read = file.by_ref().take(PIECE_BYTES as u64).read_to_end(&mut piece);
            read.map(|_| (piece, file))
        });
        match read.await.map_err(io::Error::other).flatten() {
            Ok((piece, _)) if piece.is_empty() => None,
            Ok((piece, file)) => Some((Ok(Bytes::from(piece)), Some(file))),
            Err(error) => Some((Err(error), None)),
        }
    })
}

/// Such as `twixt-paris-rome-2024-01-31T100000Z.twxb`: only what every system takes as the name of a file.
fn file_name(segment: &Segment, span: Span) -> String {
    let plain = |text: &str| -> String {
        let letters = text.chars().take(NAME_LETTERS_MAX);
        let safe = |letter: char| letter.is_ascii_alphanumeric() || letter == '-';
        letters.map(|letter| if safe(letter) { letter } else { '_' }).collect()
    };
    let start = twixt_history::moment_text(span.start).replace(':', "");
    let start: String = start.chars().filter(char::is_ascii_graphic).collect();
    let start = start.split('.').next().unwrap_or_default().trim_end_matches('Z');
    let [upstream, downstream] =
        [&segment.upstream.0, &segment.downstream.0].map(|name| plain(name));
    format!("twixt-{upstream}-{downstream}-{start}Z.twxb")
}

#[cfg(test)]
mod tests {
    use twixt_model::{PointId, Timestamp};

    use super::*;

    #[test]
    fn names_of_files_are_harmless() {
        let check = |upstream: &str, expected: &str| {
            let point = |name: &str| PointId(name.to_owned());
            let segment = Segment { upstream: point(upstream), downstream: point("b") };
            let span = Span::at(Timestamp::from_nanos(1_706_695_200_123_456_789));
            assert_eq!(file_name(&segment, span), format!("twixt-{expected}-b-{TIME}.twxb"));
        };
        const TIME: &str = "2024-01-31T100000Z";
        check("paris", "paris");
        check("../etc/\"; rm", "___etc____rm");
        check(&"a".repeat(300), &"a".repeat(40));
        check("zürich\r\nx: y", "z_rich__x__y");
    }
}
