//! Chapter 9: a pool connection held across an await.
//! `cargo run -p chapter9 [-- VARIANT]`; the book says what each variant is for.

mod compare_and_set;
mod exercise;
#[cfg(feature = "postgres")]
mod open_transaction;
mod problem;
mod shop;
mod solution;
mod store;

use std::time::Duration;

use clap::ValueEnum;
use lab::{Lab, Uses};

use crate::shop::{Pricing, Shop};

#[derive(Clone, Copy, ValueEnum)]
enum Variant {
    Problem,
    Exercise,
    Solution,
    BiggerPool,
    CompareAndSet,
    /// `SQLite` has no locks of rows.
    #[cfg(feature = "postgres")]
    OpenTransaction,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    // reqwest leaves the cryptography to the program. ring is quick to compile.
    let _ = rustls::crypto::ring::default_provider().install_default();

    let (variant, lab) = Lab::start("chapter9", &[Uses::Upstream, Uses::SqlDatabase])?;
    let upstream = lab.upstream(Duration::from_millis(50))?;
    let connections = match variant {
        Variant::BiggerPool => 20,
        _ => 5,
    };
    let shop = Shop {
        pool: store::pool(&lab, connections).await?,
        pricing: Pricing::new(upstream),
    };
    let books = shop::books(shop.pool.clone());

    let routes = match variant {
        Variant::Problem | Variant::BiggerPool => problem::routes(shop),
        Variant::Exercise => exercise::routes(shop),
        Variant::Solution => solution::routes(shop),
        Variant::CompareAndSet => compare_and_set::routes(shop),
        #[cfg(feature = "postgres")]
        Variant::OpenTransaction => open_transaction::routes(shop),
    };
    Ok(lab.serve(routes.merge(books)).await?)
}
