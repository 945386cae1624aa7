//! A page asks the database for each row on its own.

use axum::Router;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::get;
use field::Arguments;
use sqlx::sqlite::{SqlitePool, SqlitePoolOptions};

/// Articles in a basket.
const ARTICLES: i64 = 30;

#[derive(Clone)]
struct Shop {
    pool: SqlitePool,
    is_fixed: bool,
}

async fn prices(shop: &Shop, first: i64) -> sqlx::Result<Vec<i64>> {
    if shop.is_fixed {
        let query = sqlx::query_scalar("SELECT price FROM articles WHERE id BETWEEN ? AND ?");
        let query = query.bind(first).bind(first + ARTICLES - 1);
        return query.fetch_all(&shop.pool).await;
    }
    let mut prices = Vec::new();
    for article in first..first + ARTICLES {
        let query = sqlx::query_scalar("SELECT price FROM articles WHERE id = ?").bind(article);
        // The fault: thirty statements for one page.
        prices.push(query.fetch_one(&shop.pool).await?);
    }
    Ok(prices)
}

async fn basket(State(shop): State<Shop>, Path(id): Path<i64>) -> Result<String, StatusCode> {
    let prices = prices(&shop, id).await;
    let prices = prices.map_err(|_| StatusCode::INTERNAL_SERVER_ERROR)?;
    Ok(prices.iter().sum::<i64>().to_string())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments = Arguments::of_process();
    // One connection, since each of SQLite's in memory is a database of its own.
    let pool = SqlitePoolOptions::new().max_connections(1);
    let pool = pool.connect("sqlite::memory:").await?;
    sqlx::query("CREATE TABLE articles (id INTEGER PRIMARY KEY, price INTEGER)")
        .execute(&pool)
        .await?;
    sqlx::query(
        "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 999)
         INSERT INTO articles SELECT i, i % 97 FROM n",
    )
    .execute(&pool)
    .await?;
    let shop = Shop {
        pool,
        is_fixed: arguments.fixed,
    };
    let routes = Router::new()
        .route("/basket/{id}", get(basket))
        .with_state(shop);
    field::serve(&arguments, routes).await?;
    Ok(())
}
