//! The endpoints' own listener, on a thread of its own, so that a stalled service still answers.
//!
//! Anybody who reaches the port may connect, so connections must not lock others out: each answers one request, and if
//! there are too many, the oldest idle one makes room for the newest.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::net::{self, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http::{Request, Response};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::task::AbortHandle;

use crate::answer::Body;
use crate::runtimes::OF_LISTENERS;

/// Longest time in which a client sends its headers.
const HEADERS_WITHIN: Duration = Duration::from_secs(5);

/// Longest time in which a client reads its answer.
pub(crate) const READ_WITHIN: Duration = Duration::from_secs(60);

/// Most connections that are open at once.
const MOST_CONNECTIONS: usize = 64;

/// Number of file descriptors that are set aside for when the service has used up all others.
const SPARE: usize = 8;

/// Serves what `ask` answers from a new thread until the process ends, and returns the listener's address.
///
/// `read_within` is [`READ_WITHIN`], except in tests.
pub(crate) fn serve<A, F>(
    listener: net::TcpListener,
    ask: A,
    read_within: Duration,
) -> std::io::Result<SocketAddr>
where
    A: Fn(Request<Incoming>) -> F + Clone + Send + 'static,
    F: Future<Output = Response<Body>> + Send + 'static,
{
    let address = listener.local_addr()?;
    listener.set_nonblocking(true)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    OF_LISTENERS.fetch_add(1, Relaxed);
    std::thread::Builder::new()
        .name("admin".to_owned())
        .spawn(move || runtime.block_on(answer(listener, ask, read_within)))?;
    Ok(address)
}

/// Accepts connections and answers one request on each, by HTTP/1 alone.
async fn answer<A, F>(
    listener: net::TcpListener,
    ask: A,
    read_within: Duration,
) -> std::io::Result<Infallible>
where
    A: Fn(Request<Incoming>) -> F + Clone + Send + 'static,
    F: Future<Output = Response<Body>> + Send + 'static,
{
    let spare = Arc::new(Spare::of(listener.try_clone()?));
    let listener = TcpListener::from_std(listener)?;
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new())
        .header_read_timeout(HEADERS_WITHIN)
        // A client that has its answer keeps no connection.
        .keep_alive(false);
    let mut open = Open::default();
    loop {
        let stream = accept(&listener, &spare, &mut open).await;
        while open.is_full() && !open.end_oldest() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let is_answering = Arc::new(AtomicBool::new(false));
        let is_busy = Arc::clone(&is_answering);
        let connection = connection(stream, &http, ask.clone(), is_busy, read_within);
        let spare = Arc::clone(&spare);
        let task = tokio::spawn(async move {
            connection.await;
            spare.refill();
        });
        open.0.push_back((task.abort_handle(), is_answering));
        // Let the new connection read its request, before others in the queue push it out.
        tokio::task::yield_now().await;
    }
}

/// Answers the one request of `stream`.
fn connection<A, F>(
    stream: TcpStream,
    http: &http1::Builder,
    ask: A,
    is_answering: Arc<AtomicBool>,
    read_within: Duration,
) -> impl Future<Output = ()> + Send + use<A, F>
where
    A: Fn(Request<Incoming>) -> F + Send + 'static,
    F: Future<Output = Response<Body>> + Send + 'static,
{
    let answered = Arc::new(Notify::new());
    let told = Arc::clone(&answered);
    let service = service_fn(move |request| {
        let (answer, told, is_answering) = (ask(request), Arc::clone(&told), is_answering.clone());
        async move {
            is_answering.store(true, Relaxed);
            let answer = answer.await;
            is_answering.store(false, Relaxed);
            told.notify_one();
            Ok::<_, Infallible>(answer)
        }
    });
    let connection = http.serve_connection(TokioIo::new(stream), service);
    async move {
        let unread = async {
            answered.notified().await;
            tokio::time::sleep(read_within).await;
        };
        tokio::select! {
            _ = connection => {}
            () = unread => {}
        }
    }
}

async fn accept(listener: &TcpListener, spare: &Spare, open: &mut Open) -> TcpStream {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => return stream,
            // Most likely the service is out of file descriptors. The next call takes the one that is closed here.
            Err(_) if spare.let_go() => {}
            Err(_) => {
                open.end_oldest();
                tokio::time::sleep(Duration::from_millis(10)).await;
                spare.refill();
            }
        }
    }
}

/// Open connections, oldest first, each with a flag that is set while its request is answered.
#[derive(Default)]
struct Open(VecDeque<(AbortHandle, Arc<AtomicBool>)>);

impl Open {
    fn is_full(&mut self) -> bool {
        self.0.retain(|(task, _)| !task.is_finished());
        self.0.len() >= MOST_CONNECTIONS
    }

    /// Ends the oldest idle connection, and returns whether there was one.
    fn end_oldest(&mut self) -> bool {
        let Some(oldest) = self.0.iter().position(|(_, busy)| !busy.load(Relaxed)) else {
            return false;
        };
        if let Some((task, _)) = self.0.remove(oldest) {
            task.abort();
        }
        true
    }
}

/// File descriptors that are set aside: duplicates of the listener's.
struct Spare {
    listener: net::TcpListener,
    kept: Mutex<Vec<net::TcpListener>>,
}

impl Spare {
    fn of(listener: net::TcpListener) -> Self {
        let kept = Mutex::default();
        let spare = Self { listener, kept };
        spare.refill();
        spare
    }

    fn refill(&self) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        while kept.len() < SPARE {
            match self.listener.try_clone() {
                Ok(one) => kept.push(one),
                // The service has used up all descriptors; try again later.
                Err(_) => return,
            }
        }
    }

    /// Closes one, and returns whether there was one.
    fn let_go(&self) -> bool {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.pop().is_some()
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Write, copy, sink};
    use std::sync::mpsc::{self, Receiver, Sender};

    use bytes::Bytes;

    use crate::answer::Answer as Whole;

    use super::*;

    /// Answer that is larger than the buffers of a connection. It is static, because another test watches the
    /// allocator.
    static LARGE: [u8; 64 << 20] = [0; 64 << 20];

    /// Answer that sends a message when it is dropped.
    struct Answer(Sender<()>);

    impl AsRef<[u8]> for Answer {
        fn as_ref(&self) -> &[u8] {
            &LARGE
        }
    }

    impl Drop for Answer {
        fn drop(&mut self) {
            let _ = self.0.send(());
        }
    }

    /// Returns a client that has asked for a large answer, and a receiver that hears when that answer is dropped.
    fn client(read_within: Duration) -> std::io::Result<(net::TcpStream, Receiver<()>)> {
        let (gone, is_gone) = mpsc::channel();
        let large = move |_| {
            let large = Bytes::from_owner(Answer(gone.clone()));
            async { Whole::text(large).into_response() }
        };
        let listener = net::TcpListener::bind("127.0.0.1:0")?;
        let mut client = net::TcpStream::connect(serve(listener, large, read_within)?)?;
        client.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")?;
        Ok((client, is_gone))
    }

    #[test]
    fn an_answer_that_is_not_read_in_time_is_given_up() -> std::io::Result<()> {
        let (mut client, is_gone) = client(Duration::from_millis(100))?;
        let gone = is_gone.recv_timeout(READ_WITHIN / 2);
        assert_eq!(gone, Ok(()), "the answer is still held");
        // Read what was sent by then, until the end or a reset.
        let read = copy(&mut client, &mut sink()).unwrap_or_default();
        assert!(read < LARGE.len() as u64, "{read}");
        Ok(())
    }

    #[test]
    fn one_that_is_read_in_time_is_whole() -> std::io::Result<()> {
        let (mut client, _is_gone) = client(READ_WITHIN)?;
        let read = copy(&mut client, &mut sink())?;
        assert!(read > LARGE.len() as u64, "{read}");
        Ok(())
    }
}
