//! Seats of an event.

use crate::database::{DatabaseConnection, DatabasePool, FromRow, query, query_as, query_scalar};
use serde::Serialize;

#[derive(Debug, Clone, FromRow, Serialize)]
pub struct Seat {
    pub id: i64,
    pub event_id: i64,
    pub row: i64,
    pub number: i64,
    pub price_cents: i64,
    #[serde(skip)]
    pub order_id: Option<i64>,
}

impl Seat {
    pub async fn find(connection: &mut DatabaseConnection, id: i64) -> sqlx::Result<Option<Self>> {
        query_as("SELECT * FROM seats WHERE id = $1")
            .bind(id)
            .fetch_optional(connection)
            .await
    }

    pub async fn of_event(db: &DatabasePool, event: i64) -> sqlx::Result<Vec<Self>> {
        query_as("SELECT * FROM seats WHERE event_id = $1 ORDER BY id")
            .bind(event)
            .fetch_all(db)
            .await
    }

    pub async fn of_order(
        connection: &mut DatabaseConnection,
        order: i64,
    ) -> sqlx::Result<Vec<Self>> {
        query_as("SELECT * FROM seats WHERE order_id = $1 ORDER BY id")
            .bind(order)
            .fetch_all(connection)
            .await
    }

    /// Those of an event that are paid.
    pub async fn sold(connection: &mut DatabaseConnection, event: i64) -> sqlx::Result<Vec<Self>> {
        let select = "SELECT seats.* FROM seats JOIN orders ON orders.id = seats.order_id
            WHERE seats.event_id = $1 AND orders.status = 'paid'";
        query_as(select).bind(event).fetch_all(connection).await
    }

    /// What the cheapest free seat costs, if one is left.
    pub async fn cheapest(db: &DatabasePool, event: i64) -> sqlx::Result<Option<i64>> {
        let select = "SELECT MIN(price_cents) FROM seats WHERE event_id = $1 AND order_id IS NULL";
        query_scalar(select).bind(event).fetch_one(db).await
    }

    pub async fn take(&self, connection: &mut DatabaseConnection, order: i64) -> sqlx::Result<()> {
        query("UPDATE seats SET order_id = $1 WHERE id = $2")
            .bind(order)
            .bind(self.id)
            .execute(connection)
            .await?;
        Ok(())
    }
}
