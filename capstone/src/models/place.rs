//! Names and cities of venues, for pages that name many.

use std::collections::HashMap;
use std::sync::Arc;

use tokio::sync::RwLock;

use crate::database::{DatabasePool, query_scalar};

/// Those that were asked for, by venue. They do not change.
#[derive(Clone, Default)]
pub struct Places(Arc<RwLock<HashMap<i64, String>>>);

impl Places {
    pub async fn of(&self, db: &DatabasePool, venue: i64) -> sqlx::Result<String> {
        if let Some(place) = self.0.read().await.get(&venue) {
            return Ok(place.clone());
        }
        let select = "SELECT name || ', ' || city FROM venues WHERE id = $1";
        let place: String = query_scalar(select).bind(venue).fetch_one(db).await?;
        self.0.write().await.insert(venue, place.clone());
        Ok(place)
    }
}
