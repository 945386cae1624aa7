//! The bytes of a request, built once and sent by every user.

use std::net::SocketAddr;

use measurement::load::Exchange;

/// The request of `exchange` to `target`, head and body.
pub(super) fn bytes(target: SocketAddr, exchange: &Exchange, keep_alive: bool) -> Vec<u8> {
    let body = exchange.body.as_deref().unwrap_or_default();
    let close = if keep_alive {
        ""
    } else {
        "connection: close\r\n"
    };
    let kind = exchange
        .content_type()
        .map_or_else(String::new, |kind| format!("content-type: {kind}\r\n"));
    let length = if exchange.body.is_none() && matches!(&*exchange.method, "GET" | "DELETE") {
        String::new()
    } else {
        format!("content-length: {}\r\n", body.len())
    };
    format!(
        "{} {} HTTP/1.1\r\nhost: {target}\r\nuser-agent: workshop\r\n{close}{kind}{length}\r\n{body}",
        exchange.method, exchange.path
    )
    .into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(method: &str, body: Option<&str>, keep_alive: bool) -> String {
        let exchange = Exchange {
            method: method.to_owned(),
            body: body.map(str::to_owned),
            ..Exchange::get("/read?n=1", "")
        };
        let target = "127.0.0.1:8080".parse().expect("an address");
        String::from_utf8(bytes(target, &exchange, keep_alive)).expect("text")
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
}
