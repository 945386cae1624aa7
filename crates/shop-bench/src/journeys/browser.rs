//! A browser: one connection at a time, and a cookie.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1::{self, SendRequest};
use hyper::header::{CONTENT_TYPE, COOKIE, HOST, HeaderValue, SET_COOKIE};
use hyper::{Method, Request, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

/// Longest time that a user waits for an answer before giving up.
const TIMEOUT: Duration = Duration::from_secs(10);

/// A request.
#[derive(Debug)]
pub(crate) struct Ask {
    pub(crate) method: Method,
    pub(crate) path: String,
    /// Content type of the body, and its bytes.
    pub(crate) body: Option<(&'static str, Bytes)>,
}

impl Ask {
    pub(crate) fn get(path: impl Into<String>) -> Self {
        Self {
            method: Method::GET,
            path: path.into(),
            body: None,
        }
    }

    pub(crate) fn post(
        path: impl Into<String>,
        kind: &'static str,
        body: impl Into<Bytes>,
    ) -> Self {
        Self {
            method: Method::POST,
            path: path.into(),
            body: Some((kind, body.into())),
        }
    }
}

/// No answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NoAnswer {
    #[error("no answer within {} s", TIMEOUT.as_secs())]
    Late,
    #[error("no answer: {0}")]
    Http(#[from] hyper::Error),
    #[error("no connection: {0}")]
    Connection(#[from] std::io::Error),
    #[error("not to be asked for: {0}")]
    Unaskable(#[from] hyper::http::Error),
}

pub(crate) struct Browser {
    address: SocketAddr,
    connection: Option<SendRequest<Full<Bytes>>>,
    cookie: Option<HeaderValue>,
}

impl Browser {
    pub(crate) fn new(address: SocketAddr) -> Self {
        Self {
            address,
            connection: None,
            cookie: None,
        }
    }

    pub(crate) async fn ask(&mut self, ask: Ask) -> Result<(StatusCode, Bytes), NoAnswer> {
        let answer = tokio::time::timeout(TIMEOUT, self.answer(ask)).await;
        let answer = answer.unwrap_or(Err(NoAnswer::Late));
        if answer.is_err() {
            self.connection = None;
        }
        answer
    }

    async fn answer(&mut self, ask: Ask) -> Result<(StatusCode, Bytes), NoAnswer> {
        let mut request = Request::builder()
            .method(ask.method)
            .uri(ask.path)
            .header(HOST, "tickets.example");
        if let Some(cookie) = &self.cookie {
            request = request.header(COOKIE, cookie);
        }
        let (kind, body) = ask.body.unwrap_or_default();
        if !kind.is_empty() {
            request = request.header(CONTENT_TYPE, kind);
        }
        let request = request.body(Full::new(body))?;
        let connection = self.connected().await?;
        let answer = connection.send_request(request).await?;
        if let Some(cookie) = answer.headers().get(SET_COOKIE)
            && let Ok(cookie) = cookie.to_str()
            && let Some(cookie) = cookie.split(';').next()
            && let Ok(cookie) = cookie.parse()
        {
            self.cookie = Some(cookie);
        }
        let status = answer.status();
        Ok((status, answer.into_body().collect().await?.to_bytes()))
    }

    async fn connected(&mut self) -> Result<&mut SendRequest<Full<Bytes>>, NoAnswer> {
        if let Some(connection) = &mut self.connection
            && connection.ready().await.is_err()
        {
            self.connection = None;
        }
        if self.connection.is_none() {
            let stream = TcpStream::connect(self.address).await?;
            stream.set_nodelay(true)?;
            let (connection, driver) = http1::handshake(TokioIo::new(stream)).await?;
            // How it ended is what the next request learns.
            tokio::task::spawn_local(async { _ = driver.await });
            self.connection = Some(connection);
        }
        self.connection.as_mut().ok_or(NoAnswer::Late)
    }
}
