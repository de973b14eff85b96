//! The pages of the dashboard: files that a browser loads before anybody has shown a token.
//!
//! They hold no data. What they show they ask of the API, as every other reader does. They are built
//! from `dashboard/` at the root of the repository, and committed as they are served.

use std::io::Write as _;
use std::sync::OnceLock;

use axum::Router;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use flate2::Compression;
use flate2::write::GzEncoder;
use ring::digest::{SHA256, digest};

/// Nothing but these files and the API may be loaded, and no other page may embed them.
const POLICY: &str = "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors \
                      'none'; object-src 'none'";

/// A file as it was built.
struct Page {
    path: &'static str,
    media_type: &'static str,
    bytes: &'static [u8],
    packed: OnceLock<Packed>,
}

/// A file as it is sent.
struct Packed {
    gzip: Vec<u8>,
    /// Changes when the file does.
    tag: String,
}

const fn page(path: &'static str, media_type: &'static str, bytes: &'static [u8]) -> Page {
    Page { path, media_type, bytes, packed: OnceLock::new() }
}

static PAGES: [Page; 4] = [
    page("/", "text/html; charset=utf-8", include_bytes!("../../../dashboard/dist/index.html")),
    page(
        "/dashboard.js",
        "text/javascript; charset=utf-8",
        include_bytes!("../../../dashboard/dist/dashboard.js"),
    ),
    page(
        "/dashboard.css",
        "text/css; charset=utf-8",
        include_bytes!("../../../dashboard/dist/dashboard.css"),
    ),
    page("/icon.svg", "image/svg+xml", include_bytes!("../../../dashboard/dist/icon.svg")),
];

/// The pages; other paths and methods are for `others`.
pub(crate) fn router(others: &Router) -> Router {
    let add = |router: Router, page: &'static Page| {
        let answer = get(move |headers: HeaderMap| async move { page.answer(&headers) });
        router.route(page.path, answer.fallback_service(others.clone()))
    };
    PAGES.iter().fold(Router::new(), add).fallback_service(others.clone())
}

impl Page {
    fn answer(&self, headers: &HeaderMap) -> Response {
        let packed = self.packed.get_or_init(|| Packed::of(self.bytes));
        let says = |name, part: &str| {
            let value = headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok());
            value.is_some_and(|value| value.contains(part))
        };
        let mut response = if says(header::IF_NONE_MATCH, &packed.tag) {
            StatusCode::NOT_MODIFIED.into_response()
        } else if says(header::ACCEPT_ENCODING, "gzip") {
            ([(header::CONTENT_ENCODING, "gzip")], packed.gzip.clone()).into_response()
        } else {
            self.bytes.into_response()
        };
        let fixed = [
            (header::CONTENT_TYPE, self.media_type),
            (header::CONTENT_SECURITY_POLICY, POLICY),
            (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
            (header::REFERRER_POLICY, "no-referrer"),
            (header::CACHE_CONTROL, "no-cache"),
            (header::VARY, "accept-encoding"),
        ];
        let headers = response.headers_mut();
        headers.extend(fixed.map(|(name, value)| (name, HeaderValue::from_static(value))));
        if let Ok(tag) = HeaderValue::from_str(&packed.tag) {
            headers.insert(header::ETAG, tag);
        }
        response
    }
}

impl Packed {
    fn of(bytes: &[u8]) -> Self {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        let written = encoder.write_all(bytes).and_then(|()| encoder.finish());
        let sum = digest(&SHA256, bytes);
        let sum: String = sum.as_ref()[..8].iter().map(|byte| format!("{byte:02x}")).collect();
        Self { gzip: written.expect("memory takes what is written"), tag: format!("\"{sum}\"") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a page may take on a slow line.
    const BYTES_MAX: usize = 150 << 10;

    #[test]
    fn all_pages_together_are_small() {
        let bytes: usize = PAGES.iter().map(|page| Packed::of(page.bytes).gzip.len()).sum();
        assert!(bytes <= BYTES_MAX, "{bytes} bytes, packed");
    }

    #[test]
    fn pages_load_nothing_from_elsewhere() {
        for page in &PAGES {
            let text = std::str::from_utf8(page.bytes).unwrap();
            let addresses = text.match_indices("//").filter(|(at, _)| text[..*at].ends_with(':'));
            for (at, _) in addresses {
                let rest: String = text[at..].chars().take(40).collect();
                // Names of namespaces and what an error message links to are loaded by nobody.
                let is_name =
                    rest.starts_with("//www.w3.org/") || rest.starts_with("//svelte.dev/");
                assert!(is_name, "{}: {rest}", page.path);
            }
        }
    }
}
