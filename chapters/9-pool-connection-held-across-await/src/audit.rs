//! The contract of every variant, watched from outside: stock and orders add up, no order is lost
//! or written twice, none is confirmed before it is written, no more is sold than there is, and no
//! connection is opened beside the pool.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use axum::routing::get;
use axum::{Json, Router};
use lab::PoolUse;
use serde::Serialize;
use sqlx::{AnyPool, query_scalar};
use tokio::task::JoinHandle;
use tower_service::Service;

use crate::shop::Refusal;
use crate::store::{Kind, Store};

/// Watches the orders of a service. Clones count together.
#[derive(Debug, Clone)]
pub(crate) struct Audit {
    /// A connection that no order can take.
    pool: AnyPool,
    /// So many are open at most: those of the shop's pool and this one, and as many again, which the pool
    /// has replaced because their customers hung up, and which are still being closed.
    connections_at_most: usize,
    /// The database, where it is a file.
    file: Option<PathBuf>,
    counts: Arc<Counts>,
}

#[derive(Debug, Default)]
struct Counts {
    /// Orders that stood in the database when the server started.
    before: i64,
    received: AtomicI64,
    confirmed: AtomicI64,
    /// Confirmed while they did not stand in the database.
    unwritten: AtomicI64,
}

/// What `GET /books` answers: what the database holds.
#[derive(Debug, Serialize)]
struct Books {
    orders: i64,
    /// Bought, and neither in stock nor ordered.
    missing: i64,
}

/// What `GET /audit` answers: zeros but for the rush, if the service keeps its contract.
#[derive(Debug, Serialize)]
struct Report {
    rush: Rush,
    /// Confirmed, and not in the database.
    lost: i64,
    /// In the database, and never received.
    doubled: i64,
    unwritten: i64,
    missing: i64,
}

/// Many order at once what there is little of.
#[derive(Debug, Default, Serialize)]
struct Rush {
    sold: i64,
    sold_out: i64,
    left: i64,
    /// More connections than the pool can have opened (`SQLite` on Linux).
    past_the_pool: usize,
}

impl Rush {
    const STOCK: i64 = 3;
    const CUSTOMERS: usize = 20;
}

impl Audit {
    /// Counts from here on. The shop's pool has so many `connections`.
    pub(crate) async fn begin(store: Store, connections: u32) -> Result<Self, sqlx::Error> {
        let pool = store.pool(1, PoolUse::default());
        let file: Option<String> = match store.kind {
            Kind::Sqlite => {
                let main = "SELECT file FROM pragma_database_list WHERE name = 'main'";
                Some(query_scalar(main).fetch_one(&pool).await?)
            }
            Kind::Postgres => None,
        };
        let before = query_scalar("SELECT COUNT(*) FROM orders")
            .fetch_one(&pool)
            .await?;
        let counts = Arc::new(Counts {
            before,
            ..Counts::default()
        });
        Ok(Self {
            pool,
            connections_at_most: 2 * (connections as usize + 1),
            file: file.map(PathBuf::from),
            counts,
        })
    }

    /// The routes of a shop, watched.
    pub(crate) fn of(self, routes: Router) -> Router {
        let watched = routes.layer(from_fn_with_state(self.clone(), watch));
        let orders = watched.clone();
        let report = async move |State(audit): State<Self>| audit.report(orders).await.map(Json);
        Router::new()
            .route("/books", get(books))
            .route("/audit", get(report))
            .with_state(self)
            .merge(watched)
    }

    async fn report(self, orders: Router) -> Result<Report, Refusal> {
        let rush = self.rush(orders).await?;
        let Books { orders, missing } = self.settled().await?;
        let written = orders - self.counts.before;
        Ok(Report {
            rush,
            lost: (self.counts.confirmed.load(Relaxed) - written).max(0),
            doubled: (written - self.counts.received.load(Relaxed)).max(0),
            unwritten: self.counts.unwritten.load(Relaxed),
            missing,
        })
    }

    /// Orders one each for many customers at once, of a product that is not enough for all.
    async fn rush(&self, orders: Router) -> Result<Rush, Refusal> {
        let product: i64 =
            query_scalar("INSERT INTO products (bought, stock) VALUES ($1, $1) RETURNING id")
                .bind(Rush::STOCK)
                .fetch_one(&self.pool)
                .await?;
        let customers: Vec<_> = (0..Rush::CUSTOMERS)
            .map(|_| {
                let body = format!("{{\"product\": {product}, \"quantity\": 1}}");
                let request = Request::post("/order")
                    .header(header::CONTENT_TYPE, "application/json")
                    .body(Body::from(body));
                let mut orders = orders.clone();
                tokio::spawn(async move {
                    let response = orders.call(request.ok()?).await;
                    Some(response.unwrap_or_else(|never| match never {}).status())
                })
            })
            .collect();
        let mut rush = Rush::default();
        while !customers.iter().all(JoinHandle::is_finished) {
            let open = self.open_connections();
            let past = open.saturating_sub(self.connections_at_most);
            rush.past_the_pool = rush.past_the_pool.max(past);
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        for customer in customers {
            match customer.await {
                Ok(Some(StatusCode::OK)) => rush.sold += 1,
                Ok(Some(StatusCode::CONFLICT)) => rush.sold_out += 1,
                _ => {}
            }
        }
        rush.left = query_scalar("SELECT stock FROM products WHERE id = $1")
            .bind(product)
            .fetch_one(&self.pool)
            .await?;
        Ok(rush)
    }

    /// Each connection to a file has it open. 0 where nobody tells.
    fn open_connections(&self) -> usize {
        let open = std::fs::read_dir("/proc/self/fd").into_iter().flatten();
        let paths = open.filter_map(|open| std::fs::read_link(open.ok()?.path()).ok());
        paths
            .filter(|path| Some(path) == self.file.as_ref())
            .count()
    }

    /// The books once they add up, or have had time to: an order whose customer hung up may still be on
    /// its way.
    async fn settled(&self) -> Result<Books, sqlx::Error> {
        for _ in 0..30 {
            let books = self.books().await?;
            if books.missing == 0 {
                return Ok(books);
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        self.books().await
    }

    async fn books(&self) -> Result<Books, sqlx::Error> {
        let mut snapshot = self.pool.begin().await?;
        let orders = query_scalar("SELECT COUNT(*) FROM orders")
            .fetch_one(&mut *snapshot)
            .await?;
        let missing = query_scalar(
            "SELECT CAST((SELECT SUM(bought - stock) FROM products)
                - (SELECT COALESCE(SUM(quantity), 0) FROM orders) AS BIGINT)",
        )
        .fetch_one(&mut *snapshot)
        .await?;
        Ok(Books { orders, missing })
    }

    /// Whether an order stands in the database.
    async fn is_written(&self, id: Option<i64>) -> bool {
        let found = query_scalar::<_, i64>("SELECT id FROM orders WHERE id = $1")
            .bind(id)
            .fetch_optional(&self.pool);
        matches!(found.await, Ok(Some(_)))
    }
}

async fn books(State(audit): State<Audit>) -> Result<Json<Books>, Refusal> {
    Ok(Json(audit.books().await?))
}

/// Counts an order, and looks for it in the database before its customer is told.
async fn watch(State(audit): State<Audit>, order: Request, next: Next) -> Response {
    audit.counts.received.fetch_add(1, Relaxed);
    let response = next.run(order).await;
    if response.status() == StatusCode::OK {
        audit.counts.confirmed.fetch_add(1, Relaxed);
        if !audit.is_written(named_by(&response)).await {
            audit.counts.unwritten.fetch_add(1, Relaxed);
        }
    }
    response
}

/// The order that an answer names.
fn named_by(response: &Response) -> Option<i64> {
    let location = response.headers().get(header::LOCATION)?.to_str().ok()?;
    location.strip_prefix("/orders/")?.parse().ok()
}
