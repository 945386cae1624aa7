//! Where events are.

use crate::database::{DatabasePool, FromRow, query_as};
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, FromRow)]
pub struct Venue {
    pub name: String,
    pub city: String,
    pub layout: String,
}

/// The map of a venue.
#[derive(Debug, Serialize, Deserialize)]
pub struct Layout {
    pub width: u32,
    pub height: u32,
    /// Corners of walls, stairs and doors, for those who draw the map.
    pub shapes: Vec<Vec<[f64; 2]>>,
    pub places: Vec<Place>,
}

/// Where a seat is.
#[derive(Debug, Serialize, Deserialize)]
pub struct Place {
    pub row: i64,
    pub number: i64,
    pub x: f64,
    pub y: f64,
}

impl Venue {
    pub async fn find(db: &DatabasePool, id: i64) -> sqlx::Result<Self> {
        query_as("SELECT * FROM venues WHERE id = $1")
            .bind(id)
            .fetch_one(db)
            .await
    }
}
