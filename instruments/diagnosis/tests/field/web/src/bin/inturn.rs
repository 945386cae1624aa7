//! A page awaits one call after the other, although none needs the answers before it.

use std::time::Duration;

use axum::Router;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::get;
use field::Arguments;

#[derive(Clone)]
struct Services {
    client: reqwest::Client,
    url: String,
    is_fixed: bool,
}

impl Services {
    async fn ask(&self, what: &str, user: u32) -> Result<String, StatusCode> {
        let url = format!("{}/{what}/{user}", self.url);
        let answer = self.client.get(url).send().await;
        let answer = answer.map_err(|_| StatusCode::BAD_GATEWAY)?.text().await;
        answer.map_err(|_| StatusCode::BAD_GATEWAY)
    }
}

async fn profile(
    State(services): State<Services>,
    Path(user): Path<u32>,
) -> Result<String, StatusCode> {
    let ask = |what| services.ask(what, user);
    let (account, orders, notices) = if services.is_fixed {
        tokio::try_join!(ask("account"), ask("orders"), ask("notices"))?
    } else {
        // The fault: the page takes as long as all three together.
        let account = ask("account").await?;
        let orders = ask("orders").await?;
        let notices = ask("notices").await?;
        (account, orders, notices)
    };
    Ok(format!("{account}{orders}{notices}"))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments = Arguments::of_process();
    let upstream = field::answering_after(Duration::from_millis(20));
    let services = Services {
        client: reqwest::Client::new(),
        url: format!("http://{upstream}"),
        is_fixed: arguments.fixed,
    };
    let routes = Router::new()
        .route("/profile/{user}", get(profile))
        .with_state(services);
    field::serve(&arguments, routes).await?;
    Ok(())
}
