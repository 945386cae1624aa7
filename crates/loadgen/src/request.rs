//! The bytes of a request, built once and sent by every user.

use std::fmt::Write as _;
use std::net::SocketAddr;

use measurement::traffic::Request;

/// `request` to `target`, head and body.
pub(super) fn bytes(target: SocketAddr, request: &Request, keep_alive: bool) -> Vec<u8> {
    let body = request.body.as_deref().unwrap_or_default();
    let has = |name: &str| {
        let mut names = request.headers.iter().map(|(name, _)| name);
        names.any(|other| other.eq_ignore_ascii_case(name))
    };
    // Writing to a String cannot fail.
    let mut head = format!("{} {} HTTP/1.1\r\n", request.method, request.path);
    if !has("host") {
        let _ = write!(head, "host: {target}\r\n");
    }
    if !has("user-agent") {
        head += "user-agent: workshop\r\n";
    }
    if !keep_alive {
        head += "connection: close\r\n";
    }
    for (name, value) in &request.headers {
        let _ = write!(head, "{name}: {value}\r\n");
    }
    if request.body.is_some() || !matches!(&*request.method, "GET" | "DELETE") {
        let _ = write!(head, "content-length: {}\r\n", body.len());
    }
    (head + "\r\n" + body).into_bytes()
}

#[cfg(test)]
mod tests {
    use measurement::load::Exchange;

    use super::*;

    fn text(method: &str, body: Option<&str>, keep_alive: bool) -> String {
        let exchange = Exchange {
            method: method.to_owned(),
            body: body.map(str::to_owned),
            ..Exchange::get("/read?n=1", "")
        };
        let target = "127.0.0.1:8080".parse().expect("an address");
        String::from_utf8(bytes(target, &(&exchange).into(), keep_alive)).expect("text")
    }

    #[test]
    fn a_plain_get_has_no_length() {
        assert_eq!(
            text("GET", None, true),
            "GET /read?n=1 HTTP/1.1\r\nhost: 127.0.0.1:8080\r\nuser-agent: workshop\r\n\r\n"
        );
    }

    #[test]
    fn a_body_brings_its_length_and_type() {
        let json = text("POST", Some("{\"a\":1}"), false);
        assert!(json.contains("\r\nconnection: close\r\n"), "{json}");
        assert!(
            json.contains("\r\ncontent-type: application/json\r\n"),
            "{json}"
        );
        assert!(
            json.ends_with("\r\ncontent-length: 7\r\n\r\n{\"a\":1}"),
            "{json}"
        );
        assert!(text("POST", None, true).contains("content-length: 0\r\n"));
    }

    #[test]
    fn headers_are_sent_and_take_the_place_of_our_own() {
        let mut request = Request::from(&Exchange::get("/", ""));
        request.headers = vec![
            ("Host".to_owned(), "shop.example".to_owned()),
            ("authorization".to_owned(), "Bearer x".to_owned()),
        ];
        let target = "127.0.0.1:8080".parse().expect("an address");
        let sent = String::from_utf8(bytes(target, &request, true)).expect("text");
        assert_eq!(
            sent,
            "GET / HTTP/1.1\r\nuser-agent: workshop\r\nHost: shop.example\r\n\
             authorization: Bearer x\r\n\r\n"
        );
    }
}
