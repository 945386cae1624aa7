//! The client of a request on the service's own port, as axum knows it.

use std::net::SocketAddr;

use axum::extract::ConnectInfo;
use http::Version;
use http::request::Parts;

use crate::error::EndpointError;

/// Refuses requests from other machines, and those that show signs of a proxy.
pub(crate) fn check(request: &Parts) -> Result<(), EndpointError> {
    let peer = request.extensions.get::<ConnectInfo<SocketAddr>>();
    let peer = peer.ok_or(EndpointError::Forbidden(
        "it is not known who asks: serve the app with \
         into_make_service_with_connect_info::<SocketAddr>(); on a Unix socket, where nobody has an address, set a \
         token with DebugEndpoints::token",
    ))?;
    if !peer.0.ip().to_canonical().is_loopback() {
        return Err(EndpointError::Forbidden(
            "these endpoints answer to this machine alone: ask from there, or set a token",
        ));
    }
    // nginx before 1.29.7 can be seen by its HTTP/1.0. Later versions speak HTTP/1.1 and add no header, like HAProxy
    // and every TCP proxy. So this check finds only some mistakes; the author has vouched that there are none.
    let headers = &request.headers;
    if request.version < Version::HTTP_11 || headers.keys().any(|name| is_of_proxies(name.as_str()))
    {
        return Err(EndpointError::Forbidden(
            "this request came through a proxy (its headers or HTTP/1.0 say so), so anybody may have sent it: \
             set a token with DebugEndpoints::token, and do not call trust_loopback()",
        ));
    }
    Ok(())
}

/// Headers that proxies and load balancers add, in lower case; a name that ends with a hyphen is a prefix of several.
const OF_PROXIES: &[&str] = &[
    "akamai-",
    "cdn-loop",
    "cf-",
    "client-ip",
    "eagleeye-",
    "fastly-",
    "fly-",
    "forwarded",
    "forwarded-for",
    "incap-",
    "proxy-connection",
    "true-client-ip",
    "uber-trace-id",
    "via",
    "wl-proxy-client-ip",
    "x-akamai-",
    "x-amz-cf-",
    "x-amzn-",
    "x-appengine-",
    "x-arr-",
    "x-azure-",
    "x-b3-",
    "x-client-ip",
    "x-cloud-trace-context",
    "x-cluster-client-ip",
    "x-correlation-id",
    "x-edge-",
    "x-envoy-",
    "x-forwarded",
    "x-forwarded-",
    "x-host",
    "x-iinfo",
    "x-nf-",
    "x-original-",
    "x-originating-ip",
    "x-proxyuser-ip",
    "x-real-ip",
    "x-remote-",
    "x-request-id",
    "x-request-start",
    "x-scheme",
    "x-sucuri-",
    "x-varnish",
    "x-vercel-",
];

/// Returns whether proxies and load balancers add a header of this name, which is in lower case.
fn is_of_proxies(name: &str) -> bool {
    OF_PROXIES
        .iter()
        .any(|known| name == *known || known.ends_with('-') && name.starts_with(known))
}
