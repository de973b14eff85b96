//! `/v1/live`: estimates as they come, as server-sent events.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::response::sse::{Event, KeepAlive, Sse};
use futures_util::Stream;
use futures_util::stream::unfold;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;

use super::documents::{EstimateDocument, GapDocument};
use super::parameters::{Asked, NoParameters};
use super::{Api, ErrorDocument};
use crate::history::LiveEvent;
use crate::stop::StopRequest;

/// A comment is sent after this much silence, so that the connection is not considered dead.
const KEEP_ALIVE: Duration = Duration::from_secs(10);

/// Estimates as they come: events `estimate`, `gap` and `warning`, and `missed` with a number if
/// the reader was too slow. A connection ends after ten minutes; clients of server-sent events
/// reconnect.
#[utoipa::path(
    get,
    path = "/v1/live",
    responses(
        (
            status = 200,
            description = "A stream of events",
            body = String,
            content_type = "text/event-stream"
        ),
        (status = 400, description = "This request has no parameters", body = ErrorDocument),
        (status = 401, description = "No valid reader token", body = ErrorDocument),
        (status = 429, description = "Too many requests", body = ErrorDocument),
    ),
    security(("reader" = []))
)]
pub(super) async fn live(
    State(api): State<Arc<Api>>,
    Asked(NoParameters {}): Asked<NoParameters>,
) -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    let following = (api.estimates.live.subscribe(), api.stop.clone());
    let events = unfold(following, |(mut receiver, stop)| async move {
        let event = next(&mut receiver, &stop).await?;
        Some((Ok(event), (receiver, stop)))
    });
    Sse::new(events).keep_alive(KeepAlive::new().interval(KEEP_ALIVE))
}

/// The next event; `None` when there will be no more.
async fn next(receiver: &mut Receiver<LiveEvent>, stop: &StopRequest) -> Option<Event> {
    let received = tokio::select! {
        received = receiver.recv() => received,
        () = stop.requested() => return None,
    };
    match received {
        Ok(LiveEvent::Row(row)) if row.is_gap() => {
            Some(event("gap", serde_json::to_string(&GapDocument::from(row.as_ref()))))
        }
        Ok(LiveEvent::Row(row)) => {
            Some(event("estimate", serde_json::to_string(&EstimateDocument::from(row.as_ref()))))
        }
        Ok(LiveEvent::Warning(kind, text)) => {
            let document = serde_json::json!({ "kind": kind, "warning": text.as_ref() });
            Some(event("warning", Ok(document.to_string())))
        }
        Err(RecvError::Lagged(missed)) => {
            let document = serde_json::json!({ "missed": missed });
            Some(event("missed", Ok(document.to_string())))
        }
        Err(RecvError::Closed) => None,
    }
}

fn event(name: &str, document: serde_json::Result<String>) -> Event {
    // JSON has no line ends.
    Event::default().event(name).data(document.expect("texts and numbers make JSON"))
}
