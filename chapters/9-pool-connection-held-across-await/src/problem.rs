//! The problem: an order keeps its connection while it asks for the price.

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
