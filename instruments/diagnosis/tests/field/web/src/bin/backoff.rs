//! A permit is kept in the pause before a retry, so the pauses of some requests keep all others waiting. With `--fixed` it is
//! given back before the pause.
//!
//! Reports: librefang/librefang#8136, vectorize-io/hindsight#3130.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{Path, State};
use axum::routing::get;
use field::Arguments;
use tokio::sync::Semaphore;
use tokio::time::sleep;

/// Calls at a time.
const AT_A_TIME: usize = 8;
const ATTEMPTS: u32 = 3;
const PAUSE: Duration = Duration::from_millis(100);

struct Site {
    client: reqwest::Client,
    url: String,
    permits: Semaphore,
    is_fixed: bool,
}

impl Site {
    /// Asks for a page. The site refuses one of three.
    async fn ask(&self, page: u64) -> Option<usize> {
        let answer = self.client.get(&self.url).send().await.ok()?;
        let text = answer.text().await.ok()?;
        (!page.is_multiple_of(3)).then_some(text.len())
    }

    async fn fetch(&self, page: u64) -> Option<usize> {
        let _permit = self.permits.acquire().await.ok()?;
        for attempt in 0..ATTEMPTS {
            if let Some(length) = self.ask(page).await {
                return Some(length);
            }
            // The fault: nobody else may ask meanwhile.
            sleep(PAUSE * 2_u32.pow(attempt)).await;
        }
        None
    }

    async fn fetch_fixed(&self, page: u64) -> Option<usize> {
        for attempt in 0..ATTEMPTS {
            let permit = self.permits.acquire().await.ok()?;
            let answer = self.ask(page).await;
            drop(permit);
            if answer.is_some() {
                return answer;
            }
            sleep(PAUSE * 2_u32.pow(attempt)).await;
        }
        None
    }
}

async fn page(State(site): State<Arc<Site>>, Path(page): Path<u64>) -> String {
    let length = if site.is_fixed {
        site.fetch_fixed(page).await
    } else {
        site.fetch(page).await
    };
    length.unwrap_or_default().to_string()
}

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let arguments = Arguments::of_process();
    let upstream = field::answering_after(Duration::from_millis(10));
    let site = Arc::new(Site {
        client: reqwest::Client::new(),
        url: format!("http://{upstream}/"),
        permits: Semaphore::new(AT_A_TIME),
        is_fixed: arguments.fixed,
    });
    let routes = Router::new()
        .route("/page/{number}", get(page))
        .with_state(site);
    field::serve(&arguments, routes).await
}
