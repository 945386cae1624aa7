//! What tickets are sold for.

use crate::database::{DatabaseConnection, DatabasePool, FromRow, query, query_as, query_scalar};
use serde::Serialize;

/// Events on a page of the list.
const PAGE: i64 = 20;

#[derive(Debug, Clone, FromRow, Serialize)]
pub struct Event {
    pub id: i64,
    pub venue_id: i64,
    pub organiser_id: i64,
    pub title: String,
    pub category: String,
    pub description: String,
    pub starts_at: String,
    pub available: i64,
}

/// An event as the catalogue has it.
#[derive(Debug, Clone, FromRow, Serialize)]
pub struct Listed {
    #[serde(flatten)]
    #[sqlx(flatten)]
    pub event: Event,
    pub venue: String,
    pub city: String,
}

impl Event {
    pub async fn find(db: &DatabasePool, id: i64) -> sqlx::Result<Option<Self>> {
        query_as("SELECT * FROM events WHERE id = $1")
            .bind(id)
            .fetch_optional(db)
            .await
    }

    /// The events of a category, or all, by date.
    pub async fn page(db: &DatabasePool, category: &str, page: i64) -> sqlx::Result<Vec<Self>> {
        let select = "SELECT * FROM events WHERE category = $1 OR $1 = ''
            ORDER BY starts_at, id LIMIT $2 OFFSET $3";
        query_as(select)
            .bind(category)
            .bind(PAGE)
            .bind(page * PAGE)
            .fetch_all(db)
            .await
    }

    pub async fn of_organiser(db: &DatabasePool, organiser: i64) -> sqlx::Result<Vec<Self>> {
        query_as("SELECT * FROM events WHERE organiser_id = $1 ORDER BY id")
            .bind(organiser)
            .fetch_all(db)
            .await
    }

    /// Others of the same category, by date.
    pub async fn similar(&self, db: &DatabasePool) -> sqlx::Result<Vec<Self>> {
        let select = "SELECT * FROM events WHERE category = $1 AND id <> $2
            ORDER BY starts_at, id LIMIT 5";
        query_as(select)
            .bind(&self.category)
            .bind(self.id)
            .fetch_all(db)
            .await
    }

    /// How often its page was looked at.
    pub async fn views(connection: &mut DatabaseConnection, id: i64) -> sqlx::Result<i64> {
        query_scalar("SELECT COUNT(*) FROM page_views WHERE event_id = $1")
            .bind(id)
            .fetch_one(connection)
            .await
    }

    /// Seats were taken, or given back if `seats` is negative.
    pub async fn take(
        connection: &mut DatabaseConnection,
        id: i64,
        seats: i64,
    ) -> sqlx::Result<()> {
        query("UPDATE events SET available = available - $1 WHERE id = $2")
            .bind(seats)
            .bind(id)
            .execute(connection)
            .await?;
        Ok(())
    }
}

impl Listed {
    pub async fn all(db: &DatabasePool) -> sqlx::Result<Vec<Self>> {
        let select = "SELECT events.*, venues.name AS venue, venues.city
            FROM events JOIN venues ON venues.id = events.venue_id
            ORDER BY starts_at, events.id";
        query_as(select).fetch_all(db).await
    }
}
