//! What all handlers share.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use sqlx::pool::PoolOptions;
use tokio::sync::{Mutex, RwLock, mpsc};

use crate::database::{self, DatabasePool};
use crate::middleware::Sessions;
use crate::models::event::Listed;
use crate::models::order;
use crate::models::place::Places;
use crate::payments::Payments;

#[derive(Clone)]
pub struct Shop {
    pub db: DatabasePool,
    pub payments: Payments,
    pub places: Places,
    pub sessions: Sessions,
    /// All events, for the search and the home page.
    pub catalogue: Arc<RwLock<Vec<Listed>>>,
    /// Taken by who reserves, so that no seat is sold twice.
    pub booking: Arc<Mutex<()>>,
    /// Events whose page somebody looked at.
    pub views: mpsc::UnboundedSender<i64>,
    pub posters: PathBuf,
    /// What prices are in.
    pub currency: String,
    pub hold: Duration,
}

impl Shop {
    /// Starts what runs in the background.
    pub async fn open(
        db: DatabasePool,
        data: PathBuf,
        payments: String,
        hold_seconds: u64,
    ) -> sqlx::Result<Self> {
        let (views, viewed) = mpsc::unbounded_channel();
        let shop = Self {
            catalogue: Arc::new(RwLock::new(Listed::all(&db).await?)),
            db,
            payments: Payments::new(payments),
            places: Places::default(),
            sessions: Sessions::default(),
            booking: Arc::default(),
            views,
            posters: data.join("posters"),
            currency: "EUR".to_owned(),
            hold: Duration::from_secs(hold_seconds),
        };
        std::fs::create_dir_all(&shop.posters)?;
        for order in order::reserved(&shop.db).await? {
            tokio::spawn(release_later(shop.clone(), order));
        }
        tokio::spawn(refresh_catalogue(shop.clone()));
        tokio::spawn(record_views(shop.db.clone(), viewed));
        Ok(shop)
    }
}

/// The database, with its tables.
pub async fn connect(data: &Path, url: Option<&str>) -> sqlx::Result<DatabasePool> {
    let options = database::options(data, url)?;
    let db = PoolOptions::new()
        .max_connections(5)
        .connect_with(options)
        .await?;
    sqlx::raw_sql(&database::schema()).execute(&db).await?;
    Ok(db)
}

/// Seconds since 1970.
pub fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.unwrap_or_default().as_secs().cast_signed()
}

/// Gives the seats of an order back if it is not paid in time.
pub async fn release_later(shop: Shop, order: i64) {
    tokio::time::sleep(shop.hold).await;
    let _guard = shop.booking.lock().await;
    if let Err(error) = order::release(&shop.db, order).await {
        tracing::error!(%error, order, "cannot release");
    }
}

async fn refresh_catalogue(shop: Shop) {
    loop {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let mut catalogue = shop.catalogue.write().await;
        match Listed::all(&shop.db).await {
            Ok(events) => *catalogue = events,
            Err(error) => tracing::error!(%error, "cannot read the events"),
        }
    }
}

async fn record_views(db: DatabasePool, mut viewed: mpsc::UnboundedReceiver<i64>) {
    while let Some(event) = viewed.recv().await {
        let inserted = sqlx::query("INSERT INTO page_views (event_id) VALUES ($1)")
            .bind(event)
            .execute(&db)
            .await;
        if let Err(error) = inserted {
            tracing::error!(%error, event, "cannot record a view");
        }
    }
}
