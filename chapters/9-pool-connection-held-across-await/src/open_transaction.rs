//! The problem once more, as `PostgreSQL` makes it worse: what waits for the price is not a connection
//! alone, but an open transaction with a locked row.

use axum::extract::State;
use axum::routing::post;
use axum::{Json, Router};
use sqlx::{query, query_scalar};

use crate::shop::{Order, Receipt, Refusal, Shop};

/// `POST /order` sells what it is asked for, at the price of the moment.
pub(crate) fn routes(shop: Shop) -> Router {
    Router::new().route("/order", post(order)).with_state(shop)
}

// ANCHOR: order
async fn order(State(shop): State<Shop>, Json(order): Json<Order>) -> Result<Receipt, Refusal> {
    let mut transaction = shop.pool.begin().await?;
    let stock: i64 = query_scalar("SELECT stock FROM products WHERE id = $1 FOR UPDATE")
        .bind(order.product)
        .fetch_optional(&mut *transaction)
        .await?
        .ok_or(Refusal::NoSuchProduct)?;
    if stock < order.quantity {
        return Err(Refusal::SoldOut);
    }

    let price = shop.pricing.price(order.product).await?;

    query("UPDATE products SET stock = stock - $1 WHERE id = $2")
        .bind(order.quantity)
        .bind(order.product)
        .execute(&mut *transaction)
        .await?;
    let receipt = Receipt::insert(&mut transaction, order, price).await?;
    transaction.commit().await?;
    Ok(receipt)
}
// ANCHOR_END: order
