//! The ablation: the way from the problem to the solution in small steps. Each client here is the
//! one before it without one thing that a request of the problem pays for.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::routing::get;
use axum::{Json, Router};
use lab::Upstream;
use reqwest::{Certificate, Client, Result};
use rustls::{ClientConfig, RootCertStore};

use crate::answers::{self, BadGateway, Message, TIMEOUT};

/// A client per request that does not load the system's root certificates. It trusts no server, so
/// it is good for plain HTTP only.
pub(crate) fn no_roots(upstream: Upstream) -> Router {
    routes(upstream, || Client::builder().tls_certs_only([]).build())
}

/// A client per request, but the configuration of TLS is made once.
pub(crate) fn one_tls_config(upstream: Upstream) -> Router {
    let tls = ClientConfig::builder()
        .with_root_certificates(RootCertStore::empty())
        .with_no_client_auth();
    routes(upstream, move || {
        let client = Client::builder().tls_backend_preconfigured(tls.clone());
        client.build()
    })
}

/// One client for all requests that keeps no connection: each request opens its own.
pub(crate) fn no_pool(upstream: Upstream) -> Result<Router> {
    let client = Client::builder().pool_max_idle_per_host(0).build()?;
    Ok(routes(upstream, move || Ok(client.clone())))
}

// ANCHOR: few_clients
/// The probe: every 64th request builds a client of its own, as in the problem, and the others
/// share one. The time that this saves predicts what building no client at all would save.
pub(crate) fn few_clients(upstream: Upstream) -> Result<Router> {
    let shared = Client::builder().build()?;
    let requests = Arc::new(AtomicU64::new(0));
    Ok(routes(upstream, move || {
        let number = requests.fetch_add(1, Ordering::Relaxed);
        if number.is_multiple_of(64) {
            Client::builder().build()
        } else {
            Ok(shared.clone())
        }
    }))
}
// ANCHOR_END: few_clients

/// The problem, for an upstream that speaks TLS and has made its `own` certificate.
pub(crate) fn tls_problem(upstream: Upstream, own: &[u8]) -> Result<Router> {
    let own = Certificate::from_der(own)?;
    Ok(routes(upstream, move || trusting(&own)))
}

/// The solution for the same upstream.
pub(crate) fn tls_solution(upstream: Upstream, own: &[u8]) -> Result<Router> {
    let client = trusting(&Certificate::from_der(own)?)?;
    Ok(routes(upstream, move || Ok(client.clone())))
}

/// Builds the same as `Client::new()`, with one more certificate that it trusts.
fn trusting(certificate: &Certificate) -> Result<Client> {
    let client = Client::builder().tls_certs_merge([certificate.clone()]);
    client.build()
}

/// A service that asks with whatever `client` gives it.
fn routes<F>(upstream: Upstream, client: F) -> Router
where
    F: Fn() -> Result<Client> + Clone + Send + Sync + 'static,
{
    let io = async move || -> std::result::Result<Json<Message>, BadGateway> {
        let request = client()?.get(upstream.url()).timeout(TIMEOUT);
        let response = request.send().await?.error_for_status()?;
        Ok(Json(response.json().await?))
    };
    Router::new()
        .route("/io", get(io))
        .route("/static", get(answers::at_once))
}
