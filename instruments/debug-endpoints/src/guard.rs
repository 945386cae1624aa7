//! Access: a caller with the token may ask. Without a token, the listener answers programs and pages of this machine,
//! and the router answers nobody, unless its author trusts everything that connects from this machine.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::header::{self, HeaderMap};
use http::request::Parts;
use http::uri::Authority;

use crate::answer::Answer;
use crate::error::{EndpointError, TokenError};
use crate::page;
#[cfg(feature = "axum")]
use crate::peer;

/// Condition that a request must meet.
#[derive(Debug, Clone)]
pub(crate) enum Guard {
    /// The request must have the token. That is enough, wherever the request comes from.
    Token(Token),
    /// The listener is on loopback already, so only pages of other sites, which could make a browser ask, are refused.
    OwnListener,
    /// Every request is refused. The port is the service's own, which others are meant to reach. A proxy on this
    /// machine passes everybody's requests on from here, and may leave no trace of it, so nothing in a request is
    /// enough.
    #[cfg(feature = "axum")]
    Closed,
    /// Requests from this machine are answered, since the author vouches for them. A request that shows signs of a
    /// proxy is still refused.
    #[cfg(feature = "axum")]
    TrustedLoopback,
}

/// Token that a header can carry: visible ASCII, with spaces only inside.
#[derive(Clone)]
pub(crate) struct Token(String);

impl Token {
    /// Makes a token of `text`, without the white space around it, which a file or a variable often has.
    pub(crate) fn new(text: &str) -> Result<Self, TokenError> {
        let token = text.trim();
        if token.is_empty() {
            return Err(TokenError::Empty);
        }
        if let Some(place) = token
            .chars()
            .position(|c| c != ' ' && !c.is_ascii_graphic())
        {
            return Err(TokenError::NotAscii { place: place + 1 });
        }
        Ok(Self(token.to_owned()))
    }
}

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token(…)")
    }
}

impl Guard {
    /// Returns the answer to a request that may not ask.
    pub(crate) fn refusal(&self, request: &Parts) -> Option<Answer> {
        match self.authorize(request) {
            Ok(()) => None,
            // The page holds no data, and asks its reader for the token.
            Err(EndpointError::NoToken) if page::is_asked_for(request) => Some(page::answer()),
            Err(error) => Some(error.into()),
        }
    }

    fn authorize(&self, request: &Parts) -> Result<(), EndpointError> {
        match self {
            Self::Token(token) => return check_token(&request.headers, &token.0),
            Self::OwnListener => {}
            #[cfg(feature = "axum")]
            Self::Closed => {
                return Err(EndpointError::Forbidden(
                    "these endpoints are on the service's own port and have no token, so they answer nobody: a proxy \
                     on this machine would ask for everybody. Serve them with DebugEndpoints::listen(\"127.0.0.1:6060\") \
                     in place of router(), or set DebugEndpoints::token; trust_loopback() is for a port that no proxy \
                     passes requests to",
                ));
            }
            #[cfg(feature = "axum")]
            Self::TrustedLoopback => peer::check(request)?,
        }
        refuse_foreign_pages(request)
    }
}

fn check_token(headers: &HeaderMap, token: &str) -> Result<(), EndpointError> {
    match given_token(headers) {
        Some(given) if constant_time_eq(&given, token) => Ok(()),
        _ => Err(EndpointError::NoToken),
    }
}

/// Returns the token that a request was sent with, right or wrong.
fn given_token(headers: &HeaderMap) -> Option<String> {
    let given = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (kind, rest) = given.split_once(' ')?;
    if kind.eq_ignore_ascii_case("bearer") {
        return Some(rest.trim().to_owned());
    }
    // `http://any:TOKEN@host/` is the form that `go tool pprof` and browsers can send.
    if kind.eq_ignore_ascii_case("basic") {
        let decoded = STANDARD.decode(rest.trim()).ok()?;
        let decoded = String::from_utf8(decoded).ok()?;
        let (_, password) = decoded.split_once(':')?;
        return Some(password.to_owned());
    }
    None
}

/// Returns whether both are equal. It takes the same time wherever they differ, so that the time does not reveal how
/// much of a guess was right.
fn constant_time_eq(one: &str, other: &str) -> bool {
    let mut differences = 0;
    for (one, other) in one.bytes().zip(other.bytes()) {
        differences |= one ^ other;
    }
    one.len() == other.len() && std::hint::black_box(differences) == 0
}

/// Refuses requests of other sites' pages. Such a page can make a browser of this machine ask. If the site's own name
/// resolves to this machine (DNS rebinding), the page could read the answer.
fn refuse_foreign_pages(request: &Parts) -> Result<(), EndpointError> {
    let headers = &request.headers;
    // HTTP/2 has the name in the address instead. A request with several names is refused if one of them is another's.
    let mut names: Vec<&str> = Vec::new();
    for host in headers.get_all(header::HOST) {
        names.push(host.to_str().unwrap_or_default());
    }
    names.extend(request.uri.authority().map(Authority::as_str));
    if names.is_empty() || !names.into_iter().all(is_this_machine) {
        return Err(EndpointError::Forbidden(
            "ask for it as localhost, 127.0.0.1 or [::1], or set a token",
        ));
    }
    let says = |name: &str, what: &str| headers.get_all(name).iter().any(|value| value == what);
    // Pages on other ports of this machine are of the same site. A link that somebody follows is fine: the page that it is
    // on cannot read the answer.
    let is_of_other = says("sec-fetch-site", "cross-site") || says("sec-fetch-site", "same-site");
    if is_of_other && !says("sec-fetch-dest", "document") {
        return Err(EndpointError::Forbidden(
            "a page of another site or port asks for it: open it in a separate tab",
        ));
    }
    Ok(())
}

/// Returns whether a host, with or without a port, is a name of loopback that no DNS server can lead elsewhere.
fn is_this_machine(host: &str) -> bool {
    let end = if host.starts_with('[') {
        host.find(']').map(|end| end + 1)
    } else {
        host.find(':')
    };
    let (name, port) = host.split_at(end.unwrap_or(host.len()));
    if !port.is_empty() && !is_port(port) {
        return false;
    }
    let address = if let Some(name) = name.strip_prefix('[')
        && let Some(name) = name.strip_suffix(']')
    {
        name.parse::<Ipv6Addr>().map(IpAddr::V6)
    } else {
        name.parse::<Ipv4Addr>().map(IpAddr::V4)
    };
    if let Ok(address) = address {
        return address.to_canonical().is_loopback();
    }
    let name = name.strip_suffix('.').unwrap_or(name);
    name.eq_ignore_ascii_case("localhost")
}

/// Returns whether it is a colon and a port's number.
fn is_port(text: &str) -> bool {
    match text.strip_prefix(':') {
        Some(port) => port.parse::<u16>().is_ok() && !port.starts_with('+'),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    fn is_answered(uri: &str, headers: &[(&str, &str)]) -> bool {
        let mut request = Request::builder().uri(uri);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let (request, ()) = request.body(()).expect("a request").into_parts();
        Guard::OwnListener.authorize(&request).is_ok()
    }

    #[test]
    fn all_hosts_of_a_request_are_of_this_machine() {
        let (own, other) = (("host", "localhost:6060"), ("host", "rebound.example"));
        assert!(is_answered("http://localhost:8080/debug", &[]));
        assert!(is_answered("/debug", &[own]));
        assert!(is_answered("http://127.0.0.1:6060/debug", &[own]));
        for (uri, headers) in [
            ("/debug", &[][..]),
            ("http://rebound.example/debug", &[]),
            ("http://rebound.example/debug", &[own]),
            ("http://localhost/debug", &[other]),
            ("/debug", &[own, other]),
            ("/debug", &[other, own]),
        ] {
            assert!(!is_answered(uri, headers), "{uri} {headers:?}");
        }
    }

    #[test]
    fn pages_of_other_sites_and_ports_start_nothing_and_links_may_be_followed() {
        let own = ("host", "localhost:6060");
        for site in ["cross-site", "same-site"] {
            let (site, none) = (("sec-fetch-site", site), ("sec-fetch-site", "none"));
            let (image, document) = (("sec-fetch-dest", "image"), ("sec-fetch-dest", "document"));
            assert!(!is_answered("/debug/look", &[own, site, image]));
            assert!(!is_answered("/debug/look", &[own, none, site, image]));
            assert!(!is_answered("/debug/look", &[own, site]));
            assert!(is_answered("/debug/look", &[own, site, document]));
        }
        let own_page = ("sec-fetch-site", "same-origin");
        assert!(is_answered(
            "/debug/look",
            &[own, own_page, ("sec-fetch-dest", "empty")]
        ));
        assert!(is_answered("/debug/look", &[own]));
    }
}
