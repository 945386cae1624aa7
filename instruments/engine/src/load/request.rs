//! A request, built once and sent by every user.

use crate::traffic::Request;
use hyper::body::Bytes;
use hyper::header::{
    CONNECTION, CONTENT_LENGTH, COOKIE, HOST, HeaderName, HeaderValue, USER_AGENT,
};
use hyper::http::{self, Uri};

use super::error::GeneratorError;
use super::target::Target;

/// Builds `request` to `target`, head and body.
pub(super) fn prepare(
    target: &Target,
    request: &Request,
    keep_alive: bool,
) -> Result<hyper::Request<Bytes>, GeneratorError> {
    build(target, request, keep_alive).map_err(|_| {
        GeneratorError::Load("HTTP does not allow its method, path or one of its headers")
    })
}

fn build(
    target: &Target,
    request: &Request,
    keep_alive: bool,
) -> Result<hyper::Request<Bytes>, http::Error> {
    let body = request.body.clone().unwrap_or_default();
    let length = body.len();
    let mut built = hyper::Request::builder()
        .method(&*request.method)
        .uri(&*request.path)
        .body(Bytes::from(body))?;
    let headers = built.headers_mut();
    for (name, value) in &request.headers {
        headers.append(
            HeaderName::try_from(name.as_str())?,
            HeaderValue::try_from(value.as_str())?,
        );
    }
    for (name, value) in &*target.headers {
        let mut value = value.clone();
        // A user agent sends one `cookie` header with all cookies.
        if name == COOKIE.as_str()
            && let Some(own) = headers.get(COOKIE)
            && let Ok(own) = own.to_str()
        {
            value = format!("{own}; {value}");
        }
        headers.insert(HeaderName::try_from(name.as_str())?, value.try_into()?);
    }
    if !headers.contains_key(HOST) {
        headers.insert(HOST, target.address.to_string().try_into()?);
    }
    headers
        .entry(USER_AGENT)
        .or_insert(HeaderValue::from_static("duel"));
    if !keep_alive && !target.protocol.http2 {
        headers.insert(CONNECTION, HeaderValue::from_static("close"));
    }
    if request.body.is_some() || !matches!(&*request.method, "GET" | "DELETE") {
        headers.insert(CONTENT_LENGTH, length.into());
    }
    if target.protocol.http2
        && let Some(host) = built.headers_mut().remove(HOST)
    {
        let scheme = match target.protocol.tls {
            Some(_) => "https",
            None => "http",
        };
        let uri = Uri::builder().scheme(scheme).authority(host.as_bytes());
        *built.uri_mut() = uri.path_and_query(&*request.path).build()?;
    }
    Ok(built)
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use super::*;

    fn target() -> Target {
        let address: SocketAddr = "127.0.0.1:8080".parse().expect("an address");
        let mut target = Target::from(address);
        target.headers = [("cookie".to_owned(), "b=2".to_owned())].into();
        target
    }

    fn prepared(request: &Request) -> hyper::Request<Bytes> {
        prepare(&target(), request, true).expect("HTTP allows it")
    }

    #[test]
    fn headers_take_the_place_of_our_own() {
        let mut request = Request::get("/");
        let built = prepared(&request);
        assert_eq!(built.headers()[HOST], "127.0.0.1:8080");
        assert_eq!(built.headers()[USER_AGENT], "duel");
        assert!(!built.headers().contains_key(CONTENT_LENGTH));
        assert_eq!(built.headers()[COOKIE], "b=2");
        request.headers = [("Host", "shop.example"), ("Cookie", "a=1")]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into();
        let built = prepared(&request);
        assert_eq!(built.headers()[COOKIE], "a=1; b=2");
        let hosts: Vec<_> = built.headers().get_all(HOST).iter().collect();
        assert_eq!(hosts, ["shop.example"]);
    }

    #[test]
    fn http_2_has_its_host_in_the_address_and_nothing_of_the_connection() {
        let mut target = target();
        target.protocol.http2 = true;
        target.headers = [].into();
        let mut request = Request::get("/a?b=c");
        let uri = |request: &Request| {
            let built = prepare(&target, request, false).expect("HTTP allows it");
            assert_eq!(built.headers().len(), 1, "{:?}", built.headers());
            built.uri().to_string()
        };
        assert_eq!(uri(&request), "http://127.0.0.1:8080/a?b=c");
        request.headers = vec![("host".to_owned(), "shop.example".to_owned())];
        assert_eq!(uri(&request), "http://shop.example/a?b=c");
    }

    #[test]
    fn a_request_without_a_body_that_could_have_one_says_so() {
        let post = Request {
            method: "POST".to_owned(),
            ..Request::get("/")
        };
        assert_eq!(prepared(&post).headers()[CONTENT_LENGTH], "0");
    }
}
