//! Other ways to keep a body, each a variant of its own. All but the first leave the reactor alone.

use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Query, State};
use axum::routing::get;
use chapter8::{BodyQuery, Error, Pool, Service, Summary, ping};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::{block_in_place, spawn_blocking};

/// The routes of a variant that keeps bodies as `keep` does.
fn routes<F, S>(service: Service, keep: F) -> Router
where
    F: Fn(Service, u64) -> S + Clone + Send + Sync + 'static,
    S: Future<Output = Result<Summary, Error>> + Send + 'static,
{
    let summarize = async move |State(service): State<Service>, Query(query): Query<BodyQuery>| {
        keep(service, query.bytes).await
    };
    Router::new()
        .route("/summarize", get(summarize))
        .route("/ping", get(ping))
        .with_state(service)
}

/// The problem for at most four bodies at once: the reactor still waits for the archive.
pub(crate) fn few_at_once(service: Service) -> Router {
    let bodies = Arc::new(Semaphore::new(4));
    routes(service, move |service, bytes| {
        let bodies = Arc::clone(&bodies);
        async move {
            let _permit = bodies.acquire().await;
            let mut body = service.bodies.fetch(bytes).await?;
            let mut kept = service.archive.create();
            while let Some(part) = body.part().await? {
                kept.push(&part)?;
            }
            kept.summary()
        }
    })
}

/// The reactor's thread blocks after a permit; meanwhile another thread is the reactor.
pub(crate) fn permit(service: Service) -> Router {
    let permits = Arc::new(Semaphore::new(2));
    routes(service, move |service, bytes| {
        let permits = Arc::clone(&permits);
        async move {
            let mut body = service.bodies.fetch(bytes).await?;
            let mut kept = service.archive.create();
            while let Some(part) = body.part().await? {
                let _permit = permits.acquire().await;
                block_in_place(|| kept.push(&part))?;
            }
            let _permit = permits.acquire().await;
            block_in_place(|| kept.summary())
        }
    })
}

/// Two threads of our own wait.
pub(crate) fn dispatch(service: Service) -> Router {
    let pool = Pool::new(2);
    routes(service, move |service, bytes| {
        let pool = pool.clone();
        async move {
            let mut body = service.bodies.fetch(bytes).await?;
            let mut kept = service.archive.create();
            while let Some(part) = body.part().await? {
                kept = pool.run(move || kept.append(&part)).await??;
            }
            pool.run(move || kept.summary()).await?
        }
    })
}

/// One off-load for a whole body: its thread waits for each part, as well as for the archive.
pub(crate) fn per_body(service: Service) -> Router {
    routes(service, async |service, bytes| {
        let mut body = service.bodies.fetch(bytes).await?;
        let mut kept = service.archive.create();
        let (parts, mut coming) = mpsc::channel::<Bytes>(1);
        let summary = spawn_blocking(move || {
            while let Some(part) = coming.blocking_recv() {
                kept.push(&part)?;
            }
            kept.summary()
        });
        while let Some(part) = body.part().await? {
            if parts.send(part).await.is_err() {
                break;
            }
        }
        drop(parts);
        summary.await?
    })
}

/// An asynchronous client speaks to the archive: no thread waits.
pub(crate) fn async_client(service: Service) -> Router {
    routes(service, async |service, bytes| {
        let Service { client, .. } = &service;
        let mut body = service.bodies.fetch(bytes).await?;
        let kept = service.archive.create();
        let mut parts = 0;
        while let Some(part) = body.part().await? {
            let request = client.put(kept.url(parts)).body(part);
            request.send().await?.error_for_status()?;
            parts += 1;
        }
        let mut summary = Summary::default();
        for part in 0..parts {
            let response = client.get(kept.url(part)).send().await?;
            summary.update(&response.error_for_status()?.bytes().await?);
        }
        Ok(summary)
    })
}
