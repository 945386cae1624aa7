//! Exercise: let no connection wait for somebody else's answer.
//!
//! A pool lends connections, and requests that find none free wait in its queue.
//! This service's pool has five, and an order keeps one from its first statement
//! to its last. In between it asks another service for the price, which takes far
//! longer than all its statements together. Find out what the connection does
//! during that time.
//!
//! Change the code below so that no order holds a connection while it waits for
//! the price. Each must be answered as before, at a price of its own. Stock and
//! orders must add up: sell nothing twice, and nothing that is not there.
//!
//!     cargo workshop check 9       is it fixed?
//!     cargo workshop hint 9        the next hint
//!     cargo workshop solution 9    one way to do it, as a diff
//!     cargo workshop reset 9       start over (your file is kept aside)

use axum::extract::State;
use axum::routing::post;
use axum::{Json, Router};
use sqlx::{Connection, query, query_scalar};

use crate::shop::{Order, Receipt, Refusal, Shop};
use crate::store::DbConnection;

/// `POST /order` sells what it is asked for, at the price of the moment.
pub(crate) fn routes(shop: Shop) -> Router {
    Router::new().route("/order", post(order)).with_state(shop)
}

// ANCHOR: order
async fn order(State(shop): State<Shop>, Json(order): Json<Order>) -> Result<Receipt, Refusal> {
    let mut connection = shop.pool.acquire().await?;
    if stock(&mut connection, order.product).await? < order.quantity {
        return Err(Refusal::SoldOut);
    }

    let price = shop.pricing.price(order.product).await?;

    sell(&mut connection, order, price).await
}
// ANCHOR_END: order

async fn stock(connection: &mut DbConnection, product: i64) -> Result<i64, Refusal> {
    query_scalar("SELECT stock FROM products WHERE id = $1")
        .bind(product)
        .fetch_optional(connection)
        .await?
        .ok_or(Refusal::NoSuchProduct)
}

// ANCHOR: sell
async fn sell(connection: &mut DbConnection, order: Order, price: i64) -> Result<Receipt, Refusal> {
    let mut transaction = connection.begin().await?;
    // Others have ordered since the stock was read: this statement looks again.
    let taken = query("UPDATE products SET stock = stock - $1 WHERE id = $2 AND stock >= $1")
        .bind(order.quantity)
        .bind(order.product)
        .execute(&mut *transaction)
        .await?;
    if taken.rows_affected() == 0 {
        return Err(Refusal::SoldOut);
    }
    let receipt = Receipt::insert(&mut transaction, order, price).await?;
    transaction.commit().await?;
    Ok(receipt)
}
// ANCHOR_END: sell
