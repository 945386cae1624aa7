use super::*;

/// Feeds `text` in pieces of `step` bytes and returns the first answer and its body.
fn read(text: &str, step: usize) -> Result<Option<(Answer, String)>, Failure> {
    let mut decoder = Decoder::new();
    for piece in text.as_bytes().chunks(step) {
        let mut piece = piece;
        while !piece.is_empty() {
            let room = decoder.room();
            let count = room.len().min(piece.len());
            room[..count].copy_from_slice(&piece[..count]);
            piece = &piece[count..];
            if let Some(answer) = decoder.advance(count)? {
                let body = String::from_utf8_lossy(decoder.body(&answer)).into_owned();
                return Ok(Some((answer, body)));
            }
        }
    }
    Ok(None)
}

fn body(text: &str) -> String {
    let whole = read(text, usize::MAX).expect("valid").expect("complete").1;
    for step in [1, 2, 3, 7] {
        let pieces = read(text, step).expect("valid").expect("complete").1;
        assert_eq!(pieces, whole, "in pieces of {step}");
    }
    whole
}

fn invalid(text: &str) -> String {
    read(text, usize::MAX)
        .expect_err("must be refused")
        .to_string()
}

#[test]
fn content_length() {
    assert_eq!(
        body("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"),
        "hello"
    );
    assert_eq!(body("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"), "");
    assert_eq!(body("HTTP/1.1 200\r\ncontent-length: 1\r\n\r\n6"), "6");
}

#[test]
fn long_bodies_grow_the_buffer() {
    let long = "x".repeat(100_000);
    let text = format!("HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n{long}");
    let (_, read) = read(&text, 1000).expect("valid").expect("complete");
    assert_eq!(read, long);
}

#[test]
fn chunks() {
    let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    assert_eq!(body(&format!("{head}0\r\n\r\n")), "");
    assert_eq!(
        body(&format!(
            "{head}5\r\nhello\r\n7;note=x\r\n, world\r\n0\r\n\r\n"
        )),
        "hello, world"
    );
    assert_eq!(body(&format!("{head}1\r\n6\r\n0\r\nsum: 1\r\n\r\n")), "6");
    assert_eq!(
        invalid(&format!("{head}z\r\n")),
        "invalid: broken chunk in an answer"
    );
    assert_eq!(
        invalid(&format!("{head}1\r\n666\r\n")),
        "invalid: broken chunk in an answer"
    );
    // Chunks decide where both are given (RFC 9112, section 6.3).
    assert_eq!(
        body(
            "HTTP/1.1 200 OK\r\ncontent-length: 9\r\ntransfer-encoding: chunked\r\n\r\n1\r\n6\r\n0\r\n\r\n"
        ),
        "6"
    );
}

#[test]
fn no_body_where_none_may_be() {
    assert_eq!(body("HTTP/1.1 204 No Content\r\n\r\n"), "");
    assert_eq!(
        body("HTTP/1.1 304 Not Modified\r\ncontent-length: 7\r\n\r\n"),
        ""
    );
}

#[test]
fn interim_answers_are_skipped() {
    assert_eq!(
        body(
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\n6"
        ),
        "6"
    );
    assert_eq!(
        invalid("HTTP/1.1 101 Switching Protocols\r\n\r\n"),
        "invalid: answer switches protocols"
    );
}

#[test]
fn a_body_may_end_with_the_connection() {
    let mut decoder = Decoder::new();
    let text = b"HTTP/1.1 200 OK\r\n\r\nhello";
    decoder.room()[..text.len()].copy_from_slice(text);
    assert_eq!(decoder.advance(text.len()), Ok(None));
    let answer = decoder.close().expect("complete");
    assert_eq!(decoder.body(&answer), b"hello");
    assert!(!answer.reusable);
}

#[test]
fn a_close_in_the_middle_is_told_from_one_before() {
    let mut decoder = Decoder::new();
    assert_eq!(decoder.close(), Err(Failure::Closed));
    let text = b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhel";
    decoder.room()[..text.len()].copy_from_slice(text);
    assert_eq!(decoder.advance(text.len()), Ok(None));
    assert_eq!(decoder.close(), Err(Failure::ClosedWithin));
}

#[test]
fn whether_the_connection_lives_on() {
    let reusable = |head: &str| {
        read(&format!("{head}\r\ncontent-length: 0\r\n\r\n"), 9)
            .expect("valid")
            .expect("complete")
            .0
            .reusable
    };
    assert!(reusable("HTTP/1.1 200 OK"));
    assert!(!reusable("HTTP/1.1 200 OK\r\nConnection: Close"));
    assert!(!reusable("HTTP/1.1 200 OK\r\nconnection: foo, close"));
    assert!(!reusable("HTTP/1.0 200 OK"));
    assert!(reusable("HTTP/1.0 200 OK\r\nconnection: keep-alive"));
}

#[test]
fn nonsense_is_refused() {
    assert_eq!(
        invalid("SSH-2.0-OpenSSH_9.2\r\n"),
        "invalid: answer is not HTTP/1.1"
    );
    assert_eq!(
        invalid("HTTP/1.1 200 OK\r\ncontent-length: six\r\n\r\n"),
        "invalid: content-length is not a number"
    );
    assert_eq!(
        invalid("HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n"),
        "invalid: two different content-lengths"
    );
    assert_eq!(
        invalid("HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\n66"),
        "invalid: bytes after the answer's end"
    );
    assert_eq!(
        invalid("HTTP/1.1 200 OK\r\ncontent-length: 99999999999\r\n\r\n"),
        "invalid: answer of over 64 MiB"
    );
    let many = "x: y\r\n".repeat(70);
    assert_eq!(
        invalid(&format!("HTTP/1.1 200 OK\r\n{many}\r\n")),
        "invalid: answer with over 64 headers"
    );
}
