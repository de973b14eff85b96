//! The description of the interface, for programs that make clients, and for tests.

use axum::http::header;
use axum::response::{IntoResponse, Response};
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::{Modify, OpenApi};

use super::{
    alerts, bundle, documents, estimates, evidence, flows, heatmap, histogram, live, now,
    one_point, problem, totals,
};

/// What may be asked for, and what is answered, as OpenAPI has it.
#[derive(OpenApi)]
#[openapi(
    info(
        title = "twixt collector",
        description = "Delay and loss between points of a network, as stored by a collector. \
             Every answer states the time that it covers and what is missing. Unknown values are \
             null.",
        license(name = "MIT OR Apache-2.0")
    ),
    paths(
        now::points,
        now::segments,
        now::clocks,
        estimates::estimates,
        estimates::gaps,
        alerts::alerts,
        alerts::acknowledge,
        alerts::silence,
        totals::totals,
        flows::flows,
        flows::flow,
        heatmap::heatmap,
        histogram::histogram,
        evidence::evidence,
        one_point::round_trips,
        one_point::reordering,
        one_point::heavy,
        live::live,
        bundle::bundle,
        bundle::source
    ),
    components(schemas(
        documents::EstimatesDocument,
        documents::GapsDocument,
        documents::AlertsDocument,
        documents::TotalsDocument,
        documents::FlowsDocument,
        documents::FlowDocument,
        documents::HeatmapDocument,
        documents::HistogramDocument,
        documents::PointsDocument,
        documents::SegmentsDocument,
        documents::ClocksDocument,
        documents::EvidenceDocument,
        documents::SourceDocument,
        documents::RoundTripsDocument,
        documents::ReorderingDocument,
        documents::HeavyDocument,
        problem::ErrorDocument
    )),
    modifiers(&Tokens)
)]
struct Description;

/// Readers show a token.
struct Tokens;

impl Modify for Tokens {
    fn modify(&self, openapi: &mut utoipa::openapi::OpenApi) {
        let scheme = HttpBuilder::new()
            .scheme(HttpAuthScheme::Bearer)
            .description(Some("The token of a reader: [[reader]] in the configuration"))
            .build();
        let components = openapi.components.get_or_insert_default();
        components.add_security_scheme("reader", SecurityScheme::Http(scheme));
    }
}

/// The description, as JSON.
#[must_use]
pub fn openapi() -> String {
    Description::openapi().to_pretty_json().expect("the description makes JSON") + "\n"
}

pub(super) async fn serve() -> Response {
    ([(header::CONTENT_TYPE, "application/json")], openapi()).into_response()
}
