//! Another solution: the order is written only if the stock is what was read, and looked at again if
//! it is not.

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
    let price = shop.pricing.price(order.product).await?;

    let mut connection = shop.pool.acquire().await?;
    loop {
        let seen = stock(&mut connection, order.product).await?;
        if seen < order.quantity {
            return Err(Refusal::SoldOut);
        }
        if let Some(receipt) = sell_if(&mut connection, order, price, seen).await? {
            return Ok(receipt);
        }
    }
}
// ANCHOR_END: order

async fn stock(connection: &mut DbConnection, product: i64) -> Result<i64, Refusal> {
    query_scalar("SELECT stock FROM products WHERE id = $1")
        .bind(product)
        .fetch_optional(connection)
        .await?
        .ok_or(Refusal::NoSuchProduct)
}

// ANCHOR: sell_if
/// `None` if the stock is no longer what was `seen`: somebody else has ordered meanwhile.
async fn sell_if(
    connection: &mut DbConnection,
    order: Order,
    price: i64,
    seen: i64,
) -> Result<Option<Receipt>, sqlx::Error> {
    let mut transaction = connection.begin().await?;
    let set = query("UPDATE products SET stock = $1 WHERE id = $2 AND stock = $3")
        .bind(seen - order.quantity)
        .bind(order.product)
        .bind(seen)
        .execute(&mut *transaction)
        .await?;
    if set.rows_affected() == 0 {
        return Ok(None);
    }
    let receipt = Receipt::insert(&mut transaction, order, price).await?;
    transaction.commit().await?;
    Ok(Some(receipt))
}
// ANCHOR_END: sell_if
