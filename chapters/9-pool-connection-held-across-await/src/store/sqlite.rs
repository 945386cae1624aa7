//! `SQLite`: a file of this server's own, or the one that `--database` names.

use lab::Lab;
use sqlx::sqlite::{
    SqliteConnectOptions, SqliteConnection, SqliteJournalMode, SqlitePool, SqlitePoolOptions,
    SqliteSynchronous,
};

use super::unusable;

pub(crate) type DbPool = SqlitePool;
pub(crate) type DbConnection = SqliteConnection;
pub(super) type DbPoolOptions = SqlitePoolOptions;

pub(super) const TABLES: &str = "
    CREATE TABLE IF NOT EXISTS products (
        id INTEGER PRIMARY KEY,
        bought BIGINT NOT NULL,
        stock BIGINT NOT NULL CHECK (stock >= 0)
    );
    CREATE TABLE IF NOT EXISTS orders (
        id INTEGER PRIMARY KEY,
        product BIGINT NOT NULL REFERENCES products,
        quantity BIGINT NOT NULL CHECK (quantity > 0),
        cents BIGINT NOT NULL CHECK (cents >= 0)
    );
    INSERT INTO products (id, bought, stock) VALUES (1, 1000000000, 1000000000)
        ON CONFLICT DO NOTHING";

pub(super) fn options(lab: &Lab) -> Result<SqliteConnectOptions, lab::Error> {
    let options = match lab.database_url() {
        Some(url) if url.starts_with("sqlite:") => url.parse().map_err(unusable)?,
        Some(_) => {
            return Err(unusable(
                "this server is built for SQLite, and for PostgreSQL with --features postgres",
            ));
        }
        None => {
            let folder = tempfile::tempdir().map_err(unusable)?;
            let file = folder.path().join("orders.db");
            lab.keep(folder);
            SqliteConnectOptions::new().filename(file)
        }
    };
    Ok(options
        .create_if_missing(true)
        // With a log readers do not wait for the writer.
        .journal_mode(SqliteJournalMode::Wal)
        // No commit waits for the disk: it is the pool that this chapter measures. What is committed
        // is safe when this process dies, if not when the machine does.
        .synchronous(SqliteSynchronous::Off))
}
