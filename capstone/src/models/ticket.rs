//! Tickets of paid orders.

use crate::database::{DatabaseConnection, DatabasePool, FromRow, query_as};
use serde::Serialize;
use uuid::Uuid;

use crate::models::seat::Seat;

#[derive(Debug, Clone, FromRow, Serialize)]
pub struct Ticket {
    pub code: String,
    pub order_id: i64,
    pub seat_id: i64,
}

/// What is written on a ticket.
#[derive(Debug, FromRow)]
pub struct Printed {
    pub user_id: i64,
    pub title: String,
    pub starts_at: String,
    pub row: i64,
    pub number: i64,
}

impl Ticket {
    pub async fn create(
        connection: &mut DatabaseConnection,
        order: i64,
        seat: &Seat,
    ) -> sqlx::Result<Self> {
        query_as("INSERT INTO tickets (code, order_id, seat_id) VALUES ($1, $2, $3) RETURNING *")
            .bind(Uuid::new_v4().to_string())
            .bind(order)
            .bind(seat.id)
            .fetch_one(connection)
            .await
    }

    pub async fn of_order(
        connection: &mut DatabaseConnection,
        order: i64,
    ) -> sqlx::Result<Vec<Self>> {
        query_as("SELECT * FROM tickets WHERE order_id = $1 ORDER BY seat_id")
            .bind(order)
            .fetch_all(connection)
            .await
    }
}

impl Printed {
    pub async fn find(db: &DatabasePool, code: &str) -> sqlx::Result<Option<Self>> {
        let select =
            "SELECT orders.user_id, events.title, events.starts_at, seats.row, seats.number
            FROM tickets
            JOIN orders ON orders.id = tickets.order_id
            JOIN events ON events.id = orders.event_id
            JOIN seats ON seats.id = tickets.seat_id
            WHERE tickets.code = $1";
        query_as(select).bind(code).fetch_optional(db).await
    }
}
