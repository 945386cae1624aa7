//! Other ways to keep a body, each a variant of its own. All but the first leave the reactor alone.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Query, State};
use axum::routing::get;
use chapter8::{BodyQuery, Error, Pool, Service, Summary, ping};
use tokio::io::{AsyncReadExt, AsyncSeekExt, AsyncWriteExt};
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

// ANCHOR: few_at_once
/// The problem for at most four bodies at once: the reactor still writes and reads their files.
pub(crate) fn few_at_once(service: Service) -> Router {
    let bodies = Arc::new(Semaphore::new(4));
    routes(service, move |service, bytes| {
        let bodies = Arc::clone(&bodies);
        async move {
            let _permit = bodies.acquire().await;
            let mut body = service.bodies.fetch(bytes).await?;
            let mut file = service.create_file()?;
            while let Some(chunk) = body.chunk().await? {
                file.push(&chunk)?;
            }
            Ok(file.summary()?)
        }
    })
}
// ANCHOR_END: few_at_once

// ANCHOR: permit
/// The reactor's thread blocks after a permit; meanwhile another thread is the reactor.
pub(crate) fn permit(service: Service) -> Router {
    let permits = Arc::new(Semaphore::new(2));
    routes(service, move |service, bytes| {
        let permits = Arc::clone(&permits);
        async move {
            let mut body = service.bodies.fetch(bytes).await?;
            let mut file = service.create_file()?;
            loop {
                let batch = body.batch().await?;
                if batch.is_empty() {
                    break;
                }
                let _permit = permits.acquire().await;
                file = block_in_place(|| file.append(batch))?;
            }
            let _permit = permits.acquire().await;
            Ok(block_in_place(|| file.summary())?)
        }
    })
}
// ANCHOR_END: permit

// ANCHOR: dispatch
/// Two threads of our own write and read.
pub(crate) fn dispatch(service: Service) -> Router {
    let pool = Pool::new(2);
    routes(service, move |service, bytes| {
        let pool = pool.clone();
        async move {
            let mut body = service.bodies.fetch(bytes).await?;
            let mut file = service.create_file()?;
            loop {
                let batch = body.batch().await?;
                if batch.is_empty() {
                    break;
                }
                file = pool.run(move || file.append(batch)).await??;
            }
            Ok(pool.run(move || file.summary()).await??)
        }
    })
}
// ANCHOR_END: dispatch

// ANCHOR: per_chunk
/// Every chunk is off-loaded alone.
pub(crate) fn per_chunk(service: Service) -> Router {
    routes(service, async |service, bytes| {
        let mut body = service.bodies.fetch(bytes).await?;
        let mut file = service.create_file()?;
        while let Some(chunk) = body.chunk().await? {
            file = spawn_blocking(move || file.append(vec![chunk])).await??;
        }
        Ok(spawn_blocking(move || file.summary()).await??)
    })
}
// ANCHOR_END: per_chunk

// ANCHOR: per_body
/// One off-load for a whole body: its thread waits for each chunk, as well as for the disk.
pub(crate) fn per_body(service: Service) -> Router {
    routes(service, async |service, bytes| {
        let mut body = service.bodies.fetch(bytes).await?;
        let file = service.create_file()?;
        let (chunks, mut coming) = mpsc::channel(1);
        let summary = spawn_blocking(move || {
            let mut file = file;
            while let Some(chunk) = coming.blocking_recv() {
                file = file.append(vec![chunk])?;
            }
            file.summary()
        });
        while let Some(chunk) = body.chunk().await? {
            if chunks.send(chunk).await.is_err() {
                break;
            }
        }
        drop(chunks);
        Ok(summary.await??)
    })
}
// ANCHOR_END: per_body

// ANCHOR: tokio_fs
/// `tokio::fs` off-loads every call. `pace` makes it wait for the stand-in disk.
pub(crate) fn tokio_fs(service: Service) -> Router {
    routes(service, async |service, bytes| {
        let mut body = service.bodies.fetch(bytes).await?;
        let (file, pace) = service.files.create()?.into_parts();
        let mut file = tokio::fs::File::from_std(file);
        while let Some(chunk) = body.chunk().await? {
            file.write_all(&chunk).await?;
            pace.written(chunk.len()).await;
        }
        file.rewind().await?;
        let mut buffer = vec![0; 64 * 1024];
        let mut summary = Summary::default();
        loop {
            let length = file.read(&mut buffer).await?;
            if length == 0 {
                return Ok(summary);
            }
            pace.read(length).await;
            summary.update(&buffer[..length]);
        }
    })
}
// ANCHOR_END: tokio_fs
