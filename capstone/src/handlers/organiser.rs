//! What an organiser sees of their events.

use crate::database::DatabasePool;
use axum::Json;
use axum::extract::State;
use futures::{StreamExt, stream};
use serde::Serialize;

use crate::error::AppError;
use crate::models::event::Event;
use crate::models::seat::Seat;
use crate::models::user::User;
use crate::shop::Shop;

#[derive(Default, Serialize)]
pub struct Report {
    events: Vec<Sales>,
    sold: i64,
    revenue_cents: i64,
    payout_cents: i64,
}

/// What was sold of an event.
#[derive(Default, Serialize)]
pub struct Sales {
    event: i64,
    title: String,
    sold: i64,
    available: i64,
    revenue_cents: i64,
    /// What is left for the organiser.
    payout_cents: i64,
    views: i64,
}

pub async fn report(State(shop): State<Shop>, user: User) -> Result<Json<Report>, AppError> {
    if !user.is_organiser {
        return Err(AppError::NotYours);
    }
    let events = Event::of_organiser(&shop.db, user.id).await?;
    let mut report = Report::default();
    let mut sales = stream::iter(events)
        .map(|event| sales_of(&shop.db, event))
        .buffered(4);
    while let Some(sales) = sales.next().await {
        let mut sales = sales?;
        let basis_points = shop.payments.fee(sales.event).await?;
        sales.payout_cents = sales.revenue_cents - sales.revenue_cents * basis_points / 10_000;
        report.sold += sales.sold;
        report.revenue_cents += sales.revenue_cents;
        report.payout_cents += sales.payout_cents;
        report.events.push(sales);
    }
    Ok(Json(report))
}

async fn sales_of(db: &DatabasePool, event: Event) -> sqlx::Result<Sales> {
    let mut connection = db.acquire().await?;
    let mut sales = Sales {
        event: event.id,
        title: event.title,
        available: event.available,
        views: Event::views(&mut connection, event.id).await?,
        ..Sales::default()
    };
    for seat in Seat::sold(&mut connection, event.id).await? {
        sales.add(&seat);
    }
    Ok(sales)
}

impl Sales {
    #[tracing::instrument(skip_all, fields(seat = seat.id))]
    fn add(&mut self, seat: &Seat) {
        self.sold += 1;
        self.revenue_cents += seat.price_cents;
    }
}
