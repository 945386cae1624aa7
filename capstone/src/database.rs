//! The database: an SQLite file, or PostgreSQL in a shop that is built with `--features postgres`.

#[cfg(feature = "postgres")]
mod postgres;
#[cfg(not(feature = "postgres"))]
mod sqlite;

use std::fmt::{self, Write as _};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use sqlx::query::{Query, QueryAs, QueryScalar};

pub use sqlx::FromRow;

#[cfg(feature = "postgres")]
pub use postgres::{Database, DatabaseConnection, DatabasePool, options, remove, schema};
#[cfg(not(feature = "postgres"))]
pub use sqlite::{Database, DatabaseConnection, DatabasePool, options, remove, schema};

/// As SQLite has it.
const SCHEMA: &str = include_str!("../schema.sql");

type Arguments<'q> = <Database as sqlx::Database>::Arguments<'q>;
type Row = <Database as sqlx::Database>::Row;

/// Queries since the shop was started.
static QUERIES: AtomicU64 = AtomicU64::new(0);

/// As [`sqlx::query`], counted.
pub fn query(sql: &str) -> Query<'_, Database, Arguments<'_>> {
    QUERIES.fetch_add(1, Relaxed);
    sqlx::query(sql)
}

/// As [`sqlx::query_as`], counted.
pub fn query_as<'q, O>(sql: &'q str) -> QueryAs<'q, Database, O, Arguments<'q>>
where
    O: for<'r> FromRow<'r, Row>,
{
    QUERIES.fetch_add(1, Relaxed);
    sqlx::query_as(sql)
}

/// As [`sqlx::query_scalar`], counted.
pub fn query_scalar<'q, O>(sql: &'q str) -> QueryScalar<'q, Database, O, Arguments<'q>>
where
    (O,): for<'r> FromRow<'r, Row>,
{
    QUERIES.fetch_add(1, Relaxed);
    sqlx::query_scalar(sql)
}

/// The count for `/metrics`: `cargo workshop capstone bench` divides it by the journeys.
pub fn metrics(text: &mut String) -> fmt::Result {
    let queries = QUERIES.load(Relaxed);
    writeln!(text, "# TYPE shop_queries_total counter")?;
    writeln!(text, "shop_queries_total {queries}")
}
