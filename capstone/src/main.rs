//! The ticket shop.
//!
//!     cargo run -- init-db
//!     cargo run --bin payments
//!     cargo run

mod database;
mod error;
mod handlers;
mod log;
mod middleware;
mod models;
mod payments;
mod seed;
mod shop;

use std::error::Error;
use std::net::Ipv4Addr;
use std::path::PathBuf;

use axum::extract::DefaultBodyLimit;
use axum::routing::{get, post};
use axum::{Router, middleware::from_fn_with_state};
use clap::{Parser, Subcommand};
use debug_endpoints::DebugEndpoints;
use tokio::net::TcpListener;

use crate::handlers::{account, events, home, orders, organiser, posters, tickets};
use crate::shop::Shop;

/// A ticket shop.
#[derive(Parser)]
struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    /// Database, posters and log.
    #[arg(long, global = true, default_value = "data")]
    data: PathBuf,
    /// A PostgreSQL server in place of a file, for a shop that is built with `--features postgres`.
    #[arg(long, global = true, value_name = "postgres://…")]
    database: Option<String>,
    /// 0 for any that is free.
    #[arg(long, default_value_t = 8080)]
    port: u16,
    /// Where the debug endpoints are.
    #[arg(long, default_value_t = 6060)]
    admin_port: u16,
    /// The payment service.
    #[arg(long, default_value = "http://127.0.0.1:8081")]
    payments: String,
    /// How long seats are kept for an order that is not paid.
    #[arg(long, default_value_t = 600)]
    hold_seconds: u64,
}

#[derive(Subcommand)]
enum Command {
    /// Starts over with a database of made-up users, events and orders.
    InitDb {
        /// More of them are more of everything else.
        #[arg(long, default_value_t = 2000)]
        events: i64,
    },
}

#[tokio::main(worker_threads = 16)]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments = Arguments::parse();
    std::fs::create_dir_all(&arguments.data)?;
    let database = arguments.database.as_deref();
    if let Some(Command::InitDb { events }) = arguments.command {
        return seed::init(&arguments.data, database, events).await;
    }
    log::init(&arguments.data)?;
    // reqwest leaves the cryptography to the program.
    let _ = rustls::crypto::ring::default_provider().install_default();

    let db = shop::connect(&arguments.data, database).await?;
    let shop = Shop::open(
        db,
        arguments.data,
        arguments.payments,
        arguments.hold_seconds,
    )
    .await?;
    let debug = DebugEndpoints::new().metrics(metrics);
    let debug_address = debug.listen((Ipv4Addr::LOCALHOST, arguments.admin_port))?;
    let app = Router::new()
        .route("/", get(home::home))
        .route("/signup", post(account::sign_up))
        .route("/login", post(account::log_in))
        .route("/events", get(events::list))
        .route("/search", get(events::search))
        .route("/events/{id}", get(events::show))
        .route("/events/{id}/seats", get(events::seats))
        .route("/events/{id}/poster", get(posters::show))
        .route("/events/{id}/reserve", post(orders::reserve))
        .route("/orders", get(orders::list))
        .route("/orders/{id}/pay", post(orders::pay))
        .route("/tickets/{code}", get(tickets::show))
        .route("/organiser/report", get(organiser::report))
        .route("/organiser/events/{id}/poster", post(posters::upload))
        .layer(DefaultBodyLimit::max(10_000_000))
        .layer(from_fn_with_state(
            shop.sessions.clone(),
            middleware::session,
        ))
        .route("/health", get(async || "ok"))
        .layer(debug.layer())
        .with_state(shop);

    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, arguments.port)).await?;
    println!(
        "listening on http://{}, debug endpoints on http://{debug_address}/debug",
        listener.local_addr()?
    );
    axum::serve(listener, app).await?;
    Ok(())
}

/// The shop's own counts.
fn metrics() -> Result<String, std::fmt::Error> {
    let mut text = String::new();
    database::metrics(&mut text)?;
    error::metrics(&mut text)?;
    Ok(text)
}
