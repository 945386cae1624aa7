//! Writes that wait for seconds: SQLite has one writer, and its transaction is held across a call to another service.
//!
//! Reports: transact-rs/sqlx#451, transact-rs/sqlx#4166.

use std::error::Error;
use std::time::Duration;

use axum::Router;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::get;
use field::Arguments;
use sqlx::SqlitePool;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};

/// Stands in for a call over the network.
async fn notify() {
    tokio::time::sleep(Duration::from_millis(3)).await;
}

async fn count_up(pool: &SqlitePool, id: i64, is_fixed: bool) -> sqlx::Result<()> {
    let count_up = sqlx::query("UPDATE posts SET likes = likes + 1 WHERE id = ?").bind(id);
    if is_fixed {
        count_up.execute(pool).await?;
        notify().await;
    } else {
        let mut transaction = pool.begin_with("BEGIN IMMEDIATE").await?;
        count_up.execute(&mut *transaction).await?;
        // The fault: nobody else can write meanwhile.
        notify().await;
        transaction.commit().await?;
    }
    Ok(())
}

async fn like(
    State((pool, is_fixed)): State<(SqlitePool, bool)>,
    Path(id): Path<i64>,
) -> Result<String, StatusCode> {
    let counted = count_up(&pool, id, is_fixed).await;
    counted.map_err(|_| StatusCode::INTERNAL_SERVER_ERROR)?;
    Ok(format!("liked {id}"))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments = Arguments::of_process();
    let file = std::env::temp_dir().join(format!("field-{}.sqlite", std::process::id()));
    let options = SqliteConnectOptions::new()
        .filename(&file)
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Off)
        .busy_timeout(Duration::from_secs(20));
    let pool = SqlitePoolOptions::new()
        .max_connections(8)
        .connect_with(options)
        .await?;
    sqlx::query("CREATE TABLE IF NOT EXISTS posts (id INTEGER PRIMARY KEY, likes INTEGER)")
        .execute(&pool)
        .await?;
    for id in 1..=100_i64 {
        sqlx::query("INSERT OR REPLACE INTO posts VALUES (?, 0)")
            .bind(id)
            .execute(&pool)
            .await?;
    }
    let state = (pool, arguments.fixed);
    let routes = Router::new()
        .route("/like/{id}", get(like))
        .with_state(state);
    field::serve(&arguments, routes).await?;
    Ok(())
}
