//! A service that has run out of file descriptors, in a process of its own.
#![cfg(unix)]

use std::fs::File;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use debug_endpoints::DebugEndpoints;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpSocket;

async fn answer(client: TcpSocket, admin: SocketAddr) -> io::Result<String> {
    let mut stream = client.connect(admin).await?;
    let request = b"GET /debug/metrics HTTP/1.1\r\nHost: localhost\r\n\r\n";
    stream.write_all(request).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.map(|_| answer)
}

#[tokio::test]
async fn the_listener_answers_when_the_service_has_no_descriptors_left() {
    let admin = DebugEndpoints::new()
        .listen("127.0.0.1:0")
        .expect("a free port");
    // The other end of each request is in this process, too, and has its descriptor already.
    let clients: Vec<_> = (0..30)
        .map(|_| TcpSocket::new_v4().expect("a socket"))
        .collect();
    // Once it has answered, the listener has opened all descriptors that it keeps open.
    let first = TcpSocket::new_v4().expect("a socket");
    answer(first, admin).await.expect("an answer");
    let (_, most) = rlimit::Resource::NOFILE.get().expect("a limit");
    rlimit::Resource::NOFILE.set(200, most).expect("lowered");
    let files: Vec<File> = std::iter::from_fn(|| File::open("/dev/null").ok()).collect();
    assert!(!files.is_empty());
    for (number, client) in clients.into_iter().enumerate() {
        let answer = answer(client, admin);
        let answer = tokio::time::timeout(Duration::from_secs(60), answer).await;
        let answer = answer.expect("in time").expect("an answer");
        assert!(answer.starts_with("HTTP/1.1 200"), "{number}: {answer}");
        let told = answer.contains("process_threads ") || !cfg!(target_os = "linux");
        assert!(told, "{number}: {answer}");
    }
}
