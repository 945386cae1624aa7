//! Reserving seats, paying for them, and looking at what one has.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Html;
use minijinja::context;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::error::AppError;
use crate::handlers::render;
use crate::models::event::Event;
use crate::models::order::Order;
use crate::models::seat::Seat;
use crate::models::ticket::Ticket;
use crate::models::user::User;
use crate::models::venue::Venue;
use crate::shop::{self, Shop};

#[derive(Deserialize)]
pub struct Wanted {
    seats: Vec<i64>,
}

pub async fn reserve(
    State(shop): State<Shop>,
    user: User,
    Path(event): Path<i64>,
    Json(wanted): Json<Wanted>,
) -> Result<(StatusCode, Json<Value>), AppError> {
    if wanted.seats.is_empty() || wanted.seats.len() > 8 {
        return Err(AppError::Invalid("one to eight seats, please"));
    }
    let _guard = shop.booking.lock().await;
    let mut transaction = shop.db.begin().await?;
    let order = Order::create(&mut transaction, user.id, event, shop::now()).await?;
    let mut cents = 0;
    for id in &wanted.seats {
        let seat = Seat::find(&mut transaction, *id).await?;
        let seat = seat.filter(|seat| seat.event_id == event);
        let seat = seat.ok_or(AppError::NotFound)?;
        if seat.order_id.is_some() {
            return Err(AppError::Conflict("somebody else was faster"));
        }
        seat.take(&mut transaction, order).await?;
        cents += seat.price_cents;
    }
    Order::set_cents(&mut transaction, order, cents, 0).await?;
    Event::take(&mut transaction, event, wanted.seats.len() as i64).await?;
    transaction.commit().await?;
    tokio::spawn(shop::release_later(shop.clone(), order));
    let reserved = json!({ "order": order, "cents": cents });
    Ok((StatusCode::CREATED, Json(reserved)))
}

/// Pays a reservation. Whoever asks again gets the same answer.
pub async fn pay(
    State(shop): State<Shop>,
    user: User,
    Path(id): Path<i64>,
) -> Result<Json<Value>, AppError> {
    let mut transaction = shop.db.begin().await?;
    let Some(order) = Order::set_paid(&mut transaction, id, user.id).await? else {
        let order = Order::find(&mut transaction, id, user.id).await?;
        let order = order.ok_or(AppError::NotFound)?;
        if order.status != "paid" {
            return Err(AppError::Conflict("the reservation has expired"));
        }
        let cents = order.seats_cents + order.fee_cents;
        let tickets = Ticket::of_order(&mut transaction, id).await?;
        return Ok(paid(id, cents, &tickets));
    };

    if !shop.payments.accepts(user.id, order.seats_cents).await? {
        return Err(AppError::Conflict("the payment service declined"));
    }
    let basis_points = shop.payments.fee(order.event_id).await?;
    let fee = order.seats_cents * basis_points / 10_000;
    let cents = order.seats_cents + fee;
    shop.payments.charge(id, cents).await?;

    Order::set_cents(&mut transaction, id, order.seats_cents, fee).await?;
    let mut tickets = Vec::new();
    for seat in Seat::of_order(&mut transaction, id).await? {
        tickets.push(Ticket::create(&mut transaction, id, &seat).await?);
    }
    transaction.commit().await?;

    for ticket in &tickets {
        let (payments, email) = (shop.payments.clone(), user.email.clone());
        let code = ticket.code.clone();
        tokio::spawn(async move {
            if let Err(error) = payments.mail(&email, &code).await {
                tracing::error!(%error, email, "cannot send a ticket");
            }
        });
    }
    Ok(paid(id, cents, &tickets))
}

fn paid(order: i64, cents: i64, tickets: &[Ticket]) -> Json<Value> {
    Json(json!({ "order": order, "cents": cents, "tickets": tickets }))
}

pub async fn list(State(shop): State<Shop>, user: User) -> Result<Html<String>, AppError> {
    let mut orders = Vec::new();
    for order in Order::of_user(&shop.db, user.id).await? {
        let event = Event::find(&shop.db, order.event_id).await?;
        let event = event.ok_or(AppError::NotFound)?;
        let venue = Venue::find(&shop.db, event.venue_id).await?;
        let mut connection = shop.db.acquire().await?;
        let seats = Seat::of_order(&mut connection, order.id).await?;
        let tickets = Ticket::of_order(&mut connection, order.id).await?;
        let cents = order.seats_cents + order.fee_cents;
        let currency = shop.currency.clone();
        let price = format!("{}.{:02} {currency}", cents / 100, cents % 100);
        orders.push(context! { order, price, event, venue => venue.name, seats, tickets });
    }
    render("orders.html", context! { user => user.name, orders })
}
