//! A handler borrows a second connection of the pool while it holds the first.

use std::time::Duration;

use axum::Router;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::get;
use field::Arguments;
use sqlx::sqlite::{SqlitePool, SqlitePoolOptions};

#[derive(Clone)]
struct Shop {
    pool: SqlitePool,
    is_fixed: bool,
}

async fn discount(pool: &SqlitePool) -> sqlx::Result<i64> {
    sqlx::query_scalar("SELECT 7").fetch_one(pool).await
}

async fn total(shop: &Shop, id: i64) -> sqlx::Result<i64> {
    if shop.is_fixed {
        let discount = discount(&shop.pool).await?;
        let mut connection = shop.pool.acquire().await?;
        let query = sqlx::query_scalar::<_, i64>("SELECT ?").bind(id);
        return Ok(query.fetch_one(&mut *connection).await? - discount);
    }
    let mut connection = shop.pool.acquire().await?;
    let query = sqlx::query_scalar::<_, i64>("SELECT ?").bind(id);
    let total = query.fetch_one(&mut *connection).await?;
    // The fault: the first connection is still lent to this request.
    Ok(total - discount(&shop.pool).await?)
}

async fn price(State(shop): State<Shop>, Path(id): Path<i64>) -> Result<String, StatusCode> {
    let total = total(&shop, id).await;
    let total = total.map_err(|_| StatusCode::SERVICE_UNAVAILABLE)?;
    Ok(total.to_string())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments = Arguments::of_process();
    let pool = SqlitePoolOptions::new()
        .max_connections(4)
        .acquire_timeout(Duration::from_secs(20));
    let shop = Shop {
        pool: pool.connect("sqlite::memory:").await?,
        is_fixed: arguments.fixed,
    };
    let routes = Router::new()
        .route("/price/{id}", get(price))
        .with_state(shop);
    field::serve(&arguments, routes).await?;
    Ok(())
}
