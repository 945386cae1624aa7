//! The decoder beside hyper's, on whole answers and on damaged copies of them, and at every split.

use std::time::Duration;

use http_body_util::{BodyExt, Empty};
use hyper::body::Bytes;
use hyper_util::rt::TokioIo;
use tokio::io::AsyncWriteExt;

use super::*;

/// Pieces that mean something in an answer.
const TELLING: [&[u8]; 14] = [
    b"\r",
    b"\n",
    b"\r\n",
    b"\r\n\r\n",
    b":",
    b";",
    b",",
    b"0",
    b"a",
    b"f",
    b"X",
    b" ",
    b"\t",
    b"\0",
];

/// Status, body, and whether the connection may be used again.
type Read = Result<(u16, Vec<u8>, bool), Failure>;

/// What is only an error where the bytes come together: a split may end the answer before them.
const MORE: Failure = Failure::Invalid("bytes after the answer's end");

/// What the decoder makes of these pieces, and then of the connection's end.
fn decoded(pieces: &[&[u8]]) -> Read {
    let mut decoder = Decoder::new(1 << 20);
    let mut answer = None;
    'pieces: for piece in pieces {
        let mut piece = *piece;
        while !piece.is_empty() {
            let room = decoder.room();
            let count = room.len().min(piece.len());
            room[..count].copy_from_slice(&piece[..count]);
            piece = &piece[count..];
            answer = decoder.advance(count)?;
            if answer.is_some() {
                break 'pieces;
            }
        }
    }
    let answer = answer.map_or_else(|| decoder.close(), Ok)?;
    let body = decoder.body(&answer).to_vec();
    Ok((answer.status, body, answer.reusable))
}

#[track_caller]
fn is_the_same_at_every_split(name: &str, bytes: &[u8]) {
    let whole = decoded(&[bytes]);
    for at in 0..=bytes.len() {
        let (first, second) = bytes.split_at(at);
        let split = decoded(&[first, second]);
        let is_same = split == whole || whole == Err(MORE) && split.is_ok();
        assert!(is_same, "{name} at {at}: {split:?}, whole {whole:?}");
    }
}

/// Status and body by hyper, or `None` where it refuses.
fn by_hyper(runtime: &tokio::runtime::Runtime, bytes: &[u8]) -> Option<(u16, Vec<u8>)> {
    runtime.block_on(async {
        let (client, mut server) = tokio::io::duplex(1 << 20);
        let handshake = hyper::client::conn::http1::handshake(TokioIo::new(client)).await;
        let (mut sender, connection) = handshake.ok()?;
        let connection = tokio::spawn(connection);
        let request = hyper::Request::get("/").header("host", "x");
        let request = request.body(Empty::<Bytes>::new()).ok()?;
        let asked = sender.send_request(request);
        let answered = async {
            // After the request, or hyper would take it for an answer to nothing.
            tokio::task::yield_now().await;
            server.write_all(bytes).await.ok()?;
            server.shutdown().await.ok()
        };
        let (answer, _) = tokio::join!(asked, answered);
        let read = async {
            let answer = answer.ok()?;
            let status = answer.status().as_u16();
            let body = answer.into_body().collect().await.ok()?.to_bytes();
            Some((status, body.to_vec()))
        };
        let read = tokio::time::timeout(Duration::from_secs(10), read).await;
        connection.abort();
        read.expect("hyper does not hang")
    })
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime")
}

/// Answers of several kinds, by their names.
fn answers() -> Vec<(String, Vec<u8>)> {
    let files = std::fs::read_dir("tests/answers").expect("a folder of answers");
    let answer = |file: std::fs::DirEntry| {
        let bytes = std::fs::read(file.path()).expect("an answer");
        (file.file_name().to_string_lossy().into_owned(), bytes)
    };
    files.map(|file| answer(file.expect("a file"))).collect()
}

#[test]
fn the_answers_are_read_as_hyper_reads_them_at_every_split() {
    let runtime = runtime();
    for (name, bytes) in answers() {
        is_the_same_at_every_split(&name, &bytes);
        let own = decoded(&[&bytes]).map(|(status, body, _)| (status, body));
        assert_eq!(own.ok(), by_hyper(&runtime, &bytes), "{name}");
    }
}

/// Where both take a damaged answer for whole they take it for the same.
#[test]
fn a_damaged_answer_is_refused_or_read_as_hyper_reads_it() {
    let runtime = runtime();
    let mut both = 0;
    for (_, whole) in answers() {
        for at in 0..whole.len() {
            let piece = TELLING[at % TELLING.len()];
            let (before, after) = whole.split_at(at);
            for damaged in [
                before.to_vec(),
                [before, piece, after].concat(),
                [before, piece, &after[1..]].concat(),
            ] {
                let shown = damaged.escape_ascii().to_string();
                is_the_same_at_every_split(&shown, &damaged);
                if let (Ok((status, body, _)), Some(right)) =
                    (decoded(&[&damaged]), by_hyper(&runtime, &damaged))
                {
                    assert_eq!((status, body), right, "{shown}");
                    both += 1;
                }
            }
        }
    }
    assert!(both > 100, "only {both} were compared");
}
