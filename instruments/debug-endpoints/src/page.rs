//! The page for browsers at `/debug`: one file, the same for everybody, which holds no data.
//!
//! It asks the endpoints for everything that it shows, with the token that its reader enters. So it may be given to
//! anybody who may know that there are debug endpoints, and the answer 401 says that, too.

use bytes::Bytes;
use http::header::{self, HeaderMap};
use http::request::Parts;
use http::{HeaderValue, Method};

use crate::answer::Answer;

/// The whole page. Both hashes below are of parts of it.
const PAGE: &str = concat!(
    "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<title>Debug endpoints</title>\n",
    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n",
    "<meta name=\"color-scheme\" content=\"light dark\">\n",
    // Without it, a browser would ask the service for an icon.
    "<link rel=\"icon\" href=\"data:,\">\n<style>",
    include_str!("page/base.css"),
    include_str!("page/page.css"),
    "</style>\n</head>\n",
    include_str!("page/page.html"),
    "<script>",
    include_str!("page/page.js"),
    "</script>\n</body>\n</html>\n",
);

/// Content security policy: this script and this style, requests to this origin, and pictures that the script made of
/// answers. Nothing else is loaded or run, and no other page may frame this one. A test computes both hashes.
const POLICY: &str = "default-src 'none'; \
    script-src 'sha256-OXwMmWfbx5n1ZCyoqH1jiD8ESjzEuTkhuysB3NO7boI='; \
    style-src 'sha256-NR9OgMioyYHT8mzQWO0077OtAySb+QOHF9ZnYsm3ZCc='; \
    connect-src 'self'; img-src blob: data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// Returns whether a client wants the page, as browsers do. `curl` and collectors do not, and get text.
pub(crate) fn is_wanted(headers: &HeaderMap) -> bool {
    let mut accepted = headers.get_all(header::ACCEPT).iter();
    accepted.any(|value| {
        value
            .to_str()
            .is_ok_and(|value| value.contains("text/html"))
    })
}

/// Returns whether a request is a browser's for the page, at any of its addresses.
pub(crate) fn is_asked_for(request: &Parts) -> bool {
    request.method == Method::GET
        && matches!(request.uri.path(), "/" | "/debug" | "/debug/")
        && is_wanted(&request.headers)
}

/// Returns the page.
pub(crate) fn answer() -> Answer {
    // The same address answers others with text.
    guarded(PAGE, POLICY).with(header::VARY, HeaderValue::from_static("Accept"))
}

/// Makes an answer of a page with this content security policy. Browsers do not keep it.
pub(crate) fn guarded(page: impl Into<Bytes>, policy: &'static str) -> Answer {
    let headers = [
        (header::CONTENT_SECURITY_POLICY, policy),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CACHE_CONTROL, "no-store"),
    ];
    let mut answer = Answer::of("text/html; charset=utf-8", page);
    for (name, value) in headers {
        answer = answer.with(name, HeaderValue::from_static(value));
    }
    answer
}

#[cfg(test)]
mod tests {
    use base64::Engine;
    use base64::engine::general_purpose::STANDARD;
    use sha2::{Digest, Sha256};

    use super::*;

    const STYLE: &str = concat!(include_str!("page/base.css"), include_str!("page/page.css"));

    #[test]
    fn the_policy_has_the_hashes_of_script_and_style() {
        for text in [include_str!("page/page.js"), STYLE] {
            let hash = STANDARD.encode(Sha256::digest(text));
            assert!(
                POLICY.contains(&format!("'sha256-{hash}'")),
                "a file of the page was changed: write 'sha256-{hash}' into POLICY"
            );
        }
    }

    #[test]
    fn script_and_style_cannot_end_early() {
        assert!(!include_str!("page/page.js").contains("</script"));
        assert!(!STYLE.contains("</style"));
    }
}
