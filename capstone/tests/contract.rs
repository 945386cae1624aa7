//! The shop's contract, however fast it is: `cargo test`.
//!
//! Each test is a rule. It starts the shop and the payment service on ports of their own, with a small database in a folder
//! of its own, and fails with a sentence that says which rule was broken. `POSTGRES=postgres://… cargo test --features
//! postgres -- --test-threads 1` asks a shop on PostgreSQL, whose database the tests use one after the other.

mod accounts;
mod golden;
mod harness;
mod pages;
mod payments;
mod seats;

use crate::harness::Shop;

#[tokio::test]
async fn it_is_healthy() {
    let shop = Shop::start();
    let said = shop.visitor().page("/health").await;
    assert!(said == "ok", "GET /health answers `ok`, but: {said:?}");
}

/// The answers of the shipped shop are in `golden.json`.
#[tokio::test]
async fn every_route_answers_all_that_it_always_did() {
    let shop = Shop::start();
    golden::compare(&golden::answers(&shop).await);
}
