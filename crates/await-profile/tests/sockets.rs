//! What the profile says of waits for sockets, on both runtimes.
#![allow(missing_docs)]

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};

mod profiled;
use profiled::{assert_waits, profile_of, profile_of_prepared};

async fn accepts() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    listener.accept().await.unwrap();
}

#[test]
fn a_listener() {
    assert_waits(
        &profile_of(accepts),
        "accepts",
        "tokio::net::TcpListener::accept",
    );
}

/// Both ends of a connection, whose buffers hold some kilobytes. With the system's
/// usual ones it takes megabytes until a write has to wait, and until then a request
/// is running or ready.
async fn connection() -> (TcpStream, TcpStream) {
    let listener = TcpSocket::new_v4().unwrap();
    listener.set_recv_buffer_size(4096).unwrap();
    listener.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let listener = listener.listen(1).unwrap();
    let client = TcpSocket::new_v4().unwrap();
    client.set_send_buffer_size(4096).unwrap();
    let client = client.connect(listener.local_addr().unwrap());
    let (client, server) = tokio::join!(client, listener.accept());
    (client.unwrap(), server.unwrap().0)
}

async fn reads_socket((mut client, _server): (TcpStream, TcpStream)) {
    client.read_u8().await.unwrap();
}

#[test]
fn a_socket_read() {
    assert_waits(
        &profile_of_prepared(connection, reads_socket),
        "reads_socket",
        "tokio::net::TcpStream::poll_read",
    );
}

async fn writes_socket((mut client, _server): (TcpStream, TcpStream)) {
    loop {
        client.write_all(&[0; 8192]).await.unwrap();
    }
}

#[test]
fn a_socket_write() {
    assert_waits(
        &profile_of_prepared(connection, writes_socket),
        "writes_socket",
        "tokio::net::TcpStream::poll_write",
    );
}
