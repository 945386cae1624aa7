//! The same service with hyper's own client: no TLS, no proxies, no redirects, so that what is
//! left of a client per request is a pool, a resolver and a connection.

use axum::routing::get;
use axum::{Json, Router};
use bytes::Bytes;
use http_body_util::{BodyExt, Empty};
use hyper_util::client::legacy::{Client, connect::HttpConnector};
use hyper_util::rt::TokioExecutor;
use lab::Upstream;

use crate::answers::{self, BadGateway, Message, TIMEOUT};

type HttpClient = Client<HttpConnector, Empty<Bytes>>;

fn new_client() -> HttpClient {
    Client::builder(TokioExecutor::new()).build_http()
}

/// Every request builds a client of its own.
pub(crate) fn per_request(upstream: Upstream) -> Router {
    routes(upstream, new_client)
}

/// One client for all requests.
pub(crate) fn shared(upstream: Upstream) -> Router {
    let client = new_client();
    routes(upstream, move || client.clone())
}

/// A service that asks with whatever `client` gives it.
fn routes<F>(upstream: Upstream, client: F) -> Router
where
    F: Fn() -> HttpClient + Clone + Send + Sync + 'static,
{
    let io = async move || ask(&client(), &upstream).await;
    Router::new()
        .route("/io", get(io))
        .route("/static", get(answers::at_once))
}

async fn ask(client: &HttpClient, upstream: &Upstream) -> Result<Json<Message>, BadGateway> {
    let answer = async {
        let response = client.get(upstream.url().parse()?).await?;
        if !response.status().is_success() {
            return Err(format!("the upstream answers {}", response.status()).into());
        }
        let body = response.into_body().collect().await?.to_bytes();
        Ok(Json(serde_json::from_slice(&body)?))
    };
    tokio::time::timeout(TIMEOUT, answer).await?
}
