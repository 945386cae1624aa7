//! Stands in for the payment service, which is somebody else's: each call takes 30 ms.
//!
//! It declines users whose number is a multiple of 100, and payments of more than 400 EUR. It counts what it was asked:
//! `GET /risk`, `/charges` and `/mails`.
//!
//!     cargo run --bin payments

use std::collections::HashMap;
use std::error::Error;
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::{get, post};
use axum::{Json, Router};
use clap::Parser;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::net::TcpListener;

/// One in so many users is declined.
const DECLINED: i64 = 100;
/// More cents than this are declined.
const MOST_CENTS: i64 = 40_000;

/// The payment service.
#[derive(Parser)]
struct Arguments {
    /// 0 for any that is free.
    #[arg(long, default_value_t = 8081)]
    port: u16,
    #[arg(long, default_value_t = 30)]
    milliseconds: u64,
}

#[derive(Clone)]
struct Service {
    takes: Duration,
    /// Of each user, the amounts that were asked about.
    risks: Arc<Mutex<HashMap<i64, Vec<i64>>>>,
    /// Of each order, what was paid.
    charges: Arc<Mutex<HashMap<i64, i64>>>,
    /// How often each ticket was sent.
    mails: Arc<Mutex<HashMap<String, u64>>>,
}

#[derive(Deserialize)]
struct Mail {
    ticket: String,
}

#[derive(Deserialize)]
struct Risk {
    user: i64,
    cents: i64,
}

#[derive(Deserialize)]
struct Charge {
    order: i64,
    cents: i64,
}

async fn fee(State(service): State<Service>, Path(event): Path<i64>) -> Json<Value> {
    tokio::time::sleep(service.takes).await;
    Json(json!({ "basis_points": 150 + event % 100 }))
}

async fn risk(State(service): State<Service>, Json(risk): Json<Risk>) -> Json<Value> {
    tokio::time::sleep(service.takes).await;
    let mut risks = locked(&service.risks);
    risks.entry(risk.user).or_default().push(risk.cents);
    let is_accepted = risk.user % DECLINED != 0 && risk.cents <= MOST_CENTS;
    Json(json!({ "is_accepted": is_accepted }))
}

async fn risks(State(service): State<Service>) -> Json<HashMap<i64, Vec<i64>>> {
    Json(locked(&service.risks).clone())
}

async fn mail(State(service): State<Service>, Json(mail): Json<Mail>) -> StatusCode {
    tokio::time::sleep(service.takes).await;
    *locked(&service.mails).entry(mail.ticket).or_default() += 1;
    StatusCode::ACCEPTED
}

async fn charge(State(service): State<Service>, Json(charge): Json<Charge>) -> StatusCode {
    tokio::time::sleep(service.takes).await;
    let mut charges = locked(&service.charges);
    let charged = *charges.entry(charge.order).or_insert(charge.cents);
    if charged == charge.cents {
        StatusCode::OK
    } else {
        StatusCode::CONFLICT
    }
}

/// What was charged, in all.
async fn charges(State(service): State<Service>) -> Json<HashMap<i64, i64>> {
    Json(locked(&service.charges).clone())
}

async fn mails(State(service): State<Service>) -> Json<HashMap<String, u64>> {
    Json(locked(&service.mails).clone())
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments = Arguments::parse();
    let service = Service {
        takes: Duration::from_millis(arguments.milliseconds),
        risks: Arc::default(),
        charges: Arc::default(),
        mails: Arc::default(),
    };
    let app = Router::new()
        .route("/fees/{event}", get(fee))
        .route("/risk", post(risk).get(risks))
        .route("/mails", post(mail).get(mails))
        .route("/charges", post(charge).get(charges))
        .with_state(service);
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, arguments.port)).await?;
    println!("listening on http://{}", listener.local_addr()?);
    axum::serve(listener, app).await?;
    Ok(())
}
