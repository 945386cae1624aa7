//! The database: where it is, its tables, and the pool of connections to it. It is `SQLite`, and
//! `PostgreSQL` with the feature of that name.

#[cfg(feature = "postgres")]
mod postgres;
#[cfg(not(feature = "postgres"))]
mod sqlite;

use std::future::ready;
use std::time::Duration;

use lab::Lab;
use sqlx::{Connection, Executor, raw_sql};

#[cfg(feature = "postgres")]
pub(crate) use self::postgres::{DbConnection, DbPool};
#[cfg(feature = "postgres")]
use self::postgres::{DbPoolOptions, TABLES, options};
#[cfg(not(feature = "postgres"))]
pub(crate) use self::sqlite::{DbConnection, DbPool};
#[cfg(not(feature = "postgres"))]
use self::sqlite::{DbPoolOptions, TABLES, options};

// The address is not repeated: there may be a password in it.
fn unusable(error: impl std::fmt::Display) -> lab::Error {
    lab::Error::Unusable(format!(
        "the database cannot be opened: {error}; start it, or leave out --database"
    ))
}

/// Opens the database, creates its tables where they are missing, and makes a pool of so many
/// connections, which tells the lab what it lends.
pub(crate) async fn pool(lab: &Lab, connections: u32) -> Result<DbPool, lab::Error> {
    let options = options(lab)?;
    create_tables(&options).await.map_err(unusable)?;

    let (opened, lent, returned) = (lab.pool_use(), lab.pool_use(), lab.pool_use());
    let pool = DbPoolOptions::new()
        .max_connections(connections)
        .acquire_timeout(Duration::from_secs(5))
        // A connection stays open, so that none is ever opened for a request.
        .idle_timeout(None)
        .max_lifetime(None)
        // The lab counts what is lent.
        .after_connect(move |_, _| {
            opened.lend();
            Box::pin(ready(Ok(())))
        })
        .before_acquire(move |_, _| {
            lent.lend();
            Box::pin(ready(Ok(true)))
        })
        .after_release(move |_, _| {
            returned.take_back();
            Box::pin(ready(Ok(true)))
        })
        .connect_lazy_with(options);
    Ok(pool)
}

async fn create_tables(options: &<DbConnection as Connection>::Options) -> Result<(), sqlx::Error> {
    let mut connection = DbConnection::connect_with(options).await?;
    connection.execute(raw_sql(TABLES)).await?;
    connection.close().await
}
