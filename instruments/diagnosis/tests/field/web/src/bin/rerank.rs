//! A value that is never made: the time limit of each request cancels it, and the next one begins anew.
//!
//! Reports: tokio-rs/tokio#4496, vera#132. The first request loads a model, which takes longer than a request may.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::get;
use tokio::sync::OnceCell;
use tokio::time::{sleep, timeout};

struct Model(u64);

#[derive(Default)]
struct Service {
    model: Arc<OnceCell<Model>>,
    fixed: bool,
}

async fn load_model() -> Model {
    for _part in 0..20 {
        sleep(Duration::from_millis(100)).await; // reads a part
    }
    Model(7)
}

impl Service {
    async fn score(&self, document: u64) -> u64 {
        let model = if self.fixed {
            let cell = self.model.clone();
            tokio::spawn(async move {
                cell.get_or_init(load_model).await;
            })
            .await
            .expect("the model loads");
            self.model.get().expect("it is loaded")
        } else {
            self.model.get_or_init(load_model).await
        };
        sleep(Duration::from_millis(3)).await;
        model.0 * document
    }
}

async fn rerank(
    State(service): State<Arc<Service>>,
    Path(document): Path<u64>,
) -> Result<String, StatusCode> {
    let score = timeout(Duration::from_millis(800), service.score(document)).await;
    score
        .map(|score| score.to_string())
        .map_err(|_| StatusCode::GATEWAY_TIMEOUT)
}

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let arguments = field::Arguments::of_process();
    let service = Arc::new(Service {
        fixed: arguments.fixed,
        ..Service::default()
    });
    let app = Router::new()
        .route("/rerank/{document}", get(rerank))
        .with_state(service);
    field::serve(&arguments, app).await
}
