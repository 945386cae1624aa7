//! The database: an SQLite file, or PostgreSQL in a shop that is built with `--features postgres`.

#[cfg(feature = "postgres")]
mod postgres;
#[cfg(not(feature = "postgres"))]
mod sqlite;

pub use sqlx::{FromRow, query, query_as, query_scalar};

#[cfg(feature = "postgres")]
pub use postgres::{Database, DatabaseConnection, DatabasePool, options, remove, schema};
#[cfg(not(feature = "postgres"))]
pub use sqlite::{Database, DatabaseConnection, DatabasePool, options, remove, schema};

/// As SQLite has it.
const SCHEMA: &str = include_str!("../schema.sql");
