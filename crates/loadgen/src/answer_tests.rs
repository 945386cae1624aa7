use super::*;

/// Feeds `text` in pieces of `step` bytes and returns the first answer and its body.
fn read(text: &str, step: usize) -> Result<Option<(Answer, String)>, Failure> {
    let mut decoder = Decoder::new(LARGEST);
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

/// Checks the body that is read of an answer, whole and in pieces.
#[track_caller]
fn reads(text: &str, expected: &str) {
    for step in [usize::MAX, 1, 2, 3, 7] {
        let (_, body) = read(text, step).expect("valid").expect("complete");
        assert_eq!(body, expected, "in pieces of {step}");
    }
}

#[track_caller]
fn refuses(text: &str, expected: &str) {
    let failure = read(text, usize::MAX).expect_err("must be refused");
    assert_eq!(failure.to_string(), format!("invalid: {expected}"));
}

const OK: &str = "HTTP/1.1 200 OK\r\n";

#[test]
fn content_length() {
    reads(&format!("{OK}Content-Length: 5\r\n\r\nhello"), "hello");
    reads(&format!("{OK}content-length: 0\r\n\r\n"), "");
    reads("HTTP/1.1 200\r\ncontent-length: 1\r\n\r\n6", "6");
}

#[test]
fn long_bodies_grow_the_buffer() {
    let long = "x".repeat(100_000);
    let text = format!("{OK}content-length: 100000\r\n\r\n{long}");
    let (_, read) = read(&text, 1000).expect("valid").expect("complete");
    assert_eq!(read, long);
}

#[test]
fn chunks() {
    let head = format!("{OK}Transfer-Encoding: chunked\r\n\r\n");
    reads(&format!("{head}0\r\n\r\n"), "");
    let two = format!("{head}5\r\nhello\r\n7;note=x\r\n, world\r\n0\r\n\r\n");
    reads(&two, "hello, world");
    reads(&format!("{head}1\r\n6\r\n0\r\nsum: 1\r\n\r\n"), "6");
    for broken in ["z\r\n", "1\r\n666\r\n"] {
        refuses(&format!("{head}{broken}"), "broken chunk in an answer");
    }
    // Chunks decide where both are given (RFC 9112, section 6.3).
    let both = "content-length: 9\r\ntransfer-encoding: chunked\r\n\r\n1\r\n6\r\n0\r\n\r\n";
    reads(&format!("{OK}{both}"), "6");
}

#[test]
fn no_body_where_none_may_be() {
    reads("HTTP/1.1 204 No Content\r\n\r\n", "");
    reads("HTTP/1.1 304 Not Modified\r\ncontent-length: 7\r\n\r\n", "");
}

#[test]
fn interim_answers_are_skipped() {
    let interim = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n";
    reads(&format!("{interim}{OK}content-length: 1\r\n\r\n6"), "6");
    let switch = "HTTP/1.1 101 Switching Protocols\r\n\r\n";
    refuses(switch, "answer switches protocols");
}

#[test]
fn a_body_may_end_with_the_connection() {
    let mut decoder = Decoder::new(LARGEST);
    let text = b"HTTP/1.1 200 OK\r\n\r\nhello";
    decoder.room()[..text.len()].copy_from_slice(text);
    assert_eq!(decoder.advance(text.len()), Ok(None));
    let answer = decoder.close().expect("complete");
    assert_eq!(decoder.body(&answer), b"hello");
    assert!(!answer.reusable);
}

#[test]
fn a_close_in_the_middle_is_told_from_one_before() {
    let mut decoder = Decoder::new(LARGEST);
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

/// However it is sent, and before more of it is kept than it may have.
#[test]
fn an_answer_that_is_too_large_is_refused() {
    const LIMIT: usize = 1 << 20;
    let long = "x".repeat(64);
    for text in [
        format!("{OK}content-length: 99999999999\r\n\r\n"),
        format!("{OK}transfer-encoding: chunked\r\n\r\nfffffff\r\n"),
        format!("{OK}\r\n{}", long.repeat(LIMIT / 64)),
        format!(
            "{OK}transfer-encoding: chunked\r\n\r\n{}",
            "1\r\n6\r\n".repeat(LIMIT / 6)
        ),
    ] {
        let mut decoder = Decoder::new(LIMIT);
        let mut rest = text.as_bytes();
        let failure = loop {
            assert!(!rest.is_empty(), "{} bytes were taken", text.len());
            let room = decoder.room();
            let count = room.len().min(rest.len()).min(1000);
            room[..count].copy_from_slice(&rest[..count]);
            rest = &rest[count..];
            if let Err(failure) = decoder.advance(count) {
                break failure;
            }
        };
        assert_eq!(failure.to_string(), "answered more than 1 MiB");
        assert!(decoder.bytes.len() <= 2 * LIMIT, "{}", decoder.bytes.len());
    }
    assert_eq!(
        [1, 16, 64, 1024, 100_000].map(largest),
        [64, 64, 16, 1, 1].map(|mib| mib << 20)
    );
}

#[test]
fn nonsense_is_refused() {
    refuses("SSH-2.0-OpenSSH_9.2\r\n", "answer is not HTTP/1.1");
    let many = "x: y\r\n".repeat(70);
    for (rest, expected) in [
        (
            "content-length: six\r\n\r\n",
            "content-length is not a number",
        ),
        (
            "content-length: 1\r\ncontent-length: 2\r\n\r\n",
            "two different content-lengths",
        ),
        (
            "content-length: 1\r\n\r\n66",
            "bytes after the answer's end",
        ),
        (&format!("{many}\r\n"), "answer with over 64 headers"),
        (
            &format!("x: {}", "x".repeat(70_000)),
            "answer with a head of over 64 KiB",
        ),
    ] {
        refuses(&format!("{OK}{rest}"), expected);
    }
}
