//! Orders: seats that somebody has reserved or paid.

use crate::database::{DatabaseConnection, DatabasePool, FromRow, query, query_as, query_scalar};
use serde::Serialize;

use crate::models::event::Event;

#[derive(Debug, Clone, FromRow, Serialize)]
pub struct Order {
    pub id: i64,
    pub event_id: i64,
    pub status: String,
    pub seats_cents: i64,
    pub fee_cents: i64,
}

impl Order {
    /// A reservation, without seats yet.
    pub async fn create(
        connection: &mut DatabaseConnection,
        user: i64,
        event: i64,
        now: i64,
    ) -> sqlx::Result<i64> {
        let insert = "INSERT INTO orders
            (user_id, event_id, status, seats_cents, fee_cents, created_at)
            VALUES ($1, $2, 'reserved', 0, 0, $3) RETURNING id";
        query_scalar(insert)
            .bind(user)
            .bind(event)
            .bind(now)
            .fetch_one(connection)
            .await
    }

    pub async fn find(
        connection: &mut DatabaseConnection,
        id: i64,
        user: i64,
    ) -> sqlx::Result<Option<Self>> {
        query_as("SELECT * FROM orders WHERE id = $1 AND user_id = $2")
            .bind(id)
            .bind(user)
            .fetch_optional(connection)
            .await
    }

    /// Those of a user that are reserved or paid, the latest first.
    pub async fn of_user(db: &DatabasePool, user: i64) -> sqlx::Result<Vec<Self>> {
        let select = "SELECT * FROM orders WHERE user_id = $1 AND status <> 'expired'
            ORDER BY id DESC";
        query_as(select).bind(user).fetch_all(db).await
    }

    /// Makes a reservation a paid order; `None` if it is none of the user's.
    pub async fn set_paid(
        connection: &mut DatabaseConnection,
        id: i64,
        user: i64,
    ) -> sqlx::Result<Option<Self>> {
        let update = "UPDATE orders SET status = 'paid'
            WHERE id = $1 AND user_id = $2 AND status = 'reserved' RETURNING *";
        query_as(update)
            .bind(id)
            .bind(user)
            .fetch_optional(connection)
            .await
    }

    /// What its seats cost, and the fee.
    pub async fn set_cents(
        connection: &mut DatabaseConnection,
        id: i64,
        seats: i64,
        fee: i64,
    ) -> sqlx::Result<()> {
        query("UPDATE orders SET seats_cents = $1, fee_cents = $2 WHERE id = $3")
            .bind(seats)
            .bind(fee)
            .bind(id)
            .execute(connection)
            .await?;
        Ok(())
    }
}

/// All that are not paid yet.
pub async fn reserved(db: &DatabasePool) -> sqlx::Result<Vec<i64>> {
    query_scalar("SELECT id FROM orders WHERE status = 'reserved'")
        .fetch_all(db)
        .await
}

/// Gives the seats of an order back, unless it is paid.
pub async fn release(db: &DatabasePool, id: i64) -> sqlx::Result<()> {
    let mut transaction = db.begin().await?;
    let update = "UPDATE orders SET status = 'expired'
        WHERE id = $1 AND status = 'reserved' RETURNING event_id";
    let event: Option<i64> = query_scalar(update)
        .bind(id)
        .fetch_optional(&mut *transaction)
        .await?;
    if let Some(event) = event {
        let freed = query("UPDATE seats SET order_id = NULL WHERE order_id = $1")
            .bind(id)
            .execute(&mut *transaction)
            .await?;
        let seats = freed.rows_affected().cast_signed();
        Event::take(&mut transaction, event, -seats).await?;
    }
    transaction.commit().await
}
