//! Pages that are all a bit slow: each asks the settings for a flag, and SQLite reads the whole table for it.

use std::error::Error;

use axum::Router;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::get;
use field::Arguments;
use sqlx::SqlitePool;
use sqlx::sqlite::{SqliteConnectOptions, SqlitePoolOptions};

const SETTINGS: i64 = 20_000;

async fn flag(pool: &SqlitePool, name: String) -> sqlx::Result<Option<String>> {
    // The fault: no index has this column.
    let value = sqlx::query_scalar("SELECT value FROM settings WHERE name = ?").bind(name);
    value.fetch_optional(pool).await
}

async fn page(State(pool): State<SqlitePool>, Path(id): Path<i64>) -> Result<String, StatusCode> {
    let flag = flag(&pool, format!("flag {}", SETTINGS - id)).await;
    let flag = flag.map_err(|_| StatusCode::INTERNAL_SERVER_ERROR)?;
    Ok(format!("{id}: {}", flag.as_deref().unwrap_or("off")))
}

async fn fill(pool: &SqlitePool, is_fixed: bool) -> sqlx::Result<()> {
    let settings = "WITH RECURSIVE numbers(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM numbers WHERE i < ?) \
                    INSERT INTO settings SELECT 'flag ' || i, 'on' FROM numbers";
    sqlx::query("CREATE TABLE settings (name TEXT, value TEXT)")
        .execute(pool)
        .await?;
    sqlx::query(settings).bind(SETTINGS).execute(pool).await?;
    if is_fixed {
        sqlx::query("CREATE INDEX settings_by_name ON settings (name)")
            .execute(pool)
            .await?;
    }
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments = Arguments::of_process();
    let file = std::env::temp_dir().join(format!("scan-{}.sqlite", std::process::id()));
    let options = SqliteConnectOptions::new()
        .filename(&file)
        .create_if_missing(true);
    let pool = SqlitePoolOptions::new()
        .max_connections(4)
        .connect_with(options)
        .await?;
    fill(&pool, arguments.fixed).await?;
    let routes = Router::new()
        .route("/page/{id}", get(page))
        .with_state(pool);
    field::serve(&arguments, routes).await?;
    Ok(())
}
