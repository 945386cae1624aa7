//! Permits that are lost with clients who leave: a permit is forgotten and given back by hand, and a request that is dropped in
//! between keeps it for ever. With `--fixed` it is a guard.
//!
//! Reports: anza-xyz/agave#10478, blockfrost/blockfrost-platform#183.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::get;
use field::Arguments;
use tokio::sync::Semaphore;
use tokio::time::sleep;

/// Pages that are rendered at a time.
const AT_A_TIME: usize = 6;

struct Renderer {
    slots: Semaphore,
    is_fixed: bool,
}

impl Renderer {
    /// Stands for a service that renders.
    async fn ask(&self) -> &'static str {
        sleep(Duration::from_millis(150)).await;
        "a page"
    }

    async fn render(&self) -> Result<&'static str, StatusCode> {
        let slot = self.slots.acquire().await;
        let slot = slot.map_err(|_| StatusCode::SERVICE_UNAVAILABLE)?;
        if self.is_fixed {
            return Ok(self.ask().await);
        }
        // The fault: a client that leaves during the next line drops this future.
        slot.forget();
        let page = self.ask().await;
        self.give_back();
        Ok(page)
    }

    fn give_back(&self) {
        self.slots.add_permits(1);
    }
}

async fn page(State(renderer): State<Arc<Renderer>>) -> Result<&'static str, StatusCode> {
    renderer.render().await
}

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let arguments = Arguments::of_process();
    let renderer = Renderer {
        slots: Semaphore::new(AT_A_TIME),
        is_fixed: arguments.fixed,
    };
    let routes = Router::new()
        .route("/page", get(page))
        .with_state(Arc::new(renderer));
    field::serve(&arguments, routes).await
}
