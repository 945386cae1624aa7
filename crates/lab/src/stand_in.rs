//! Servers that stand in for those of a real service, each on a thread and a runtime of its own.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};

use tokio::net::{TcpListener, TcpStream};

/// Starts one on a free port, where each connection is left to `serve`.
pub(crate) fn start<S>(
    name: &str,
    serve: impl Fn(TcpStream) -> S + Send + 'static,
) -> io::Result<SocketAddr>
where
    S: Future<Output = ()> + Send + 'static,
{
    let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    listener.set_nonblocking(true)?;
    let address = listener.local_addr()?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let accept = async move {
        let listener = TcpListener::from_std(listener)?;
        loop {
            let (stream, _) = listener.accept().await?;
            let _ = stream.set_nodelay(true);
            tokio::spawn(serve(stream));
        }
    };
    std::thread::Builder::new()
        .name(name.to_owned())
        .spawn(move || -> io::Result<()> { runtime.block_on(accept) })?;
    Ok(address)
}
