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
    let host = match headers.get(header::HOST) {
        Some(host) => host.to_str().ok(),
        // HTTP/2 has the name in the address instead.
        None => request.uri.authority().map(Authority::as_str),
    };
    if !is_this_machine(host.unwrap_or_default()) {
        return Err(EndpointError::Forbidden(
            "ask for it as localhost, 127.0.0.1 or [::1], or set a token",
        ));
    }
    let says = |name: &str, what: &str| headers.get(name).is_some_and(|value| value == what);
    // A link that somebody follows is fine: the page that it is on cannot read the answer.
    if says("sec-fetch-site", "cross-site") && !says("sec-fetch-dest", "document") {
        return Err(EndpointError::Forbidden(
            "a page of another site asks for it: open it in a tab of its own",
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

    #[test]
    fn a_host_that_is_in_the_address_alone_counts_and_the_header_counts_more() {
        let ask = |uri: &str, host: Option<&str>| {
            let mut request = Request::builder().uri(uri);
            if let Some(host) = host {
                request = request.header(header::HOST, host);
            }
            let request = request.body(()).expect("a request");
            Guard::OwnListener
                .authorize(&request.into_parts().0)
                .is_ok()
        };
        assert!(ask("http://localhost:8080/debug", None));
        assert!(!ask("http://rebound.example/debug", None));
        assert!(!ask("http://localhost/debug", Some("rebound.example")));
        assert!(!ask("/debug", None));
    }
}
