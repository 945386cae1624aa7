//! A file, which needs nothing to be installed.

use std::io;
use std::path::Path;
use std::time::Duration;

pub use sqlx::{
    Sqlite as Database, SqliteConnection as DatabaseConnection, SqlitePool as DatabasePool,
};

use sqlx::sqlite::SqliteConnectOptions;

pub fn options(data: &Path, url: Option<&str>) -> sqlx::Result<SqliteConnectOptions> {
    if url.is_some() {
        let why = "--database needs a shop that is built with --features postgres";
        return Err(sqlx::Error::Configuration(why.into()));
    }
    Ok(SqliteConnectOptions::new()
        .filename(data.join("shop.db"))
        .create_if_missing(true)
        .busy_timeout(Duration::from_secs(20)))
}

/// The tables.
pub fn schema() -> String {
    super::SCHEMA.to_owned()
}

/// Removes all tables with what is in them.
pub async fn remove(data: &Path, _: Option<&str>) -> sqlx::Result<()> {
    for file in ["shop.db", "shop.db-journal", "shop.db-shm", "shop.db-wal"] {
        match std::fs::remove_file(data.join(file)) {
            // That there was nothing is fine.
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error.into()),
            _ => {}
        }
    }
    Ok(())
}
