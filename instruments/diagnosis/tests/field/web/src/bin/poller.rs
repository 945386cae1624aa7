//! Tasks that poll for news keep all connections of a pool while they pause, and requests get none. With `--fixed` each takes one
//! for each poll.

use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::routing::get;
use field::Arguments;
use sqlx::SqliteConnection;
use sqlx::sqlite::{SqlitePool, SqlitePoolOptions};
use tokio::time::sleep;

/// Connections of the pool, and tasks that poll.
const CONNECTIONS: u32 = 4;
const PAUSE: Duration = Duration::from_millis(200);

async fn news(connection: &mut SqliteConnection) -> sqlx::Result<i64> {
    sqlx::query_scalar("SELECT 7").fetch_one(connection).await
}

async fn poll_all(pool: SqlitePool) -> sqlx::Result<()> {
    // The fault: it is lent for as long as the task lives.
    let mut connection = pool.acquire().await?;
    loop {
        news(&mut connection).await?;
        sleep(PAUSE).await;
    }
}

async fn poll_each(pool: SqlitePool) -> sqlx::Result<()> {
    loop {
        let mut connection = pool.acquire().await?;
        news(&mut connection).await?;
        drop(connection);
        sleep(PAUSE).await;
    }
}

async fn count(State(pool): State<SqlitePool>) -> String {
    let Ok(mut connection) = pool.acquire().await else {
        return "unknown".to_owned();
    };
    let count = news(&mut connection).await;
    count.unwrap_or_default().to_string()
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments = Arguments::of_process();
    let pool = SqlitePoolOptions::new()
        .max_connections(CONNECTIONS)
        .acquire_timeout(Duration::from_secs(3))
        .connect("sqlite::memory:")
        .await?;
    for _ in 0..CONNECTIONS {
        if arguments.fixed {
            tokio::spawn(poll_each(pool.clone()));
        } else {
            tokio::spawn(poll_all(pool.clone()));
        }
    }
    let routes = Router::new().route("/count", get(count)).with_state(pool);
    field::serve(&arguments, routes).await?;
    Ok(())
}
