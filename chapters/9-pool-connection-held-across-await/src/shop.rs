//! Common parts of all variants: orders, answers, and the service that knows the prices.

use std::num::NonZeroU32;
use std::time::Duration;

use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use lab::Upstream;
use reqwest::Client;
use serde::{Deserialize, Deserializer, Serialize};
use sqlx::{query_as, query_scalar};

use crate::store::{DbConnection, DbPool};

/// State for every request. Clones share the pool and the client.
#[derive(Debug, Clone)]
pub(crate) struct Shop {
    pub(crate) pool: DbPool,
    pub(crate) pricing: Pricing,
}

/// Order of a customer.
#[derive(Debug, Clone, Copy, Deserialize)]
pub(crate) struct Order {
    pub(crate) product: i64,
    /// At least one.
    #[serde(deserialize_with = "some")]
    pub(crate) quantity: i64,
}

fn some<'de, D: Deserializer<'de>>(deserializer: D) -> Result<i64, D::Error> {
    NonZeroU32::deserialize(deserializer).map(|quantity| quantity.get().into())
}

/// An order that stands in the database.
#[derive(Debug, Serialize)]
pub(crate) struct Receipt {
    #[serde(skip)]
    id: i64,
    product: i64,
    quantity: i64,
    /// For all of it.
    cents: i64,
}

impl Receipt {
    /// Writes the order; `price` is that of one, in cents.
    pub(crate) async fn insert(
        connection: &mut DbConnection,
        order: Order,
        price: i64,
    ) -> Result<Self, sqlx::Error> {
        let Order { product, quantity } = order;
        let cents = quantity * price;
        let id = query_scalar(
            "INSERT INTO orders (product, quantity, cents) VALUES ($1, $2, $3) RETURNING id",
        )
        .bind(product)
        .bind(quantity)
        .bind(cents)
        .fetch_one(connection)
        .await?;
        Ok(Self {
            id,
            product,
            quantity,
            cents,
        })
    }
}

impl IntoResponse for Receipt {
    fn into_response(self) -> Response {
        let location = [(header::LOCATION, format!("/orders/{}", self.id))];
        (location, Json(self)).into_response()
    }
}

/// Content of the database.
#[derive(Debug, Serialize)]
struct Books {
    orders: i64,
    /// Pieces that were bought, and are neither in stock nor ordered: 0 if the books are right.
    missing: i64,
}

/// `GET /books` answers how many orders there are, and whether stock and orders add up.
pub(crate) fn books(pool: DbPool) -> Router {
    let books = async |State(pool): State<DbPool>| -> Result<Json<Books>, Refusal> {
        // One statement sees one state, whatever is ordered meanwhile.
        let (orders, missing) = query_as(
            "SELECT (SELECT COUNT(*) FROM orders),
                CAST((SELECT SUM(bought - stock) FROM products)
                    - (SELECT COALESCE(SUM(quantity), 0) FROM orders) AS BIGINT)",
        )
        .fetch_one(&pool)
        .await?;
        Ok(Json(Books { orders, missing }))
    };
    Router::new().route("/books", get(books)).with_state(pool)
}

/// Why an order was not taken.
#[derive(Debug)]
pub(crate) enum Refusal {
    NoSuchProduct,
    SoldOut,
    /// No connection became free in time.
    Busy,
    Pricing(reqwest::Error),
    Database(sqlx::Error),
}

impl From<sqlx::Error> for Refusal {
    fn from(error: sqlx::Error) -> Self {
        match error {
            sqlx::Error::PoolTimedOut => Self::Busy,
            other => Self::Database(other),
        }
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        match self {
            Self::NoSuchProduct => (StatusCode::NOT_FOUND, "no such product").into_response(),
            Self::SoldOut => (StatusCode::CONFLICT, "sold out").into_response(),
            Self::Busy => {
                let later = [(header::RETRY_AFTER, "1")];
                (StatusCode::SERVICE_UNAVAILABLE, later, "busy").into_response()
            }
            Self::Pricing(error) => (StatusCode::BAD_GATEWAY, error.to_string()).into_response(),
            Self::Database(error) => {
                (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response()
            }
        }
    }
}

impl From<reqwest::Error> for Refusal {
    fn from(error: reqwest::Error) -> Self {
        Self::Pricing(error)
    }
}

/// The service that knows the prices. It takes 50 ms to answer.
#[derive(Debug, Clone)]
pub(crate) struct Pricing {
    client: Client,
    upstream: Upstream,
}

#[derive(Debug, Deserialize)]
struct Price {
    cents: i64,
}

impl Pricing {
    const TIMEOUT: Duration = Duration::from_secs(2);

    pub(crate) fn new(upstream: Upstream) -> Self {
        Self {
            client: Client::new(),
            upstream,
        }
    }

    /// Returns the price of one of `product` at this moment, in cents.
    pub(crate) async fn price(&self, product: i64) -> Result<i64, reqwest::Error> {
        let url = format!("{}prices/{product}", self.upstream.url());
        let request = self.client.get(url).timeout(Self::TIMEOUT);
        let response = request.send().await?.error_for_status()?;
        let price: Price = response.json().await?;
        Ok(price.cents)
    }
}
